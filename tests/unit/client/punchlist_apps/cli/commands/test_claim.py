from typing import Any


def test_claiming_takes_the_next_ready_task_and_keeps_it_after_the_command(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    assert punch("queue", "claim", "--owner", "ann").out == "  ● #1 a  @ann\n"
    taken = punch("queue", "claim", "-o", "bob", "-n", "2", "--lease", "2h", "--json").json
    assert [task["id"] for task in taken["tasks"]] == ["2", "3"]
    nothing = punch("queue", "claim", "-o", "eve")
    assert (nothing.code, nothing.err.splitlines()[0]) == (1, "error: no task is ready")
    held = punch("queue", "claim", "1", "-o", "eve")
    assert (held.code, "held by ann" in held.err) == (1, True)


def test_a_task_is_given_back_by_its_owner_alone(punch: Any) -> None:
    punch("add", "a")
    fence = punch("queue", "claim", "-o", "ann", "--json").json["fence"]
    assert punch("queue", "release", "1", "-o", "bob").code == 1
    assert punch("queue", "release", "1", "-o", "ann", "--fence", str(fence + 1)).code == 1
    assert punch("queue", "release", "#1", "-o", "ann").out == "  ☐ #1 a\n"


def test_next_completes_what_is_mine_and_takes_another(punch: Any) -> None:
    for title in "abcd":
        punch("add", title)
    assert punch("next", "-o", "ann", "--take").out == "  ● #1 a  @ann\n"
    assert punch("next", "-o", "ann", "-r", "in a.txt").out == "  ✓ #1 a\n  ● #2 b  @ann\n"
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "in a.txt"
    assert punch("next", "-o", "ann", "--done").out == "  ✓ #2 b\n  ● #3 c  @ann\n"
    punch("queue", "claim", "-o", "ann")
    assert "--done ID" in punch("next", "-o", "ann", "--done").err
    assert punch("next", "-o", "ann", "--done", "").code == 2
    told = punch("next", "-o", "ann", "--done", "3")
    assert (told.code, told.err.splitlines()[0]) == (1, "error: no task is ready")
    assert punch("show", "3", "--json").json["task"]["status"] == "completed"


def test_next_by_itself_completes_nothing_and_shows_what_is_mine(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b")
    assert punch("next", "-o", "ann", "-t").out == "  ● #1 a  @ann\n"
    again = punch("next", "-o", "ann", "--take")
    assert (again.code, again.out) == (0, "  ● #1 a  @ann\n")
    assert again.err == "ann has this in progress; to complete it and claim the next: punch next --done\n"
    assert punch("next", "-o", "ann", "--json").json["task"]["id"] == "1"
    assert [task["status"] for task in punch("list", "--json").json["tasks"]] == ["in_progress", "pending"]


def test_next_shows_the_most_urgent_task_and_takes_nothing(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--priority", "high")
    punch("add", "c", "--priority", "high")
    told = punch("next", "-o", "ann")
    assert (told.code, told.out) == (0, "  ☐ #2 ! b\n")
    assert told.err == "to claim it: punch start 2, or punch next --take\n"
    assert punch("next", "--json").json["task"]["id"] == "2"
    assert {task["status"] for task in punch("list", "--json").json["tasks"]} == {"pending"}
    assert punch("next", "-o", "ann", "--take").out == "  ● #2 ! b  @ann\n"


def test_waiting_without_taking_is_refused(punch: Any) -> None:
    assert punch("next", "--wait", "1s").code == punch("next", "--lease", "1h").code == 2


def test_a_claim_is_renewed_by_its_owner_alone(punch: Any) -> None:
    punch("add", "a")
    before = punch("queue", "claim", "-o", "ann", "--lease", "1m", "--json").json["task"]["lease_expires_at"]
    assert punch("queue", "renew", "1", "-o", "bob").code == 1
    after = punch("queue", "renew", "1", "-o", "ann", "--lease", "2h", "--json").json["task"]["lease_expires_at"]
    assert after - before > 3_600_000


def test_next_takes_nothing_when_what_is_said_to_be_done_is_not_in_progress(punch: Any) -> None:
    punch("add", "a")
    refused = punch("next", "-o", "ann", "--done", "1")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: ann does not have #1 in progress\n")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"


def test_the_end_of_the_work_is_no_failure(punch: Any) -> None:
    punch("add", "a")
    punch("queue", "claim", "-o", "ann")
    told = punch("next", "-o", "ann", "--done")
    assert (told.code, told.out, told.err) == (0, "  ✓ #1 a\nall tasks are finished\n", "")
    assert punch("next", "-o", "ann", "--json").json["task"] is None
    assert punch("next", "-o", "ann", "--json").code == 0


def test_an_empty_list_says_how_to_add(punch: Any) -> None:
    told = punch("next", "-o", "ann")
    assert (told.code, told.out) == (1, "")
    assert told.err.endswith(" is empty\n  add a task: punch add TITLE\n")
    assert told.err.startswith("error: the list ")
    assert punch("next", "-o", "ann", "--json").code == 1
    assert punch("next", "-o", "ann", "--done").code == 1


def test_a_result_of_nothing_is_refused_and_takes_nothing(punch: Any) -> None:
    punch("add", "a")
    told = punch("next", "-o", "ann", "-r", "in a.txt")
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("error: ann has no task in progress to complete\n")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"
