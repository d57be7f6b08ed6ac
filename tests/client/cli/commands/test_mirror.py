import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from punchlist import tools
from punchlist.taskfiles import report
from punchlist_testing.savers import sed
from punchlist_testing.terminal import environment


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 15
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path} never said {text!r}"
        time.sleep(0.02)


def test_directories_are_added_listed_and_removed(run: Any, home: Path) -> None:
    assert run("mirror", "list").lines == ["nothing is mirrored"]
    assert run("mirror", "add", str(home), "-c", "web").lines[0] == f"{home} mirrors web (checklist)"
    run("mirror", "add", str(home), "--all", "--format", "claude")
    assert run("mirror", "list").lines == [f"{home}  checklist  web", f"{home}  claude  all"]
    assert run("mirror", "remove", str(home)).code == 0
    assert run("mirror", "remove", str(home)).code == 1
    assert run("mirror", "list", "--json").json["mirrors"] == []


def test_what_makes_no_sense_is_refused(run: Any, home: Path) -> None:
    assert run("mirror", "add").code == 2
    assert run("mirror", "add", str(home), "--all", "-c", "web").code == 2
    assert run("mirror", "add", str(home / "nowhere")).code == 1
    (home / "data" / "mirror").mkdir(parents=True)
    (home / "data" / "mirror" / "config.json").write_text("{")
    assert run("mirror", "list").code == 78


def test_a_mirror_without_a_path_asks_for_one(run: Any) -> None:
    assert run("mirror", "add").err.startswith("error: name a directory or a Markdown file\n")


def test_the_process_mirrors_until_it_is_told_to_stop_and_is_alone(punch: Any, home: Path) -> None:
    punch("add", "one", "-c", "web")
    punch("mirror", "add", str(home), "-c", "web")
    command = [sys.executable, "-m", "punchlist.cli", "mirror", "run"]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
    file = home / ".agents" / "tasks" / "web.json"
    try:
        wait_for(file, '"one"')
        sed(file, 's/"one"/"ONE"/')
        wait_for(file, '"version": 3')
        assert json.loads(file.read_text())["tasks"][0]["title"] == "ONE"
        assert punch("mirror", "run").code == 75
    finally:
        os.kill(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, b"")


def corrupt(home: Path, pid: int) -> Path:
    """A mirrored file that can't be read, reported by a process."""
    file = home / ".agents" / "tasks" / "web.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{not JSON")
    problem = {"conversation": "web", "file": str(file), "kind": "corrupt", "text": "not JSON", "at": 1}
    status = {"pid": pid, "at": 1, "problems": [problem]}
    (home / "data" / "mirror-status.json").write_text(json.dumps(status))
    return file


def test_doctor_and_the_list_tell_what_is_wrong(punch: Any, home: Path) -> None:
    punch("mirror", "add", str(home), "-c", "web")
    file = corrupt(home, 1)
    assert f"  corrupt: {file}: not JSON" in punch("mirror", "list").lines
    assert str(file) in punch("doctor").out


@pytest.mark.parametrize("end", ["put right", "deleted", "removed", "ended"])
def test_tools_of_the_checklist_say_that_its_file_is_corrupt_for_as_long_as_it_is(
    end: str, punch: Any, home: Path
) -> None:
    punch("add", "a", "-c", "web")
    punch("mirror", "add", str(home), "-c", "web")
    file = corrupt(home, os.getpid())
    assert tools.call("checklist", "ListTasks", conversation="web").text == "Error: Task file is corrupt or invalid."
    assert '"a"' in tools.call("queue", "list_tasks", conversation="web").text
    if end == "put right":
        file.write_text('{"tasks": []}')
    elif end == "deleted":
        file.unlink()
    elif end == "removed":
        punch("mirror", "remove", str(home))
    else:
        corrupt(home, 2**22 + 1)  # beyond the greatest process id
    assert '"a"' in tools.call("checklist", "ListTasks", conversation="web").text
    assert ("corrupt" in punch("mirror", "list").out) == (end == "ended")


def test_tools_find_the_list_that_the_project_file_names(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "a", "-c", "web")
    monkeypatch.chdir(home)
    (home / ".punchlist.toml").write_text('conversation = "web"')
    assert "punch init --trust" in tools.call("claude", "TaskList").text
    assert punch("init", "--trust").code == 0
    assert "(conversation: web)" in tools.call("claude", "TaskList").text
    (home / ".punchlist.toml").write_text("conversation = [")
    assert ".punchlist.toml" in tools.call("claude", "TaskList").text


def test_what_the_mirror_keeps_is_for_us_alone_whatever_the_umask(run: Any, home: Path) -> None:
    data = home / "share" / "deep"
    before = os.umask(0)
    try:
        run("mirror", "add", str(home), "-c", "a", "--data-dir", str(data))
        report.Report(str(data), print).save()
    finally:
        os.umask(before)
    made = [home / "share", *(home / "share").rglob("*")]
    assert {"config.json", "mirror-status.json"} <= {path.name for path in made}
    assert {oct(path.stat().st_mode & 0o077) for path in made} == {"0o0"}
