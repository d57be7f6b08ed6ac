import msgspec
import pytest
from msgspec import UNSET

from punchlist_schemas import events as e
from punchlist_schemas.things import Link, Note, Settings

# Stored formats: changing any of these lines breaks all existing logs.
STORED: list[tuple[e.KnownEvent, bytes]] = [
    (e.ConversationOpened(), b'{"type":"ConversationOpened"}'),
    (
        e.ConversationOpened("a", "u", Settings(max_attempts=2)),
        b'{"type":"ConversationOpened","title":"a","user":"u","settings":{"max_attempts":2}}',
    ),
    (e.ConversationConfigured(title="a"), b'{"type":"ConversationConfigured","title":"a"}'),
    (e.ConversationConfigured(settings=Settings()), b'{"type":"ConversationConfigured","settings":{}}'),
    (e.ConversationConfigured(attached="s"), b'{"type":"ConversationConfigured","attached":"s"}'),
    (e.ConversationConfigured(detached="s"), b'{"type":"ConversationConfigured","detached":"s"}'),
    (e.ConversationDeleted(), b'{"type":"ConversationDeleted"}'),
    (e.TaskAdded(e.AddedTask("1", "a")), b'{"type":"TaskAdded","task":{"id":"1","title":"a"}}'),
    (
        e.TaskAdded(e.AddedTask("2", "a", blocked_by=("1",), metadata={"x": None}), before="1", rank="a0"),
        b'{"type":"TaskAdded","task":{"id":"2","title":"a","blocked_by":["1"],"metadata":{"x":null}},"before":"1","rank":"a0"}',
    ),
    (e.TaskEdited("1", title="b"), b'{"type":"TaskEdited","task":"1","title":"b"}'),
    (
        e.TaskEdited("1", parent=None, metadata={"x": None}),
        b'{"type":"TaskEdited","task":"1","parent":null,"metadata":{"x":null}}',
    ),
    (e.TaskMoved(task="1", before="2", rank="a1V"), b'{"type":"TaskMoved","task":"1","before":"2","rank":"a1V"}'),
    (e.TaskMoved(task="1", rank="b"), b'{"type":"TaskMoved","task":"1","rank":"b"}'),
    (
        e.StatusChanged("1", "pending", "in_progress", attempts=1),
        b'{"type":"StatusChanged","task":"1","from":"pending","to":"in_progress","attempts":1}',
    ),
    (
        e.StatusChanged("1", "in_progress", "failed", fail_reason=""),
        b'{"type":"StatusChanged","task":"1","from":"in_progress","to":"failed","fail_reason":""}',
    ),
    (
        e.TaskAdded(
            e.AddedTask(
                "1",
                "a",
                due=9,
                not_before=8,
                labels=("x",),
                links=(Link(kind="url", to="u"),),
                estimate_ms=7,
                notes=(Note(version=2, at=5, actor="me", text="n"),),
            )
        ),
        b'{"type":"TaskAdded","task":{"id":"1","title":"a","due":9,"not_before":8,"labels":["x"],'
        b'"links":[{"kind":"url","to":"u"}],"estimate_ms":7,"notes":[{"version":2,"at":5,"actor":"me","text":"n"}]}}',
    ),
    (
        e.TaskEdited("1", due=None, not_before=8, labels=(), links=(), estimate_ms=None),
        b'{"type":"TaskEdited","task":"1","due":null,"not_before":8,"labels":[],"links":[],"estimate_ms":null}',
    ),
    (e.NoteAdded("1", "n", "me"), b'{"type":"NoteAdded","task":"1","text":"n","actor":"me"}'),
    (e.NoteRemoved("1", 3), b'{"type":"NoteRemoved","task":"1","note":3}'),
    (e.TaskWoken("1"), b'{"type":"TaskWoken","task":"1"}'),
    (e.Deleted("1"), b'{"type":"Deleted","task":"1"}'),
    (e.DependencyAdded("2", "1"), b'{"type":"DependencyAdded","task":"2","blocker":"1"}'),
    (e.DependencyRemoved("2", "1"), b'{"type":"DependencyRemoved","task":"2","blocker":"1"}'),
    (e.Claimed("1", "o", 1000), b'{"type":"Claimed","task":"1","owner":"o","lease_ms":1000}'),
    (
        e.Released(task="1", owner="o", reason="expired"),
        b'{"type":"Released","task":"1","owner":"o","reason":"expired"}',
    ),
    (e.ListCleared(), b'{"type":"ListCleared"}'),
    (e.MessageAppended("m", "user", None), b'{"type":"MessageAppended","message":"m","role":"user","content":null}'),
    (
        e.MessageAppended("m2", "tool", 1, "m"),
        b'{"type":"MessageAppended","message":"m2","role":"tool","content":1,"supersedes":"m"}',
    ),
    (e.MessageRetracted("m", "r"), b'{"type":"MessageRetracted","message":"m","reason":"r"}'),
    (e.EventLost(), b'{"type":"EventLost"}'),
]


@pytest.mark.parametrize(("event", "stored"), STORED)
def test_stored_form_of_an_event_never_changes(event: e.KnownEvent, stored: bytes) -> None:
    assert msgspec.json.encode(event) == stored
    assert e.decode_event(stored) == event
    assert e.decode_event(msgspec.Raw(stored)) == event


def test_stored_forms_cover_every_event_type() -> None:
    assert {type(event) for event, _ in STORED} == set(e.KnownEvent.__args__)


@pytest.mark.parametrize(
    "stored",
    [
        b'{"type":"TaskSplit","into":["1"]}',
        b'{"type":"Deleted"}',
        b'{"type":"Deleted","task":1}',
        b'{"x":1}',
        b"3",
        b"null",
    ],
)
def test_event_of_another_version_is_kept_unchanged(stored: bytes) -> None:
    event = e.decode_event(stored)
    assert isinstance(event, e.UnknownEvent)
    assert msgspec.json.encode(event.raw) == stored


def test_members_of_a_later_version_are_ignored() -> None:
    assert e.decode_event(b'{"type":"Deleted","task":"1","why":"later"}') == e.Deleted("1")


def test_unset_differs_from_null() -> None:
    assert e.decode_event(b'{"type":"TaskEdited","task":"1"}') == e.TaskEdited("1", parent=UNSET)
    assert e.decode_event(b'{"type":"TaskEdited","task":"1","parent":null}') == e.TaskEdited("1", parent=None)


def test_recorded_event_is_forwarded_unchanged() -> None:
    event = b'{ "type" : "Later" , "x" : 1 }'
    wire = b'{"seq":7,"conversation":"c","version":3,"at":5,"actor":"a","event":%b}' % event
    recorded = msgspec.json.decode(wire, type=e.Recorded)
    assert (recorded.seq, recorded.conversation, recorded.version, recorded.at, recorded.actor) == (7, "c", 3, 5, "a")
    assert bytes(recorded.event) == event
    assert msgspec.json.encode(recorded) == wire
