import json

import msgspec

from punchlist_schemas import results as r
from punchlist_schemas.events import Recorded


def test_default_limits_are_included() -> None:
    assert json.loads(msgspec.json.encode(r.Limits())) == {
        "frame_bytes": 1_048_576,
        "depth": 32,
        "batch": 100,
        "in_flight": 64,
        "frame_seconds": 10.0,
        "connections": 10_240,
        "subscriptions": 1_000,
    }


def test_mutation_result_has_version_and_position() -> None:
    answer = r.DeleteResult(version=2, seq=9, deleted=("1",))
    assert json.loads(msgspec.json.encode(answer)) == {"version": 2, "seq": 9, "deleted": ["1"]}


def test_events_are_forwarded_unchanged() -> None:
    stored = b'{"seq":1,"conversation":"c","version":1,"at":0,"actor":"a","event":{"type":"Later", "x": 1}}'
    push = r.EventsPush(subscription="s", events=(msgspec.json.decode(stored, type=Recorded),))
    assert msgspec.json.encode(push) == b'{"subscription":"s","events":[%b]}' % stored


def test_client_reads_results_of_a_later_version() -> None:
    assert msgspec.json.decode(b'{"ok":true,"later":1}', type=r.Acknowledged) == r.Acknowledged()
