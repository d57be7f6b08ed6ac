from typing import Any


def test_claiming_takes_the_next_ready_task_and_keeps_it_after_the_command(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    assert punch("claim", "--owner", "ann").out == "  ● #1 a  @ann\n"
    taken = punch("claim", "-o", "bob", "-n", "2", "--lease", "2h", "--json").json
    assert [task["id"] for task in taken["tasks"]] == ["2", "3"]
    nothing = punch("claim", "-o", "eve")
    assert (nothing.code, nothing.err.splitlines()[0]) == (1, "error: nothing_ready: there is no task to be had")
    held = punch("claim", "1", "-o", "eve")
    assert (held.code, "held by ann" in held.err) == (1, True)


def test_a_task_is_given_back_by_its_owner_alone(punch: Any) -> None:
    punch("add", "a")
    fence = punch("claim", "-o", "ann", "--json").json["fence"]
    assert punch("release", "1", "-o", "bob").code == 1
    assert punch("release", "1", "-o", "ann", "--fence", str(fence + 1)).code == 1
    assert punch("release", "#1", "-o", "ann").out == "  ☐ #1 a\n"


def test_next_completes_what_is_mine_and_takes_another(punch: Any) -> None:
    for title in "abc":
        punch("add", title)
    assert punch("next", "-o", "ann").out == "  ● #1 a  @ann\n"
    assert punch("next", "-o", "ann", "-r", "in a.txt").out == "  ● #2 b  @ann\n"
    assert punch("show", "1", "--json").json["task"]["result_summary"] == "in a.txt"
    punch("claim", "-o", "ann")
    assert "--done ID" in punch("next", "-o", "ann").err
    assert punch("next", "-o", "ann", "--done", "3").code == 1
    assert punch("show", "3", "--json").json["task"]["status"] == "completed"


def test_next_takes_nothing_when_what_is_said_to_be_done_is_not_in_progress(punch: Any) -> None:
    punch("add", "a")
    refused = punch("next", "-o", "ann", "--done", "1")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: not_found: ann does not have #1 in progress\n")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"


def test_a_duration_that_is_none_is_refused(punch: Any) -> None:
    assert punch("claim", "--lease", "soon").code == 2
    assert punch("claim", "--lease", "48h").code == 1
