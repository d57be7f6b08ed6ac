import random
from operator import attrgetter
from typing import Any

from punchlist.calls.rows import Rows
from punchlist_schemas.results import RowsPush
from punchlist_schemas.things import Counts, Row


def row(name: int, rank: str, **members: Any) -> Row:
    told: Any = {"title": "t", "status": "pending", "priority": "normal", "version": 1, **members}
    return Row(id=str(name), rank=rank, created_at=1, updated_at=1, status_changed_at=1, **told)


def push(*rows: Row, **more: Any) -> RowsPush:
    members: dict[str, Any] = {"version": 1, "seq": 1, "counts": Counts(), **more}
    return RowsPush(subscription="s", conversation="c", rows=rows, **members)


def test_each_row_change_is_reported_once() -> None:
    rows = Rows()
    rows.fold(push(row(1, "a"), row(2, "b"), reset=True))
    assert rows.take_changes() is None
    assert rows.take_changes() == set()
    rows.fold(push(row(2, "b", status="failed")))
    assert [task.status for task in rows.order] == ["pending", "failed"]
    assert rows.take_changes() == {"2"}
    for change in (push(row(2, "0")), push(row(3, "c")), push(gone=("3",)), push(row(1, "a", parent="2"))):
        rows.fold(change)
        assert rows.take_changes() is None
    assert [task.id for task in rows.order] == ["2", "1"]


def test_rows_are_ordered_by_rank_and_id() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    rows, known = Rows(), dict[str, Row]()
    for _ in range(400):
        changed = [row(chance.randrange(30), chance.choice("abcd")) for _ in range(chance.randrange(3))]
        gone = tuple(str(chance.randrange(30)) for _ in range(chance.randrange(2)))
        reset = chance.random() < 0.05
        known = {} if reset else {name: one for name, one in known.items() if name not in gone}
        known.update((one.id, one) for one in changed)
        rows.fold(push(*changed, gone=gone, reset=reset))
        assert rows.order == sorted(known.values(), key=attrgetter("rank", "id"))
        assert rows.by_id == known
