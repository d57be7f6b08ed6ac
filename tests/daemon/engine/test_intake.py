from types import SimpleNamespace
from typing import Any

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import ConversationOpen, MessageAppend, Mutation, TaskAdd
from punchlistd.domain.commands import Command
from punchlistd.engine.intake import now_ms, stamp


def caller(user: str | None = None) -> Any:
    return SimpleNamespace(actor="client", user=user, confirm=False)


def stamped(params: Mutation, user: str | None = None) -> Command:
    command = stamp(caller(user), params)
    assert isinstance(command, Command)
    return command


def test_a_command_knows_when_and_by_whom() -> None:
    before = now_ms()
    command = stamped(TaskAdd(conversation="c", title="a"), "alice")
    assert before <= command.at <= now_ms() and (command.actor, command.user) == ("client", "alice")
    assert stamped(TaskAdd(conversation="c", title="a", actor="me")).actor == "me"


def test_only_a_message_without_an_id_gets_a_fresh_one() -> None:
    bare = MessageAppend(conversation="c", role="user", content=1)
    assert stamped(bare).message_id != stamped(bare).message_id != ""
    assert stamped(MessageAppend(conversation="c", role="user", content=1, message="own")).message_id == ""
    assert stamped(TaskAdd(conversation="c", title="a")).message_id == ""


def test_opening_for_another_user_is_forbidden() -> None:
    refused = stamp(caller("alice"), ConversationOpen(conversation="c", user="bob"))
    assert isinstance(refused, Rejection) and refused.kind == "forbidden"
    stamped(ConversationOpen(conversation="c", user="alice"), "alice")
    stamped(ConversationOpen(conversation="c", user="bob"))
