import json

import msgspec

from punchlist_schemas import results as r
from punchlist_schemas.events import Recorded


def test_all_limits_are_told_also_those_at_their_default() -> None:
    assert json.loads(msgspec.json.encode(r.Limits())) == {
        "frame_bytes": 1_048_576,
        "depth": 32,
        "batch": 100,
        "in_flight": 64,
        "frame_seconds": 10.0,
        "connections": 10_240,
        "subscriptions": 1_000,
    }


def test_an_answer_to_a_mutation_tells_version_and_position() -> None:
    answer = r.DeleteResult(version=2, seq=9, deleted=("1",))
    assert json.loads(msgspec.json.encode(answer)) == {"version": 2, "seq": 9, "deleted": ["1"]}


def test_events_are_forwarded_as_they_were_stored() -> None:
    stored = b'{"seq":1,"conversation":"c","version":1,"at":0,"actor":"a","event":{"type":"Later", "x": 1}}'
    push = r.EventsPush(subscription="s", events=(msgspec.json.decode(stored, type=Recorded),))
    assert msgspec.json.encode(push) == b'{"subscription":"s","events":[%b]}' % stored


def test_a_client_of_this_version_reads_answers_of_a_later_one() -> None:
    assert msgspec.json.decode(b'{"ok":true,"later":1}', type=r.Acknowledged) == r.Acknowledged()
