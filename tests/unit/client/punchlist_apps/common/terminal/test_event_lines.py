import re
from typing import Any

import msgspec
import pytest

from punchlist_apps.common.terminal import event_lines
from punchlist_apps.common.terminal.event_lines import EventFormatter
from punchlist_apps.common.terminal.render import count_columns, format_time
from punchlist_apps.common.terminal.style import Style
from punchlist_schemas import events as e
from punchlist_schemas.things import Gate, Link, Settings


def recorded(event: Any, **members: Any) -> dict[str, Any]:
    value = msgspec.to_builtins(event) if isinstance(event, msgspec.Struct) else event
    return {"seq": 1, "conversation": "a", "version": 1, "at": 0, "actor": "claude", "event": value, **members}


def told(event: Any, **members: Any) -> str:
    line = EventFormatter(Style()).format(recorded(event, **members))
    text, _, _ = line.rpartition("  by ")
    return text


NOON = 1_795_435_200_000
ADDED = e.TaskAdded(e.AddedTask(id="3", title="Write", blocked_by=("1",)))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (e.ConversationOpened(title="Website"), "opened Website"),
        (
            e.ConversationConfigured(title="New", settings=Settings(max_attempts=3)),
            "configured title New, max_attempts 3",
        ),
        (e.ConversationConfigured(attached="s1"), "configured attached s1"),
        (e.ConversationDeleted(), "erased"),
        (ADDED, "#3 added  Write  ← #1"),
        (e.TaskEdited("3", owner="ada", parent=None), "#3 edited owner ada, parent none"),
        (e.TaskEdited("3", estimate_ms=5_400_000, labels=("ui", "ops")), "#3 edited labels ui, ops, estimate 1h 30m"),
        (
            e.TaskEdited("3", due=1_795_435_200_000, owner=""),
            f"#3 edited owner (cleared), due {format_time(1_795_435_200_000)}",
        ),
        (
            e.TaskEdited("3", links=(Link(kind="url", to="https://x"),), parent="1"),
            "#3 edited parent #1, links url https://x",
        ),
        (e.TaskEdited("3", gate=Gate(check="tests")), "#3 edited counts as done after the check tests"),
        ({"type": "TaskEdited", "task": "3", "title": "a\x1bb"}, "#3 edited title a\\x1bb  a\\x1bb"),
        (e.TaskMoved(task="3", before="1", rank="a"), "#3 moved before #1"),
        (e.TaskMoved(task="3", rank="a"), "#3 moved to the end"),
        (e.StatusChanged("3", "pending", "completed"), "#3 pending → completed"),
        (e.StatusChanged("3", "pending", "failed", fail_reason="no"), "#3 pending → failed (no)"),
        (e.Deleted("3"), "#3 deleted"),
        (e.DependencyAdded("3", "1"), "#3 waits for #1"),
        (e.DependencyRemoved("3", "1"), "#3 no longer waits for #1"),
        (e.Claimed("3", "ada", 1000), "#3 claimed by ada"),
        (e.Released(task="3", owner="ada", reason="expired"), "#3 released by ada (expired)"),
        (e.ListCleared(), "list cleared"),
        (e.MessageAppended("m1", "user", "hi"), "message m1 from user: hi"),
        (e.MessageAppended("m2", "tool", 2, "m1"), "message m2 from tool, instead of m1: 2"),
        (e.MessageRetracted("m2", "it was answered"), "message m2 retracted (it was answered)"),
        ({"type": "Novelty", "x": 1}, "Novelty (not known to this version)"),
    ],
)
def test_every_event_is_a_sentence(event: Any, text: str) -> None:
    assert told(event) == text


def test_every_type_of_event_has_a_sentence() -> None:
    types = {kind.__struct_config__.tag for kind in e.KnownEvent.__args__}
    assert types == set(event_lines._SENTENCES)  # pyright: ignore[reportPrivateUsage]


def test_line_has_actor_time_list_and_remembered_title() -> None:
    story = EventFormatter(Style(), name_conversations=True, dated=False)
    story.format(recorded(ADDED))
    line = story.format(recorded(e.StatusChanged("3", "pending", "in_progress")))
    assert line.startswith("a  #3 pending → in_progress  Write  by claude · ")


def test_hostile_events_are_shown_escaped() -> None:
    evil = "\x1b[2J\u202e"
    story = EventFormatter(Style())
    added = msgspec.to_builtins(e.TaskAdded(e.AddedTask(id="1", title=evil)))
    events = [added, {"type": evil, "task": "1"}, {"type": "TaskEdited", "task": "1", evil: evil}]
    for event in events:
        line = story.format(recorded(event, actor=evil, at=2**60))
        assert "\x1b" not in line
        assert "\u202e" not in line


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [2, 20, 40, 60, 79])
def test_line_is_truncated_only_on_a_terminal(width: int, colour: bool) -> None:
    added = e.TaskAdded(e.AddedTask(id="3", title="Write 中文 " * 20, blocked_by=("1",)))
    changed = e.StatusChanged("3", "pending", "failed", fail_reason="no luck" * 20)
    pipe, narrow = EventFormatter(Style()), EventFormatter(Style(width=width, color=colour), margin=1)
    for event in (added, changed):
        assert "…" not in pipe.format(recorded(added))
        line = narrow.format(recorded(event))
        shown = re.sub("\x1b\\[[0-9;]*m", "", line)
        assert "…" in shown
        assert count_columns(shown) <= max(width - 1, 2)
        assert not colour or line.endswith("\x1b[0m")
    if width == 79:
        assert "  by claude · 19" in shown


def test_line_that_fits_is_unchanged() -> None:
    whole = EventFormatter(Style(color=True)).format(recorded(ADDED))
    assert EventFormatter(Style(width=200, color=True)).format(recorded(ADDED)) == whole
