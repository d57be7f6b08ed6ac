"""The request that each typed method of a conversation sends, compared member by member."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import SettingsPatch

Ask = Callable[[ConversationCalls], Call[Any]]

ASKED: dict[str, tuple[Ask, str, dict[str, Any]]] = {
    "start": (lambda plan: plan.start("1"), "task.set_status", {"task": "1", "status": "in_progress"}),
    "resume": (lambda plan: plan.resume("1"), "task.set_status", {"task": "1", "status": "in_progress"}),
    "pause": (lambda plan: plan.pause("1"), "task.set_status", {"task": "1", "status": "paused"}),
    "reopen": (lambda plan: plan.reopen("1"), "task.set_status", {"task": "1", "status": "pending"}),
    "complete": (
        lambda plan: plan.complete("1", "in docs", fence=3),
        "task.set_status",
        {"task": "1", "status": "completed", "result_summary": "in docs", "fence": 3},
    ),
    "fail": (
        lambda plan: plan.fail("1", "no key", fence=3),
        "task.set_status",
        {"task": "1", "status": "failed", "fail_reason": "no key", "fence": 3},
    ),
    "add": (
        lambda plan: plan.add("t", blocked_by=(one for one in ("1", "2")), metadata={"pr": 7}, before="1"),
        "task.add",
        {"title": "t", "blocked_by": ["1", "2"], "metadata": {"pr": 7}, "before": "1"},
    ),
    "add with one bare id": (
        lambda plan: plan.add("t", blocked_by="12", blocks="34"),
        "task.add",
        {"title": "t", "blocked_by": ["12"], "blocks": ["34"]},
    ),
    "add many": (
        lambda plan: plan.add_many(["a", NewTask(title="b", ref="x")]),
        "task.add_many",
        {"tasks": [{"title": "a"}, {"title": "b", "ref": "x"}]},
    ),
    "edit what is given": (lambda plan: plan.edit("1", title="b"), "task.edit", {"task": "1", "title": "b"}),
    "edit to clear": (
        lambda plan: plan.edit("1", owner=None, metadata={"pr": None}, remove_blocked_by="12"),
        "task.edit",
        {"task": "1", "owner": None, "metadata": {"pr": None}, "remove_blocked_by": ["12"]},
    ),
    "edit to clear all metadata": (
        lambda plan: plan.edit("1", metadata=None),
        "task.edit",
        {"task": "1", "metadata": None},
    ),
    "list of one status": (lambda plan: plan.list(status="paused"), "task.list", {"status": "paused"}),
    "list of some": (
        lambda plan: plan.list(status=["paused", "failed"], ready=False, offset=2),
        "task.list",
        {"status": ["paused", "failed"], "ready": False, "offset": 2},
    ),
    "move": (lambda plan: plan.move("1", to_end=True), "task.move", {"task": "1", "to_end": True}),
    "delete one": (lambda plan: plan.delete("1", confirm="t"), "task.delete", {"task": "1", "confirm": "t"}),
    "delete some": (lambda plan: plan.delete("1", "2"), "task.delete", {"tasks": ["1", "2"]}),
    "replace": (
        lambda plan: plan.replace(["a"], keep_unfinished=False),
        "list.replace",
        {"tasks": [{"title": "a"}], "keep_unfinished": False},
    ),
    "apply": (
        lambda plan: plan.apply(
            [{"method": "task.add", "title": "t", "ref": "a"}, plan.move("1", before="a"), plan.edit("2", owner=None)]
        ),
        "list.apply",
        {
            "changes": [
                {"method": "task.add", "title": "t", "ref": "a"},
                {"method": "task.move", "task": "1", "before": "a"},
                {"method": "task.edit", "task": "2", "owner": None},
            ]
        },
    ),
    "take": (
        lambda plan: plan.take("ann", count=2, lease_ms=5_000, wait_ms=10, keep=True),
        "task.claim",
        {"owner": "ann", "count": 2, "lease_ms": 5_000, "wait_ms": 10, "keep": True},
    ),
    "release": (
        lambda plan: plan.release("1", "ann", fence=4),
        "task.release",
        {"task": "1", "owner": "ann", "fence": 4},
    ),
    "configure": (
        lambda plan: plan.configure(settings=SettingsPatch(max_attempts=2)),
        "conversation.configure",
        {"settings": {"max_attempts": 2}},
    ),
    "attach": (lambda plan: plan.attach("s1"), "conversation.attach", {"session": "s1"}),
    "detach": (lambda plan: plan.detach("s1"), "conversation.detach", {"session": "s1"}),
    "message": (
        lambda plan: plan.append_message("user", [1, None], message="m1"),
        "message.append",
        {"role": "user", "content": [1, None], "message": "m1"},
    ),
    "superseding": (
        lambda plan: plan.append_message("tool", 2, supersedes="m1"),
        "message.append",
        {"role": "tool", "content": 2, "supersedes": "m1"},
    ),
    "retract": (
        lambda plan: plan.retract("m1", "a slip"),
        "message.retract",
        {"message": "m1", "reason": "a slip"},
    ),
    "presence": (lambda plan: plan.presence(), "conversation.presence", {}),
    "all messages": (lambda plan: plan.messages(all=True), "message.list", {"all": True}),
    "messages": (
        lambda plan: plan.messages(after="m1", limit=3, order="desc"),
        "message.list",
        {"after": "m1", "limit": 3, "order": "desc"},
    ),
}


def wire(call: Call[Any]) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(call.request.params))


@pytest.mark.parametrize("case", ASKED)
def test_typed_method_sends_exact_request(case: str) -> None:
    ask, method, members = ASKED[case]
    call = ask(ConversationCalls("c"))
    asked = wire(call)
    asked.pop("key", None)
    assert (call.method, asked) == (method, {"conversation": "c", **members})


def test_metadata_is_copied_when_call_is_made() -> None:
    metadata = {"pr": 7}
    plan = ConversationCalls("c")
    calls = [plan.add("t", metadata=metadata), plan.edit("1", metadata=metadata)]
    metadata["pr"] = 8
    assert [wire(call)["metadata"] for call in calls] == [{"pr": 7}, {"pr": 7}]


def test_each_mutation_has_unique_or_chosen_key() -> None:
    plan = ConversationCalls("c")
    assert len({wire(plan.add("t"))["key"] for _ in range(100)}) == 100
    assert wire(plan.add("t", key="k"))["key"] == "k"


def test_call_actor_overrides_facade_actor() -> None:
    plan = ConversationCalls("c", "planner")
    assert wire(plan.add("t"))["actor"] == "planner"
    assert wire(plan.add("t", actor="ann"))["actor"] == "ann"
    # In an undo, the actor selects whose changes to undo, so the facade's own actor must not be filled in.
    assert "actor" not in wire(plan.undo())
    assert wire(plan.undo(actor="ann"))["actor"] == "ann"
    for whose in (plan.undo(of="bob"), plan.undo(call=3), plan.undo(to_version=3)):
        assert wire(whose)["actor"] == plan.actor
