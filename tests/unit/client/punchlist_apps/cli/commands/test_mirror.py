import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect, tools
from punchlist.clients.aio import connect_async
from punchlist.taskfiles import report
from punchlist.taskfiles.config import Config, Entry
from punchlist_apps.common.autostart import is_running
from punchlist_apps.files.mirror.plan_file import PlanFile
from punchlist_testing.daemon import Spawned
from punchlist_testing.optional import require_package
from punchlist_testing.savers import sed
from punchlist_testing.terminal import command, environment, spawned


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 15
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path} never contained {text!r}"
        time.sleep(0.02)


def test_mirrors_are_added_listed_and_removed(run: Any, home: Path) -> None:
    assert run("mirror", "list").lines == ["no mirrors"]
    assert run("mirror", "add", str(home), "-c", "web").lines[0] == f"{home} mirrors web (checklist)"
    run("mirror", "add", str(home), "--all", "--format", "claude")
    assert run("mirror", "list").lines == [f"{home}  checklist  web", f"{home}  claude  all"]
    assert run("mirror", "remove", str(home)).code == 0
    assert run("mirror", "remove", str(home)).code == 1
    assert run("mirror", "list", "--json").json["mirrors"] == []


def test_invalid_arguments_are_rejected(run: Any, home: Path) -> None:
    assert run("mirror", "add").code == 2
    assert run("mirror", "add", str(home), "--all", "-c", "web").code == 2
    assert run("mirror", "add", str(home / "nowhere")).code == 1
    (home / "data" / "mirror").mkdir(parents=True)
    (home / "data" / "mirror" / "config.json").write_text("{")
    assert run("mirror", "list").code == 78


def test_mirror_needs_path(run: Any) -> None:
    assert run("mirror", "add").err.startswith("error: no path given; name a directory or a Markdown file\n")


def test_plans_are_listed_with_their_form(run: Any, home: Path) -> None:
    (home / "PLAN.md").write_text("- [ ] a\n")
    (home / "task.md").write_text("---\nid: 1\ntitle: a\nstatus: b\ndependencies: []\n---\n- [ ] c\n")
    assert run("mirror", "add", str(home / "PLAN.md"), "-c", "web").code == 0
    assert run("mirror", "list").lines == [f"{home}/PLAN.md  markdown  web"]
    rejected = run("mirror", "add", str(home / "task.md"), "-c", "web")
    assert (rejected.code, "to import it: punch import backlog" in rejected.err) == (1, True)
    assert len(run("mirror", "list").lines) == 1


def test_plan_added_again_is_read_in_its_new_form(run: Any, home: Path, process: Spawned) -> None:
    plan = home / "My plan.md"
    problems = report.Report(process.data_dir, print)

    def sync(text: str) -> None:
        plan.write_text(text)
        os.utime(plan, (1, 1))

        async def sync_once() -> None:
            async with connect_async(socket=process.socket, autostart=False) as client:
                await PlanFile(client, str(plan), "web", process.data_dir, problems).sync()

        anyio.run(sync_once)

    plan.touch()
    run("mirror", "add", str(plan), "-c", "web")
    sync("- [-] a\n")
    sync("- [-] a\n  - _Requirements: 1_\n")
    listed, problem = run("mirror", "list").lines
    assert listed == f"{plan}  markdown  web"
    for advised in problem.partition("To read it again: ")[2].split(", then "):
        assert run(*shlex.split(advised)[1:], "-c", "web").code == 0
    sync(plan.read_text())
    assert run("mirror", "list").lines == [f"{plan}  kiro  web"]
    assert [task["title"] for task in run("list", "-c", "web", "--json").json["tasks"]] == ["a"]


def test_only_one_mirror_runs_until_signal(punch: Any, home: Path) -> None:
    punch("add", "one", "-c", "web")
    punch("mirror", "add", str(home), "-c", "web")
    process = subprocess.Popen(command("mirror", "run"), env=environment(), stderr=subprocess.PIPE)
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


