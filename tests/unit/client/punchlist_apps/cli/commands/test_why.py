from pathlib import Path
from typing import Any

import pytest


def test_ready_task_shows_its_place(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-p", "low")
    assert punch("why", "1").lines == ["#1 a", "  ← it is ready, and the next one to be claimed"]
    assert punch("why", "2").lines[1] == "  ← it is ready; 1 is before it, #1 a first"
    assert punch("why", "2", "--json").json["ready"] is True


def test_causes_are_nested_and_unique(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "-b", "1")
    punch("add", "c", "-b", "1", "-b", "2")
    punch("queue", "claim", "1", "-o", "ann")
    assert punch("why", "3").lines == [
        "#3 c",
        "  ← waits for #1 a (in_progress)",
        "    ← it is in progress with ann: punch reopen 1 frees it for others",
        "  ← waits for #2 b (pending)",
        "    ← waits for #1 a (in_progress) (see above)",
    ]


def test_parents_stops_and_serial_lists_are_causes(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--parent", "1")
    punch("pause", "1")
    assert punch("why", "2").lines[1] == "  ← its parent #1 a is paused"
    punch("fail", "1")
    punch("daemon", "call", "conversation.configure", "conversation=default", 'settings={"on_failure":"stop"}')
    punch("add", "c")
    assert punch("why", "3").lines[1].startswith("  ← the list stops at failures, and #1 a has failed")
    punch("rm", "1", "--yes")
    punch("daemon", "call", "conversation.configure", "conversation=default", 'settings={"execution":"serial"}')
    assert punch("why", "3").lines[1] == "  ← the list runs one task at a time, and #2 b is in progress"
    punch("done", "3")
    assert punch("why", "3").lines[1] == "  ← it is completed: punch reopen 3"


def test_unknown_task_is_rejected(punch: Any) -> None:
    punch("add", "a")
    assert punch("why", "9").code == 1


def test_open_children_take_one_line(punch: Any) -> None:
    punch("add", "epic")
    for title in ("a", "b"):
        punch("add", title, "--parent", "1")
    assert punch("why", "1").lines == ["#1 epic", "  ← has 2 open tasks: #2, #3"]
    punch("done", "2")
    assert punch("why", "1").lines[1] == "  ← has 1 open task: #3"
    for number in range(120):
        punch("daemon", "call", "task.add", "conversation=default", f"title=t{number}", "parent=1")
    assert punch("why", "1").lines[1].startswith("  ← has more than 100 open tasks: #3, #4, ")


def test_heading_is_reopened_with_its_task(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("## Backend\n\n- [ ] schema\n- [ ] tests\n")
    punch("import", str(tmp_path / "plan.md"))
    punch("fail", "2")
    punch("done", "3")
    assert punch("why", "1").lines[1] == "  ← it has failed with #2: punch reopen 2"
    punch("reopen", "2")
    assert punch("show", "1", "--json").json["task"]["status"] == "pending"


def test_rejected_heading_is_named_as_cause(punch: Any, tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text("# P\n\n## H\n\n- c\n", "utf-8")
    punch("import", str(plan))
    ids = {task["title"]: task["id"] for task in punch("list", "--json").json["tasks"]}
    heading = ids["H"]
    punch("edit", heading, "--gate", "yes")
    punch("done", ids["c"])
    assert punch("approve", heading, "--yes", "--reject", "no tests", "--actor", "zoe").code == 0
    way = f"punch add TITLE --parent {heading}"
    assert f"it was rejected: no tests; reopen a task below it or add one: {way}" in punch("why", heading).out
    result = f"#{heading} H was rejected: no tests; {way} adds work below it"
    assert result in punch("next").err + punch("next").out
    assert result in punch("next", "--take").err
    waited = punch("wait", "--timeout", "60000")
    assert waited.code == 1 and f"#{heading}, which was rejected" in waited.err
    punch("add", "tests", "--parent", heading)
    assert "it was rejected" not in punch("why", heading).out
    assert punch("next").out.startswith("☐") or "tests" in punch("next").out


def test_advice_after_reopened_blocker_works(punch: Any) -> None:
    punch("set", "execution=serial")
    punch("add", "one")
    punch("add", "two", "--blocked-by", "1")
    punch("done", "1")
    punch("start", "2")
    punch("reopen", "1")
    assert "waits for #1 one (pending)" in punch("why", "2").out
    assert "#1" in next(line for line in punch("list").lines if "#2" in line)
    assert punch().lines[-1] == "next: punch pause 2  (two), which waits for #1"
    assert punch("pause", "2").code == 0
    assert punch().lines[-1] == "next: punch start 1  (one)"
    assert punch("start", "1").code == 0


def test_heading_is_not_assigned(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("## Backend\n\n- [ ] schema\n- [ ] tests\n")
    punch("import", str(tmp_path / "plan.md"))
    outcome = punch("assign", "1", "ann")
    assert outcome.code == 1
    assert "#1 is a heading" in outcome.err and "assign #2, #3: punch assign 2 3 ann" in outcome.err
    assert "nobody called" not in outcome.err
    assert punch("assign", "1", "--nobody").code == 0
    assert punch("assign", "2", "3", "ann").code == 0


def test_advice_of_rejected_assignment_works(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("## Backend\n\n- [ ] schema\n- [ ] tests\n\n### API\n\n- [ ] routes\n")
    punch("import", str(tmp_path / "plan.md"))
    punch("start", "2")
    assert "assign #3: punch assign 3 'ann b'" in punch("assign", "1", "ann b").err
    assert punch("assign", "3", "ann b").code == 0


def test_starting_several_reports_parent(punch: Any) -> None:
    punch("add", "epic")
    punch("add", "part", "--parent", "1")
    punch("add", "other")
    started = punch("start", "1", "3")
    assert started.code == 1
    assert "Task #1 has 1 open task: #2" in started.err and "#3 other" in started.out


def test_starting_several_names_missing_task(punch: Any) -> None:
    punch("add", "one")
    punch("start", "1")
    outcome = punch("start", "99", "1")
    assert outcome.code == 1
    assert "expected at least" not in outcome.err


def test_name_forges_no_error_line(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "one")
    assert all(line.startswith(("error: ", "punch: ", "  ")) for line in punch("assign", "1", "a\nX").err.splitlines())
    punch("assign", "1", "--nobody")
    monkeypatch.setenv("PUNCHLIST_OWNER", "b\nY")
    punch("start", "1")
    monkeypatch.delenv("PUNCHLIST_OWNER")
    outcome = punch("done", "1")
    assert outcome.code == 1 and "Y" in outcome.err
    assert all(line.startswith(("error: ", "  ")) for line in outcome.err.splitlines())
