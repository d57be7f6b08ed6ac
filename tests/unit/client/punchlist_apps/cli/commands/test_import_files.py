import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.commands import import_files
from punchlist_testing.terminal import terminal

PLAN = "# Plan\n- [x] a\n- [ ] b\n  - [/] c\n"


def test_checklist_is_imported_in_one_call(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    outcome = punch("import", str(tmp_path / "plan.md"))
    assert outcome.lines == [
        "imported 3 tasks (markdown)",
        "  skipped: 1 × the document's title (line 1)",
        "  to reverse this: punch undo",
    ]
    assert punch("list").lines == ["default  1/3  1 in progress", "  ✓ #1 a", "  ☐ #2 b", "    ● #3 c"]
    punch("undo")
    assert punch("list").lines[1:] == ["  no tasks"]


def test_json_formats_are_read_from_standard_input(punch: Any) -> None:
    todos = {"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a"}]}
    assert punch("import", "-", stdin=json.dumps(todos)).lines[0] == "imported 1 task (todowrite)"
    assert punch("import", "-", stdin='{"tasks": [{"id": "1", "title": "b"}]}').lines[0] == "imported 1 task (features)"
    assert punch("import", "-", "--from", "markdown", stdin="- {").lines[0] == "imported 1 task (markdown)"
    assert punch("import", "-", stdin='{"id": "4", "subject": "d"}').lines[0] == "imported 1 task (claude)"


def test_repeated_import_keeps_statuses(punch: Any) -> None:
    plan = "## Build\n- [ ] a\n- [ ] b\n"
    punch("import", "-", stdin=plan)
    punch("done", "2", "-r", "did it")
    punch("edit", "3", "--label", "mine")
    version = punch("list", "--json").json["version"]
    again = punch("import", "-", stdin=plan)
    assert again.lines == ["imported 0 tasks, 3 unchanged (markdown)"]
    assert punch("list", "--json").json["version"] == version
    more = punch("import", "-", stdin=plan.replace("] b", "] b\n  More.\n- [?] c"))
    assert more.lines[0] == "imported 1 task, 1 updated, 2 unchanged (markdown)"
    outcome, changed = punch("list", "--json").json["tasks"][1:3]
    assert (outcome["status"], outcome["result_summary"]) == ("completed", "did it")
    assert (changed["description"], changed["labels"]) == ("More.", ["mine"])


