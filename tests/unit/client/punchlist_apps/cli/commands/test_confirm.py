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


def test_person_confirms_call_of_tool(punch: Any, daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False) as client:
        token = asked(client)
        outcome = punch("confirm", token)
        assert outcome.code == 2 and "delete 1 task: #1 Milk" in outcome.err
        assert len(client.conversation("elsewhere").list()) == 1
        assert punch("confirm", token, "--yes").lines == ["done: delete 1 task: #1 Milk"]
        assert not client.conversation("elsewhere").list()
        again = punch("confirm", token, "--yes")
        assert again.code == 1 and "Unknown token" in again.err


def test_unknown_token_is_rejected_with_advice(punch: Any) -> None:
    outcome = punch("confirm", "deadbeef", "--yes")
    assert outcome.code == 1
    advice = "nothing was changed; the agent gets a new token when it calls its tool again"
    assert outcome.err.splitlines()[1].strip() == advice
