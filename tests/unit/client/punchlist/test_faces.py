"""Behavior that users of the library see, tested once and run on both faces with a real daemon."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from punchlist import (
    Blocked,
    Client,
    ConfirmationRequired,
    Conversation,
    DependencyCycle,
    IllegalTransition,
    InvalidParams,
    KeyConflict,
    MethodNotFound,
    NewTask,
    NoConversation,
    NotFound,
    RequestRefused,
    SettingsPatch,
    TimedOut,
    VersionConflict,
    conversation,
)
from punchlist_schemas.events import StatusChanged, TaskAdded
from punchlist_testing.daemon import Running
from punchlist_testing.faces import Connect


def test_plan_is_worked_through(client: Client) -> None:
    plan = client.conversation("website", actor="planner")
    copy = plan.add("Write the copy", priority="high", active_form="Writing")
    publish = plan.add("Publish", blocked_by=[copy.id])
    assert (copy.id, copy.priority, publish.open_blockers) == ("1", "high", ("1",))
    assert plan.start(copy.id).task.status == "in_progress"
    done = plan.complete(copy.id, result="in docs/copy.md")
    assert done.next_task is not None
    assert (done.task.result_summary, done.next_task.id, done.unblocked) == ("in docs/copy.md", "2", ("2",))
    assert done.remaining == 1
    tasks = plan.list()
    assert [(task.title, task.status) for task in tasks] == [("Write the copy", "completed"), ("Publish", "pending")]
    assert (tasks.counts.completed, tasks.counts.ready, tasks.remaining, tasks.total) == (1, 1, 1, 2)
    assert {change.actor for change in client.read(0) if change.version > 1} == {"planner"}


def test_every_status_method_sets_its_status(client: Client) -> None:
    plan = client.conversation("c")
    task = plan.add("one").id
    words: list[tuple[Callable[..., Any], str]] = [
        (plan.start, "in_progress"),
        (plan.pause, "paused"),
        (plan.resume, "in_progress"),
        (plan.fail, "failed"),
        (plan.reopen, "pending"),
        (plan.complete, "completed"),
    ]
    assert [word(task).task.status for word, _ in words] == [status for _, status in words]
    assert plan.set_status(task, "completed").task.status == "completed"


def test_list_is_changed_and_read_in_every_way(client: Client) -> None:
    plan = client.conversation("c")
    made = plan.add_many([NewTask(title="a", ref="x"), NewTask(title="b", blocked_by=("x",)), "c"])
    assert [task.blocked_by for task in made] == [(), ("1",), ()]
    before = plan.list().version
    assert plan.edit("3", title="C", metadata={"k": 1}, add_blocked_by="1").blocked_by == ("1",)
    assert plan.edit("3", description="text", metadata=None).metadata == {}
    assert plan.move("3", before="1").id == "3"
    assert [task.id for task in plan.list()] == ["3", "1", "2"]
    assert [task.title for task in plan.list(at_version=before)] == ["a", "b", "c"]
    assert [task.id for task in plan.list(ready=True)] == ["1"]
    assert [task.id for task in plan.list(status=["pending"], limit=1, offset=1)] == ["1"]
    assert plan.delete("1", "2") == ("1", "2")
    assert plan.get("3").open_blockers == ()
    assert len(plan.undo(preview=True)) >= 1
    assert len(plan.list()) == 1
    plan.undo()
    assert len(plan.list()) == 3
    assert [task.title for task in plan.replace(["b", "z"], keep_unfinished=False)] == ["b", "z"]
    assert plan.clear() == 2
    assert list(plan.list()) == []


def test_conversation_is_described_attached_and_erased(client: Client) -> None:
    plan = client.conversation("c")
    assert plan.open(title="Website").created
    assert plan.configure(settings=SettingsPatch(auto_clear="when_done")).settings.auto_clear == "when_done"
    assert plan.attach("session-7").sessions == ("session-7",)
    plan.add("one")
    assert client.conversation("session-7").get("1").title == "one"
    assert plan.detach("session-7").sessions == ()
    assert [row.title for row in client.conversations("web").conversations] == ["Website"]
    with pytest.raises(ConfirmationRequired) as caught:
        plan.erase()
    assert plan.info().counts.pending == 1
    assert plan.erase(confirm=caught.value.token) == "c"
    assert plan.list() == []
    assert client.conversations().conversations == ()


def test_messages_are_kept_in_order(client: Client) -> None:
    plan = client.conversation("c")
    first = plan.append_message("user", {"text": "hello"})
    plan.append_message("assistant", [1, 2], message="m2")
    page = plan.messages(limit=1)
    assert (page.messages[0].message, page.messages[0].content, page.has_more) == (
        first.message,
        {"text": "hello"},
        True,
    )
    assert [message.content for message in plan.messages(after=first.message).messages] == [[1, 2]]


REFUSALS: list[tuple[type[RequestRefused], Callable[[Conversation], Any], dict[str, Any]]] = [
    (NotFound, lambda plan: plan.get("9"), {"what": "task", "id": "9"}),
    (Blocked, lambda plan: plan.start("2"), {"blockers": [{"id": "1", "title": "a", "status": "pending"}]}),
    (DependencyCycle, lambda plan: plan.edit("1", add_blocked_by=["2"]), {}),
    (VersionConflict, lambda plan: plan.add("x", expect_version=1), {"expected": 1}),
    (InvalidParams, lambda plan: plan.add("two\nlines"), {"field": "title"}),
    (IllegalTransition, lambda plan: (plan.complete("3"), plan.pause("3")), {"from_": "completed", "to": "paused"}),
    (KeyConflict, lambda plan: (plan.add("x", key="k"), plan.add("y", key="k")), {"key": "k"}),
]


@pytest.mark.parametrize(("kind", "call", "facts"), REFUSALS, ids=lambda value: getattr(value, "__name__", ""))
def test_rejection_raises_its_exception_with_facts(
    client: Client, kind: type[RequestRefused], call: Callable[[Conversation], Any], facts: dict[str, Any]
) -> None:
    plan = client.conversation("c")
    plan.add_many([NewTask(title="a", ref="first"), NewTask(title="b", blocked_by=("first",)), "c"])
    with pytest.raises(kind) as caught:
        call(plan)
    for name, value in facts.items():
        assert getattr(caught.value, name) == value
    assert str(caught.value)


def test_unreached_version_is_a_conflict(
    daemon: Running, open_client: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("punchlistd.engine.reading.queries.REACHED_S", 0.5)
    with open_client(daemon.socket, timeout_s=0.2) as client:
        client.conversation("c").add("one")
        with pytest.raises(VersionConflict, match="99 has not arrived"):
            client.conversation("c").list(min_version=99)
        with pytest.raises(VersionConflict, match="99 has not arrived"):
            client.call("task.get", {"conversation": "c", "task": "1", "min_version": 99})


def test_calls_can_be_made_by_wire_name(client: Client) -> None:
    made = client.call("task.add", {"conversation": "c", "title": "one"})
    assert made["task"]["id"] == "1"
    listed = client.call("task.list", {"conversation": "c", "fields": ["title"]})
    assert listed["tasks"] == [{"id": "1", "title": "one"}]
    with pytest.raises(MethodNotFound) as caught:
        client.call("task.ad")
    assert caught.value.nearest == "task.add"


def test_equal_key_takes_effect_once(client: Client) -> None:
    plan = client.conversation("c")
    assert plan.add("one", key="k") == plan.add("one", key="k")
    assert len(plan.list()) == 1


def test_daemon_reports_its_status(client: Client) -> None:
    assert client.open().name == "punchlistd"
    assert "tester" in [row.name for row in client.status().clients]
    assert client.discover()["openrpc"].startswith("1.")


def test_log_is_copied_while_in_use(client: Client, tmp_path: Path) -> None:
    client.conversation("c").add("one")
    made = client.backup(str(tmp_path / "copy.db"))
    assert (made.path, made.seq, made.events, made.checked) == (str(tmp_path / "copy.db"), 2, 2, True)
    assert made.epoch == client.open().epoch
    with pytest.raises(InvalidParams, match="choose another name"):
        client.backup(str(tmp_path / "copy.db"))
    assert client.backup(str(tmp_path / "raw.db"), check=False).events is None


def test_scope_determines_the_list(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)
    with pytest.raises(NoConversation):
        client.conversation()
    with conversation("scoped"):
        client.conversation().add("one")
    assert len(client.conversation("scoped").list()) == 1


def test_with_confirm_destruction_takes_two_steps(daemon: Running, open_client: Connect) -> None:
    with open_client(daemon.socket, confirm=True) as client:
        plan = client.conversation("c")
        plan.add("one")
        with pytest.raises(ConfirmationRequired) as caught:
            plan.delete("1")
        assert "one" in caught.value.summary
        assert plan.delete("1", confirm=caught.value.token) == ("1",)


def test_user_does_not_see_other_users_lists(daemon: Running, open_client: Connect) -> None:
    with open_client(daemon.socket, user="ann") as ann, open_client(daemon.socket, user="bob") as bob:
        ann.conversation("hers").add("one")
        with pytest.raises(NotFound):
            bob.conversation("hers").get("1")
        assert bob.conversations().conversations == ()


# watching


def test_watch_sees_everything_after_its_creation(client: Client) -> None:
    plan = client.conversation("c")
    plan.add("before")
    with plan.watch() as changes:
        plan.add("after")
        plan.start("2")
        added, started = next(changes), next(changes)
    assert isinstance(added.event, TaskAdded)
    assert (added.event.task.title, added.actor) == ("after", "tester")
    assert isinstance(started.event, StatusChanged)
    assert (started.event.task, started.event.from_, started.event.to) == ("2", "pending", "in_progress")


def test_watch_resumes_anywhere_and_covers_all_lists(client: Client) -> None:
    client.conversation("a").add("1")
    seen = client.conversation("a").list().seq
    client.conversation("b").add("2")
    with client.watch(after=seen, epoch=client.open().epoch) as changes:
        client.conversation("a").add("3")
        got = [next(changes) for _ in range(3)]
    assert [change.seq for change in got] == [seen + 1, seen + 2, seen + 3]
    assert [change.conversation for change in got] == ["b", "b", "a"]


@pytest.mark.parametrize("view", ["list", "rows"])
def test_list_watch_starts_with_current_list(client: Client, view: Literal["list", "rows"]) -> None:
    plan = client.conversation("c")
    plan.add("one")
    with plan.watch(view=view) as lists:
        assert [task.title for task in next(lists)] == ["one"]
        plan.add("two")
        assert [task.title for task in next(lists)] == ["one", "two"]


def test_watch_times_out_and_continues(client: Client) -> None:
    plan = client.conversation("c")
    with plan.watch() as changes:
        with pytest.raises(TimedOut, match=r"Nothing happened within 0\.05 s"):
            changes.next(timeout_s=0.05)
        plan.add("one")
        assert changes.next(timeout_s=5).version == 1


def test_closing_the_client_ends_its_watches(daemon: Running, open_client: Connect) -> None:
    ended: list[int] = []
    client = open_client(daemon.socket)
    with client:
        plan = client.conversation("c")
        watch = plan.watch()
        with contextlib.ExitStack() as stack:
            watch = stack.enter_context(watch)
            plan.add("one")
            seen = threading.Event()

            def loop() -> None:
                for change in watch:
                    ended.append(change.version)
                    if len(ended) == 2:
                        seen.set()

            thread = threading.Thread(target=loop)
            thread.start()
            assert seen.wait(5)
            client.close()
            thread.join(5)
            assert not thread.is_alive()
    assert ended == [1, 2]


def test_waiting_ends_on_condition_without_blocking_calls(client: Client) -> None:
    plan = client.conversation("c")
    assert plan.wait("done", timeout_s=5) == []
    plan.add("one")
    with pytest.raises(TimedOut):
        plan.wait("done", timeout_s=0.05)
    results: list[Any] = []
    waiter = threading.Thread(target=lambda: results.append(plan.wait(lambda tasks: len(tasks) == 2, timeout_s=10)))
    waiter.start()
    plan.add("two")
    waiter.join(10)
    assert [task.title for task in results[0]] == ["one", "two"]
    waiter = threading.Thread(target=lambda: results.append(plan.wait("idle", timeout_s=10)))
    waiter.start()
    plan.complete("1")
    plan.complete("2")
    waiter.join(10)
    assert results[1].remaining == 0


def test_closed_client_reconnects_on_use(client: Client) -> None:
    client.conversation("c").add("one")
    client.close()
    assert len(client.conversation("c").list()) == 1
