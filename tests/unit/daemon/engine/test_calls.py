from types import SimpleNamespace
from typing import Any

import pytest

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import ConversationOpen, MessageAppend, Mutation, TaskAdd
from punchlistd.clock import now_ms
from punchlistd.domain.commands import Command
from punchlistd.engine.calls import NEXT, DaemonCaller, Stage, Write, stamp
from punchlistd.engine.lists.access import foreign_owner


def caller(user: str | None = None) -> Any:
    return SimpleNamespace(actor="client", user=user, confirm=False)


def stamped(params: Mutation, user: str | None = None) -> Command:
    return stamp(caller(user), params)


def test_command_has_its_time_and_actor() -> None:
    before = now_ms()
    command = stamped(TaskAdd(conversation="c", title="a"), "alice")
    assert before <= command.at <= now_ms() and (command.actor, command.user) == ("client", "alice")
    assert stamped(TaskAdd(conversation="c", title="a", actor="me")).actor == "me"


def test_only_message_without_id_gets_new_one() -> None:
    bare = MessageAppend(conversation="c", role="user", content=1)
    assert stamped(bare).message_id != stamped(bare).message_id != ""
    assert stamped(MessageAppend(conversation="c", role="user", content=1, message="own")).message_id == ""
    assert stamped(TaskAdd(conversation="c", title="a")).message_id == ""


def test_opening_for_another_user_is_forbidden() -> None:
    refused = foreign_owner("alice", ConversationOpen(conversation="c", user="bob"))
    assert refused is not None and refused.kind == "forbidden"
    assert foreign_owner("alice", ConversationOpen(conversation="c", user="alice")) is None
    assert foreign_owner(None, ConversationOpen(conversation="c", user="bob")) is None


@pytest.mark.parametrize("stage", Stage)
def test_write_is_answered_once_from_any_stage(stage: Stage) -> None:
    add = TaskAdd(conversation="c", title="a")
    write = Write(DaemonCaller(), None, METHODS["task.add"], add, stamp(DaemonCaller(), add), stage=stage)
    if stage is not Stage.ANSWERED:
        write.answer(b"{}")
    with pytest.raises(AssertionError, match=r"task\.add can't go"):
        write.answer(b"{}")


def test_every_stage_of_a_write_is_reachable() -> None:
    assert set(NEXT) == set(Stage)
    assert frozenset[Stage]().union(*NEXT.values()) == set(Stage)
    assert [stage for stage, following in NEXT.items() if not following] == [Stage.ANSWERED]
