from typing import Any


def test_claim_outlives_command(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    assert punch("queue", "claim", "--owner", "ann").out == "  ● #1 a  @ann\n"
    taken = punch("queue", "claim", "-o", "bob", "-n", "2", "--lease", "2h", "--json").json
    assert [task["id"] for task in taken["tasks"]] == ["2", "3"]
    nothing = punch("queue", "claim", "-o", "eve")
    assert (nothing.code, nothing.err.splitlines()[0]) == (1, "error: no task is ready")
    held = punch("queue", "claim", "1", "-o", "eve")
    assert (held.code, "held by ann" in held.err) == (1, True)


def test_only_owner_can_release(punch: Any) -> None:
    punch("add", "a")
    fence = punch("queue", "claim", "-o", "ann", "--json").json["fence"]
    assert punch("queue", "release", "1", "-o", "bob").code == 1
    assert punch("queue", "release", "1", "-o", "ann", "--fence", str(fence + 1)).code == 1
    assert punch("queue", "release", "#1", "-o", "ann").out == "  ☐ #1 a\n"


def test_next_done_completes_and_claims(punch: Any) -> None:
    for title in "abcd":
        punch("add", title)
    assert punch("next", "-o", "ann", "--take").out == "  ● #1 a  @ann\n"
    assert punch("next", "-o", "ann", "-r", "in a.txt").out == "  ✓ #1 a\n  ● #2 b  @ann\n"
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "in a.txt"
    assert punch("next", "-o", "ann", "--done").out == "  ✓ #2 b\n  ● #3 c  @ann\n"
    punch("queue", "claim", "-o", "ann")
    assert "--done ID" in punch("next", "-o", "ann", "--done").err
    assert punch("next", "-o", "ann", "--done", "").code == 2
    outcome = punch("next", "-o", "ann", "--done", "3")
    assert (outcome.code, outcome.err.splitlines()[0]) == (1, "error: no task is ready")
    assert punch("show", "3", "--json").json["task"]["status"] == "completed"


def test_next_shows_own_task_in_progress(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    assert punch("next", "-o", "ann", "-t").out == "  ● #1 a  @ann\n"
    again = punch("next", "-o", "ann", "--take")
    assert (again.code, again.out) == (0, "  ● #1 a  @ann\n")
    assert again.err == "ann has this in progress; to complete it and claim the next: punch next --done\n"
    assert punch("next", "-o", "ann", "--json").json["task"]["id"] == "1"
    assert [task["status"] for task in punch("list", "--json").json["tasks"]] == ["in_progress", "pending"]


def test_next_shows_own_task_that_was_blocked(punch: Any) -> None:
    for words in ("add own", "start 1", "add blocker", "add part --parent 2", "edit 1 --blocked-by 2"):
        punch(*words.split())
    assert "#1 own" in punch("next").out


def test_next_shows_most_urgent_task_without_claim(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--priority", "high")
    punch("add", "c", "--priority", "high")
    outcome = punch("next", "-o", "ann")
    assert (outcome.code, outcome.out) == (0, "  ☐ #2 ! b\n")
    assert outcome.err == "to claim it: punch start 2, or punch next --take\n"
    assert punch("next", "--json").json["task"]["id"] == "2"
    assert {task["status"] for task in punch("list", "--json").json["tasks"]} == {"pending"}
    assert punch("next", "-o", "ann", "--take").out == "  ● #2 ! b  @ann\n"


def test_wait_without_take_is_rejected(punch: Any) -> None:
    assert punch("next", "--wait", "1s").code == punch("next", "--lease", "1h").code == 2


def test_only_owner_can_renew(punch: Any) -> None:
    punch("add", "a")
    before = punch("queue", "claim", "-o", "ann", "--lease", "1m", "--json").json["task"]["lease_expires_at"]
    assert punch("queue", "renew", "1", "-o", "bob").code == 1
    after = punch("queue", "renew", "1", "-o", "ann", "--lease", "2h", "--json").json["task"]["lease_expires_at"]
    assert after - before > 3_600_000


def test_next_done_rejects_task_not_in_progress(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("next", "-o", "ann", "--done", "1")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ann does not have #1 in progress\n")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"


def test_finished_list_exits_0(punch: Any) -> None:
    punch("add", "a")
    punch("queue", "claim", "-o", "ann")
    outcome = punch("next", "-o", "ann", "--done")
    assert (outcome.code, outcome.out, outcome.err) == (0, "  ✓ #1 a\nall tasks are finished\n", "")
    assert punch("next", "-o", "ann", "--json").json["task"] is None
    assert punch("next", "-o", "ann", "--json").code == 0


def test_empty_list_advises_add(punch: Any) -> None:
    outcome = punch("next", "-o", "ann")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.endswith(" is empty\n  add a task: punch add TITLE\n")
    assert outcome.err.startswith("error: the list ")
    assert punch("next", "-o", "ann", "--json").code == 1
    assert punch("next", "-o", "ann", "--done").code == 1


def test_result_without_task_is_rejected(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("next", "-o", "ann", "-r", "in a.txt")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: ann has no task in progress to complete\n")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"
