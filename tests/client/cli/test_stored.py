"""The changes that an error names."""

from punchlist.cli import stored, wire

PLACE = {"space": "team", "conversation": "plan"}


def test_a_repair_is_stored_if_it_removed_posts() -> None:
    wire.completed.append(("space.repair", PLACE, {"posts": [], "removed": 0}))
    assert stored.advice() == ""
    wire.completed.append(("space.repair", PLACE, {"posts": [], "removed": 1}))
    assert stored.advice() == "the change is stored (space.repair of plan), so don't repeat it"