def test_concurrent_imports_add_no_duplicates(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = import_files.compare
    raced: list[int] = []

    def late(*args: Any, **options: Any) -> Any:
        found = real(*args, **options)
        if not raced:
            raced.append(1)
            punch("import", "-", stdin=PLAN)  # another import comes first
        return found

    monkeypatch.setattr(import_files, "compare", late)
    assert punch("import", "-", stdin=PLAN).lines[0] == "imported 0 tasks, 3 unchanged (markdown)"
    assert len(punch("list", "--json").json["tasks"]) == 3


def test_large_import_takes_several_calls(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist_apps.files.importers.matching.CALL_BYTES", 300)
    text = "".join(f"- [ ] task number {number}\n" for number in range(30))
    outcome = punch("import", "-", stdin=text)
    assert outcome.lines[0] == "imported 30 tasks (markdown)"
    assert len(punch("list", "--json").json["tasks"]) == 30
    calls = outcome.lines[-1].rpartition(" ")[2]
    assert int(calls) > 1
    punch("undo", "-n", calls)
    assert punch("list").lines[1:] == ["  no tasks"]


def test_strict_import_rejects_losses(punch: Any) -> None:
    outcome = punch("import", "-", "--strict", stdin="# Plan\nProse.\n- [ ] a\n- [Q] b\n- [ ] \n")
    assert outcome.err.startswith(
        "error: standard input:5: can't be imported whole: 1 × tasks without a title, and 1 more kinds"
    )
    assert punch("import", "-", "--strict", stdin="# Plan\nProse.\n- [ ] a\n").code == 0


def test_take_status_applies_statuses_of_file(punch: Any) -> None:
    punch("import", "-", stdin="- [ ] a\n- [ ] b\n")
    outcome = punch("import", "-", "--take-status", "--dry-run", stdin="- [x] a\n- [ ] b\n")
    assert outcome.lines == [
        "would import 0 tasks, 1 updated, 1 unchanged (markdown)",
        "  ~ #1 a",
        "      status: pending → completed",
    ]
    punch("import", "-", "--take-status", stdin="- [x] a\n- [ ] b\n")
    assert punch("list").lines[1:] == ["  ✓ #1 a", "  ☐ #2 b"]


def test_unreadable_file_is_rejected_with_line(punch: Any, tmp_path: Path) -> None:
    for content, message in (
        ("words\n", "plan.md: no tasks found; the nearest form is markdown, which needs list items"),
        ("- [ ] a\n- \0\n", "plan.md:2: not text"),
        ("", "plan.md: the file is empty"),
    ):
        (tmp_path / "plan.md").write_text(content)
        outcome = punch("import", str(tmp_path / "plan.md"))
        assert (outcome.code, outcome.err.startswith("error: "), message in outcome.err) == (1, True, True), outcome.err
    assert punch("list", "--json").json["version"] == 0


def test_import_rejects_non_files(punch: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    assert "not a regular file" in punch("import", str(tmp_path / "pipe")).err
    assert "no tasks in this folder" in punch("import", str(tmp_path / "empty")).err
    missing = punch("import", str(tmp_path / "missing.md"))
    assert (missing.code, "No such file" in missing.err) == (1, True)


def test_dry_run_matches_import(punch: Any) -> None:
    punch("add", "b", "--label", "old")
    plan = "## P\n- [x] a\n- [!] b\n  Text.\n  - [/] c\n\nProse.\n"
    outcome = punch("import", "-", "--dry-run", stdin=plan)
    assert outcome.lines == [
        "would import 3 tasks, 1 updated (markdown)",
        "  + ☐ P",
        "  + ✓ a  · part of “P”",
        "  + ● c  · part of “b”",
        "  ~ #1 b",
        "      description: none → Text.",
        "      priority: normal → high",
        "      part of “P”",
        "  skipped: 1 × lines of text that belong to no task",
        "  converted: 1 × box [!], imported as high (line 3)",
    ]
    before = punch("list", "--json").json["version"]
    as_json = punch("import", "-", "--dry-run", "--json", stdin=plan).json
    assert (as_json["format"], as_json["added"], len(as_json["tasks"])) == ("markdown", 3, 4)
    assert punch("list", "--json").json["version"] == before
    punch("import", "-", stdin=plan)
    old = punch("list", "--json").json["tasks"][0]
    assert (old["description"], old["priority"], old["labels"]) == ("Text.", "high", ["old"])
    assert punch("import", "-", "--dry-run", stdin=plan).lines[0] == "would import 0 tasks, 4 unchanged (markdown)"


def test_replacement_keeps_finished_tasks(punch: Any) -> None:
    punch("add", "gone", "--status", "completed")
    punch("add", "open")
    punch("add", "kept", "--status", "completed")
    outcome = punch("import", "-", "--replace", "--dry-run", stdin="- [ ] new\n- [ ] kept\n")
    assert outcome.lines == [
        "would import 1 task, 1 unchanged, 1 removed (markdown)",
        "  + ☐ new",
        "  - #1 gone",
    ]
    punch("import", "-", "--replace", stdin="- [ ] new\n- [ ] kept\n")
    assert punch("list").lines[1:] == ["  ☐ #2 open", "  ☐ #4 new", "  ✓ #3 kept"]


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_export_round_trips(punch: Any, tmp_path: Path, form: str) -> None:
    punch("add", "a", "-d", "two\nlines", "-p", "urgent", "--meta", "k=1")
    punch("add", "b", "-b", "1", "--parent", "1", "-o", "ada")
    punch("add", "c -->", "--status", "completed")
    punch("fail", "2", "--reason", "why")
    path = str(tmp_path / "list")
    written = punch("export", path, "--format", form)
    assert (written.out, written.err) == ("", f"wrote {path} ({form})\n")
    punch("import", path, "-c", "copy")
    members = (
        "id",
        "title",
        "description",
        "priority",
        "status",
        "metadata",
        "owner",
        "parent",
        "blocked_by",
        "fail_reason",
    )
    shown = [
        [{name: task.get(name) for name in members} for task in punch("list", "-c", name, "--json").json["tasks"]]
        for name in ("default", "copy")
    ]
    for one in shown[1]:
        del one["metadata"]["imported"]
        one["metadata"] = one["metadata"] or None
    assert shown[0] == shown[1]


def test_export_format_follows_file_name(punch: Any, tmp_path: Path) -> None:
    punch("add", "a")
    for name, start in (("x.md", "- [ ] a"), ("x.jsonl", '{"seq":1'), ("x.json", "{")):
        punch("export", str(tmp_path / name))
        assert (tmp_path / name).read_text().startswith(start)


def test_forced_export_keeps_link_and_permissions(punch: Any, tmp_path: Path) -> None:
    punch("add", "a")
    path, link = tmp_path / "plan.md", tmp_path / "link.md"
    path.write_text("mine\n")
    path.chmod(0o640)
    link.symlink_to(path)
    for name in (path, link):
        outcome = punch("export", str(name))
        assert (outcome.code, path.read_text()) == (1, "mine\n")
        assert outcome.err == f"error: {name}: the file exists; to replace it, add --force\n"
    assert punch("export", str(link), "--force").code == 0
    assert path.read_text().startswith("- [ ] a")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.glob("*.md*")) == [link, path]


def test_failed_export_leaves_no_file(punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    punch("add", "a")
    (tmp_path / "old.md").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", full)
        result = punch("export", str(tmp_path / "old.md"), "--force").err
        assert result == f"error: {tmp_path}/old.md: No space left on device\n"
    assert (tmp_path / "old.md").read_text() == "mine"
    assert not list(tmp_path.glob("*.tmp"))
    (tmp_path / "out").mkdir()
    for words in (("nowhere/x.md",), ("out", "--force")):
        assert punch("export", str(tmp_path / words[0]), *words[1:]).code == 1
    (tmp_path / "out" / "plan.md").mkdir()
    assert "not a regular file" in punch("export", str(tmp_path / "out" / "plan.md"), "--force").err
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["plan.md"]


def test_events_are_exported_as_json_lines(punch: Any) -> None:
    punch("add", "a")
    punch("done", "1")
    events = [json.loads(line) for line in punch("export", "--format", "jsonl").lines]
    assert [event["version"] for event in events] == [1, 2, 3]
    assert events[2]["event"]["type"] == "StatusChanged"


@pytest.mark.parametrize("form", ["markdown", "json", "jsonl"])
def test_export_is_escaped_only_on_terminal(punch: Any, form: str) -> None:
    punch("add", "\x1b[31m \u202eabc")
    with terminal("export", "--format", form) as screen:
        assert screen.finish() == 0
        assert {"\x1b", "\u202e"}.isdisjoint(screen.shown)
        assert "\\u202eabc" in screen.shown
    assert "\u202eabc" in punch("export", "--format", form).out


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown"])
def test_empty_list_is_exported(punch: Any, tmp_path: Path, form: str) -> None:
    punch("add", "a")
    punch("list", "clear", "--yes")
    assert punch("export", str(tmp_path / "out"), "--format", form).code == 0
