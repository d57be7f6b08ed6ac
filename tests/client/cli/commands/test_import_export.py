import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.terminal import terminal

PLAN = "# Plan\n- [x] a\n- [ ] b\n  - [/] c\n"


def test_a_check_list_is_imported_in_one_call(punch: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(PLAN)
    done = punch("import", str(tmp_path / "plan.md"))
    assert done.lines == ["imported 3 tasks (markdown)", "  take it back: punch undo"]
    assert punch("list").lines == ["default  1/3  1 in progress", "  ✓ #1 a", "  ☐ #2 b", "    ● #3 c"]
    punch("undo")
    assert punch("list").lines[1:] == ["  no tasks"]


def test_standard_input_and_every_json_format(punch: Any) -> None:
    todos = {"todos": [{"content": "a", "status": "pending", "activeForm": "Doing a"}]}
    assert punch("import", "-", stdin=json.dumps(todos)).lines[0] == "imported 1 task (todowrite)"
    assert punch("import", "-", stdin='{"tasks": [{"id": "1", "title": "b"}]}').lines[0] == "imported 1 task (json)"
    assert punch("import", "-", "--format", "markdown", stdin="- {").lines[0] == "imported 1 task (markdown)"
    assert punch("import", "-", stdin='{"id": "4", "subject": "d"}').lines[0] == "imported 1 task (folder)"


def test_a_task_folder_is_imported_with_its_edges(punch: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / ".lock").write_text("")
    (folder / "notes.txt").write_text("no")
    (folder / "1.json").write_text(json.dumps({"id": "1", "subject": "a", "blocks": ["2"], "blockedBy": []}))
    (folder / "2.json").write_text("\ufeff" + json.dumps({"id": "2", "subject": "b", "blockedBy": ["1"]}))
    punch("add", "first")
    punch("import", str(folder))
    assert punch("list").lines[1:] == ["  ☐ #1 first", "  ☐ #2 a", "  ▸ #3 b  ← #2"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("plan.md", b"- [ ] a\n- [?] b\n", "plan.md:2: unknown box"),
        ("plan.md", b"words\n", "plan.md: no list items"),
        ("todos.json", b'{"todos": [\n{"content": }]}', "todos.json:2: not JSON"),
        ("plan.md", b"- [ ] a\n- [ ] \xff\n", "plan.md:2: not UTF-8"),
        ("plan.md", b"", "plan.md: no list items"),
    ],
)
def test_a_file_that_cannot_be_read_names_its_line_and_nothing_is_imported(
    punch: Any, tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    (tmp_path / name).write_bytes(content)
    refused = punch("import", str(tmp_path / name))
    assert refused.code == 1
    assert refused.err.startswith("error: unreadable_file: ")
    assert told in refused.err
    assert punch("list", "--json").json["version"] == 0


def test_what_is_no_file_is_refused(punch: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    assert "not a regular file" in punch("import", str(tmp_path / "pipe")).err
    assert "no .json files" in punch("import", str(tmp_path / "empty")).err
    missing = punch("import", str(tmp_path / "missing.md"))
    assert (missing.code, "No such file" in missing.err) == (1, True)


def test_a_refused_import_changes_nothing(punch: Any) -> None:
    cycle = [{"id": "1", "subject": "a", "blockedBy": ["2"], "blocks": ["2"]}, {"id": "2", "subject": "b"}]
    export = {"tasks": [{"id": "1", "title": "a", "blocked_by": ["2"]}, {"id": "2", "title": "b", "blocked_by": ["1"]}]}
    assert cycle
    refused = punch("import", "-", stdin=json.dumps(export))
    assert refused.err.startswith("error: dependency_cycle: ")
    assert punch("list", "--json").json["version"] == 0


def test_a_dry_run_shows_and_changes_nothing(punch: Any) -> None:
    shown = punch("import", "-", "--dry-run", stdin=PLAN)
    assert shown.lines == ["default  1/3  1 in progress · would be added", "  ✓ #1 a", "  ☐ #2 b", "    ● #3 c"]
    assert punch("import", "-", "--dry-run", "--json", stdin=PLAN).json["format"] == "markdown"
    assert punch("list", "--json").json["version"] == 0


def test_replacing_keeps_unfinished_tasks(punch: Any) -> None:
    punch("add", "old and done", "--status", "completed")
    punch("add", "old and open")
    punch("import", "-", "--replace", stdin="- [ ] new\n")
    assert [task["title"] for task in punch("list", "--json").json["tasks"]] == ["old and open", "new"]


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_an_export_reads_back_as_the_same_list(punch: Any, tmp_path: Path, form: str) -> None:
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
    assert shown[0] == shown[1]


def test_the_format_of_an_export_follows_the_name(punch: Any, tmp_path: Path) -> None:
    punch("add", "a")
    for name, start in (("x.md", "- [ ] a"), ("x.jsonl", '{"seq":1'), ("x.json", "{")):
        punch("export", str(tmp_path / name))
        assert (tmp_path / name).read_text().startswith(start)


def test_an_export_replaces_a_file_only_by_force_and_then_keeps_its_link_and_its_permissions(
    punch: Any, tmp_path: Path
) -> None:
    punch("add", "a")
    path, link = tmp_path / "plan.md", tmp_path / "link.md"
    path.write_text("mine\n")
    path.chmod(0o640)
    link.symlink_to(path)
    for name in (path, link):
        refused = punch("export", str(name))
        assert (refused.code, path.read_text()) == (1, "mine\n")
        assert refused.err == f"error: file: {name}: there is a file already; --force replaces it\n"
    assert punch("export", str(link), "--force").code == 0
    assert path.read_text().startswith("- [ ] a")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.glob("*.md*")) == [link, path]


def test_an_export_that_fails_leaves_nothing_behind(
    punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    punch("add", "a")
    (tmp_path / "old.md").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", full)
        told = punch("export", str(tmp_path / "old.md"), "--force").err
        assert told == f"error: file: {tmp_path}/old.md: No space left on device\n"
    assert (tmp_path / "old.md").read_text() == "mine"
    assert not list(tmp_path.glob("*.tmp"))
    (tmp_path / "out").mkdir()
    for words in (("nowhere/x.md",), ("out", "--force")):
        assert punch("export", str(tmp_path / words[0]), *words[1:]).code == 1
    (tmp_path / "out" / "plan.md").mkdir()
    assert "not a regular file" in punch("export", str(tmp_path / "out" / "plan.md"), "--force").err
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["plan.md"]


def test_events_are_exported_as_lines_of_json(punch: Any) -> None:
    punch("add", "a")
    punch("done", "1")
    events = [json.loads(line) for line in punch("export", "--format", "jsonl").lines]
    assert [event["version"] for event in events] == [1, 2, 3]
    assert events[2]["event"]["type"] == "StatusChanged"


@pytest.mark.parametrize("form", ["markdown", "json", "jsonl"])
def test_an_export_to_a_terminal_does_not_steer_it_and_to_a_pipe_is_as_it_is(punch: Any, form: str) -> None:
    punch("add", "\x1b[31m \u202eabc")
    with terminal("export", "--format", form) as shown:
        assert shown.finish() == 0
        assert {"\x1b", "\u202e"}.isdisjoint(shown.shown)
        assert "\\u202eabc" in shown.shown
    assert "\u202eabc" in punch("export", "--format", form).out