@pytest.fixture
def background(home: Path, process: Spawned, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The file of the list `web`. Mirrors may start automatically, and are stopped at the end."""
    monkeypatch.delenv("PUNCHLIST_AUTOSTART")
    yield home / ".agents" / "tasks" / "web.json"
    Config(process.data_dir).remove(str(home))
    until_ended(process.data_dir)


def until_ended(data_dir: str) -> None:
    deadline = time.monotonic() + 20
    while is_running(data_dir):
        assert time.monotonic() < deadline, "the mirror never ended"
        time.sleep(0.02)


@pytest.mark.parametrize("words", ["add two -c web", "log -c web"])
def test_any_command_starts_configured_mirror(
    background: Path, process: Spawned, run: Any, home: Path, words: str
) -> None:
    Config(process.data_dir).add(Entry(str(home), conversations=("web",)))
    with connect(socket=process.socket, autostart=False) as client:
        client.conversation("web").add("one")
    assert run(*words.split()).code == 0
    wait_for(background, '"one"')


def test_mcp_server_starts_configured_mirror(background: Path, process: Spawned, home: Path) -> None:
    require_package("mcp")
    Config(process.data_dir).add(Entry(str(home), conversations=("web",)))
    with connect(socket=process.socket, autostart=False) as client:
        client.conversation("web").add("one")
    words = command("agent", "mcp", "--dialect", "checklist")
    assert subprocess.run(words, input=b"", env=environment(), timeout=30, check=False).returncode == 0
    wait_for(background, '"one"')


def test_prompt_or_stopped_daemon_starts_no_mirror(background: Path, process: Spawned, run: Any, home: Path) -> None:
    Config(process.data_dir).add(Entry(str(home), conversations=("web",)))
    assert run("list", "--line", "-c", "web").code == 0
    assert run("add", "one", "-c", "web", "--no-autostart").code == 0
    assert run("daemon", "stop").code == 0
    assert not (Path(process.data_dir) / "mirror" / "run.log").exists()


def test_mirror_runs_from_add_to_remove(background: Path, process: Spawned, run: Any, home: Path) -> None:
    assert run("add", "one", "-c", "web").code == 0
    outcome = run("mirror", "add", str(home), "-c", "web")
    assert outcome.lines[1] == "  a background process updates it; to see problems: punch mirror list"
    wait_for(background, '"one"')
    assert run("mirror", "remove", str(home)).code == 0
    until_ended(process.data_dir)


@pytest.mark.usefixtures("process")
def test_mirror_without_entries_exits(run: Any) -> None:
    assert run("mirror", "run").code == 0


@pytest.mark.usefixtures("process")
def test_broken_configuration_keeps_mirror_running(run: Any, home: Path) -> None:
    run("mirror", "add", str(home), "-c", "web")
    file, config = home / ".agents" / "tasks" / "web.json", home / "data" / "mirror" / "config.json"
    kept = config.read_text()
    with spawned("mirror", "run") as process:
        run("add", "one", "-c", "web")
        wait_for(file, '"one"')
        config.write_text('{"mirrors": [{"directory": 7}]}')
        wait_for(home / "data" / "mirror-status.json", "trouble")
        assert run("mirror", "run").code == 78
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2.5)
        config.write_text(kept)
        run("add", "two", "-c", "web")
        wait_for(file, '"two"')


@pytest.mark.usefixtures("process")
def test_idle_mirror_exits(run: Any, home: Path) -> None:
    assert run("add", "one", "-c", "web").code == 0
    assert run("mirror", "add", str(home), "-c", "web").lines[1] == "  to keep it updated: punch mirror run"
    (home / "PLAN.md").write_text("- [ ] two\n")
    run("mirror", "add", "PLAN.md", "-c", "plan")
    with spawned("mirror", "run", "--idle", "1s") as process:
        wait_for(home / ".agents" / "tasks" / "web.json", '"one"')
        assert process.wait(20) == 0


def corrupt(home: Path, pid: int) -> Path:
    """Write a mirrored file that can't be read, and a process's report about it. Return the file."""
    file = home / ".agents" / "tasks" / "web.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{not JSON")
    problem = {"conversation": "web", "file": str(file), "kind": "corrupt", "text": "not JSON", "at": 1}
    status = {"pid": pid, "at": 1, "problems": [problem]}
    (home / "data" / "mirror-status.json").write_text(json.dumps(status))
    return file


def test_doctor_and_list_report_problems(punch: Any, home: Path) -> None:
    punch("mirror", "add", str(home), "-c", "web")
    file = corrupt(home, 1)
    assert f"  corrupt: {file}: not JSON" in punch("mirror", "list").lines
    assert str(file) in punch("doctor").out


@pytest.mark.parametrize("end", ["put right", "deleted", "removed", "ended"])
def test_checklist_tools_report_corrupt_file(end: str, punch: Any, home: Path) -> None:
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
        corrupt(home, 2**22 + 1)  # above the largest process id
    assert '"a"' in tools.call("checklist", "ListTasks", conversation="web").text
    assert ("corrupt" in punch("mirror", "list").out) == (end == "ended")


def test_tools_use_list_of_project_file(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a", "-c", "web")
    monkeypatch.chdir(home)
    (home / ".punchlist.toml").write_text('conversation = "web"')
    assert "punch init --trust" in tools.call("claude", "TaskList").text
    assert punch("init", "--trust").code == 0
    assert "(conversation: web)" in tools.call("claude", "TaskList").text
    (home / ".punchlist.toml").write_text("conversation = [")
    assert ".punchlist.toml" in tools.call("claude", "TaskList").text


def test_mirror_files_are_private_for_any_umask(run: Any, home: Path) -> None:
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
