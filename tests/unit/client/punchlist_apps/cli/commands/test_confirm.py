from typing import Any

import pytest

from punchlist import Client, ConfirmationRequired, connect
from punchlist_testing.daemon import Running


def asked(client: Client) -> str:
    plan = client.conversation("elsewhere")
    plan.add("Milk")
    with pytest.raises(ConfirmationRequired) as caught:
        plan.delete("1", ask=True)
    return caught.value.token


def test_a_person_answers_the_question_of_a_tool(punch: Any, daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False) as client:
        token = asked(client)
        shown = punch("confirm", token)
        assert shown.code == 2 and "delete 1 task: #1 Milk" in shown.err
        assert len(client.conversation("elsewhere").list()) == 1
        assert punch("confirm", token, "--yes").lines == ["done: delete 1 task: #1 Milk"]
        assert not client.conversation("elsewhere").list()
        again = punch("confirm", token, "--yes")
        assert again.code == 1 and "no such token" in again.err


def test_a_token_that_is_none_says_how_to_get_another(punch: Any) -> None:
    told = punch("confirm", "deadbeef", "--yes")
    assert told.code == 1
    advice = "nothing was changed; the agent gets a new token when it calls its tool again"
    assert told.err.splitlines()[1].strip() == advice
