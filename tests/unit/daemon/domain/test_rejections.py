"""Messages of rejections."""

from msgspec.structs import replace

from punchlist_schemas.things import Task
from punchlistd.domain.rejections import dependency_cycle, lease_lost, task_blocked, task_not_found


def task(name: str) -> Task:
    return Task(
        id=name,
        title=f"title {name}",
        status="pending",
        priority="normal",
        created_at=1,
        updated_at=1,
        status_changed_at=1,
        version=1,
    )


def test_message_is_short_and_data_complete() -> None:
    names = [str(number) for number in range(1, 1_001)]
    for refusal, member in ((dependency_cycle(names), "path"), (task_blocked(task("0"), map(task, names)), "blockers")):
        assert len(refusal.message) < 200
        assert "…" in refusal.message
        assert len(refusal.data[member]) == 1_000


def test_few_tasks_are_all_named() -> None:
    assert "#1 → #2 → #1;" in dependency_cycle(["1", "2", "1"]).message
    assert "waits for #1, #2;" in task_blocked(task("3"), [task("1"), task("2")]).message


def test_hostile_id_is_escaped() -> None:
    assert "\x1b" not in task_not_found("\x1b[31m").message


def test_renewal_of_ended_claim_gives_advice() -> None:
    begun = replace(task("1"), status="in_progress")
    assert lease_lost(begun, None).message.endswith("Claim the task again.")
    told = lease_lost(replace(begun, owner="ann"), None).message
    assert told.endswith("ann has it without a claim and may claim it; pausing or reopening it frees it for others.")
