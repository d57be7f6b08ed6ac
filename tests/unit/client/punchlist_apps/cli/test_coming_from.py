"""The commands in docs/coming-from.md work as the page says."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[5] / "docs" / "coming-from.md").read_text("utf-8")
WORDS = re.findall(r"`(punch [^`]*)` \|$", PAGE.partition("## Commands")[2], re.MULTILINE)

FILES = {
    ".beads/issues.jsonl": '{"id":"bd-1","title":"a","status":"open"}',
    ".taskmaster/tasks/tasks.json": '{"master":{"tasks":[{"id":1,"title":"a","subtasks":[]}]}}',
    "shrimp_data/tasks.json": '{"tasks":[{"name":"a","description":"","dependencies":[]}]}',
    "feature_list.json": '[{"description":"a","passes":false}]',
    "prd.json": '{"userStories":[{"id":"US-1","title":"a","passes":false}]}',
    "plan.json": '{"plan":[{"step":"a","status":"pending"}]}',
    "board.json": '{"lists":[],"cards":[{"id":"1","name":"a","idList":"2"}]}',
    "Tasks.json": '{"items":[{"kind":"tasks#task","title":"a"}]}',
    "sheet.csv": "Name;Status\na;open\n",
    "tasks/s1/1.json": '{"id":"1","subject":"a"}',
    "todos/s1-agent-s1.json": '[{"content":"a","status":"pending"}]',
    "issues.csv": "Summary,Issue key,Status\na,A-1,Done\n",
    "todo.txt": "(A) a\n",
    "todo.org": "* TODO a\n",
    "tasks.ics": "BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:a\nEND:VTODO\nEND:VCALENDAR\n",
    "PLAN.md": "- [ ] a\n",
    ".kiro/specs/NAME/tasks.md": "# Implementation Plan\n\n- [ ] a\n  - _Requirements: 1.1_\n",
    "specs/NAME/tasks.md": "# Tasks: x\n\n- [ ] T001 a\n",
    "openspec/changes/NAME/tasks.md": "- [ ] a\n",
    "Week.md": "- [ ] a 📅 2026-11-30\n",
    "Board.md": "---\nkanban-plugin: board\n---\n\n## Later\n\n- [ ] a\n",
    "pages/Project.md": "- TODO a\n",
    "backlog/tasks/task-1 - a.md": "---\nid: task-1\ntitle: a\nstatus: To Do\ndependencies: []\n---\n",
}
PIPED = {
    "bd export": '{"id":"bd-1","title":"a","status":"open"}\n',
    "task export": '[{"uuid":"1","description":"a","status":"pending"}]',
    "glab api": '[{"iid":1,"title":"a","state":"opened"}]',
    "gh issue list": '[{"number":1,"title":"a","state":"OPEN"}]',
}


def list_imports() -> list[str]:
    table = PAGE.partition("| you have | command |")[2].partition("\n\n")[0]
    return [command.replace("\\|", "|") for command in re.findall(r"`([^`]*punch import[^`]*)`", table)]


@pytest.mark.parametrize("command", list_imports())
def test_every_import_of_the_page_works(
    punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    producer, _, line = command.rpartition(" | ")
    stdin = next((text for start, text in PIPED.items() if producer.startswith(start)), "")
    assert bool(producer) is bool(stdin)
    outcome = punch(*shlex.split(line.replace("~/.claude/", ""))[1:], "-c", "in", stdin=stdin)
    assert outcome.lines[0].startswith("imported 1 task (")
    tasks = json.loads(punch("list", "-c", "in", "--json").out)["tasks"]
    assert [task["title"].removeprefix("T001 ") for task in tasks if not task.get("is_heading")] == ["a"]


def test_every_command_of_the_page_works(punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for title in ("a word", "b", "c"):
        punch("add", title)
    assert len(WORDS) > 12
    for command in WORDS:
        outcome = punch(*shlex.split(command)[1:])
        assert (outcome.code, outcome.err.startswith("error")) == (0, False), command
    assert (tmp_path / "list.json").exists()
