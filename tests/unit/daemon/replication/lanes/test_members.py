"""Other daemons of a space."""

from punchlistd.replication.lanes.members import MAX_MEMBERS, Members


def test_forged_heartbeats_use_bounded_memory() -> None:
    members = Members("ann_1")
    for number in range(2 * MAX_MEMBERS):
        members.record_stuck(f"eve_{number}", {"plan": number})
    members.record_stuck("eve_0", {"plan": 10**6})
    assert members.find_longest("plan", 60) == (10**6, "eve_0")
    assert sum(map(len, members._stuck.values())) == MAX_MEMBERS  # pyright: ignore[reportPrivateUsage]
