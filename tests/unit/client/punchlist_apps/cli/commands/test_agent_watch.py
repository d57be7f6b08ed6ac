import json
import os
import queue
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect
from punchlist.tools.budget import count_tokens
from punchlist_apps.cli.calling import unseen
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.commands import agent_watch
from punchlist_apps.cli.commands.agent_watch import MAX_LINE, run_watch
from punchlist_apps.hosts.read_positions import ReadPositions
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, hash_session
from punchlist_testing.agent_hosts import command, environment
from punchlist_testing.daemon import Running, Spawned, spawned_daemon

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"
AGENT = build_agent_name("claude-code", hash_session(SESSION))
PATIENCE_S = 30
MAX_TOKENS = 60
"""Upper limit for the report of one change, in tokens."""


class Lines:
    """The lines that a running watch prints."""

    def __init__(self) -> None:
        self._queue: queue.Queue[str] = queue.Queue()

    def put(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._queue.put(line)

    def get(self) -> str:
        line = self._queue.get(timeout=PATIENCE_S)
        assert len(line) <= MAX_LINE
        return line.removeprefix("punchlist: ")


@pytest.fixture(autouse=True)
def _project(run: Any) -> None:
    run("init", "default")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_watch, "BATCH_S", 0.2)
    monkeypatch.setattr(agent_watch, "CHECK_S", 0.2)
    monkeypatch.setattr(agent_watch, "FIND_LIST_S", 0.2)


@contextmanager
def watching(
    daemon: Running, monkeypatch: pytest.MonkeyPatch, conversation: str | None = "default"
) -> Generator[Lines]:
    """Run `punch agent watch` in a thread of this process, until its host seems to have ended."""
    host, lines, began = ["1-1"], Lines(), threading.Event()

    def put_note(note: str) -> None:
        lines.put([note])
        began.set()

    def read_changes(*arguments: Any) -> Any:
        began.set()
        return unseen.read_changes(*arguments)

    monkeypatch.setattr(agent_watch, "read_changes", read_changes)
    monkeypatch.setattr(agent_watch, "find_host", lambda: (host[0], 1))
    args = {"session": SESSION, "conversation": conversation, "actor": None, "no_autostart": True}
    context = Context(Namespace(socket=daemon.socket, data_dir=daemon.data_dir, **args))
    monkeypatch.setattr(context, "print_lines", lines.put)
    monkeypatch.setattr(context, "note", put_note)
    thread = threading.Thread(target=run_watch, args=(context,))
    thread.start()
    assert began.wait(PATIENCE_S)
    try:
        yield lines
    finally:
        host[0] = ""
        thread.join(PATIENCE_S)
        context.close()
    assert not thread.is_alive()


def mark_read(punch: Any, daemon: Running, name: str = "default") -> None:
    """Record that the session has seen all changes to a list."""
    with ReadPositions(daemon.data_dir).lock(hash_session(SESSION), name) as position:
        status, listing = punch("daemon", "status", "--json").json, punch("list", "--json", "-c", name).json
        position.save(position.value.advance(status["epoch"], listing["seq"]))


@pytest.fixture
def lines(punch: Any, daemon: Running, monkeypatch: pytest.MonkeyPatch) -> Generator[Lines]:
    """A watch of an agent that has task 1; task 2 is free, task 3 waits for task 2."""
    for words in (["Write"], ["Publish"], ["Announce", "--blocked-by", "2"]):
        punch("add", *words)
    punch("queue", "claim", "1", "-o", AGENT, "--actor", AGENT)
    mark_read(punch, daemon)
    with watching(daemon, monkeypatch) as lines:
        yield lines


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["note", "1", "use the new API"], '#1 "Write": bob notes "use the new API"'),
        (["edit", "1", "-d", "shorter"], '#1 "Write" edited by bob'),
        (["queue", "release", "1", "-o", AGENT], '#1 "Write" released by bob'),
        (["assign", "2", AGENT], '#2 "Publish" edited by bob'),
        (["add", "Fix the build", "-p", "urgent"], '#4 "Fix the build" added by bob'),
        (["rm", "1", "--yes"], "#1 deleted by bob"),
    ],
)
def test_line_names_a_change_for_the_agent(punch: Any, lines: Lines, words: list[str], line: str) -> None:
    punch("note", "3", "not the agent's", "--actor", "bob")
    assert punch(*words, "--actor", "bob").code == 0
    assert lines.get() == line
    assert count_tokens(line) <= MAX_TOKENS


def test_gate_answer_is_printed(punch: Any, lines: Lines) -> None:
    punch("edit", "1", "--gate", "yes", "--actor", "bob")
    assert lines.get() == '#1 "Write" edited by bob'
    assert punch("done", "1", "--force", "--actor", AGENT).code == 0
    assert punch("approve", "1", "--yes", "--actor", "bob").code == 0
    assert '#1 "Write" completed' in lines.get()


def test_change_is_reported_by_watch_or_hook(punch: Any, lines: Lines, daemon: Running) -> None:
    punch("note", "2", "only for the hook", "--actor", "bob")
    punch("note", "1", "urgent?", "--actor", "bob")
    assert lines.get() == '#1 "Write": bob notes "urgent?"'
    given = json.dumps({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"})
    news = punch("agent", "prime", "--hook", stdin=given)
    assert news.lines[1:] == ['  #2 "Publish": bob notes "only for the hook"']
    punch("note", "1", "again", "--actor", "bob")
    assert punch("agent", "prime", "--hook", stdin=given).lines[1:] == ['  #1 "Write": bob notes "again"']
    punch("add", "Fix the build", "-p", "urgent", "--actor", "bob")
    assert lines.get() == '#4 "Fix the build" added by bob'


def test_changes_without_urgency_wait(punch: Any, lines: Lines) -> None:
    punch("note", "1", "first", "--actor", "bob")
    assert "first" in lines.get()
    punch("note", "1", "second", "--actor", "bob")
    punch("add", "Fix the build", "-p", "urgent", "--actor", "bob")
    line = lines.get()
    assert "second" in line and "Fix the build" in line and "first" not in line


def test_waiting_change_is_printed_after_the_pause(punch: Any, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_watch, "MIN_PAUSE_S", 0.5)
    for text in ("first", "second"):
        punch("note", "1", text, "--actor", "bob")
        assert text in lines.get()


def test_rest_of_a_line_is_left_to_the_hook(
    punch: Any, daemon: Running, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_watch, "MIN_PAUSE_S", 0.2)
    tasks = [{"title": f"Fix {number} {'x' * 70}", "priority": "urgent"} for number in range(4)]
    with connect(socket=daemon.socket, autostart=False, name="bob") as client:
        client.call("task.add_many", {"conversation": "default", "tasks": tasks})
    first = lines.get()
    assert first.endswith(" more")
    punch("note", "1", "next", "--actor", "bob")
    assert lines.get() == '#1 "Write": bob notes "next"'
    given = json.dumps({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"})
    news = punch("agent", "prime", "--hook", stdin=given).out
    assert [f"Fix {number}" in news for number in range(4)] == [f"Fix {number}" not in first for number in range(4)]


def test_ready_task_is_reported_after_an_empty_next(punch: Any, lines: Lines, daemon: Running) -> None:
    punch("done", "1", "--actor", AGENT)
    punch("queue", "claim", "2", "-o", "bob", "--actor", "bob")
    sessions = Sessions(daemon.data_dir, None)
    sessions.record_next(AGENT, is_empty=True)
    punch("done", "2", "--actor", "bob")
    assert lines.get() == "a task is ready again: call next"
    assert not sessions.had_empty_next(AGENT)


def test_watch_without_session_is_rejected(run: Any) -> None:
    assert run("agent", "watch").code == 2


def test_watch_waits_for_a_list(
    run: Any, punch: Any, daemon: Running, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".punchlist.toml").unlink()
    punch("add", "Write")
    mark_read(punch, daemon)
    with watching(daemon, monkeypatch, conversation=None) as lines:
        assert lines.get() == "No task list for this directory"
        run("init", "default")
        punch("add", "Fix the build", "-p", "urgent", "--actor", "bob")
        assert lines.get() == '#2 "Fix the build" added by bob'


def test_watch_follows_a_later_attachment(punch: Any, daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "There", "-c", "website")
    for name in ("default", "website"):
        mark_read(punch, daemon, name)
    with watching(daemon, monkeypatch, conversation=None) as lines:
        punch("agent", "attach", SESSION, "-c", "website")
        punch("add", "Fix the build", "-p", "urgent", "-c", "website", "--actor", "bob")
        assert lines.get() == '#2 "Fix the build" added by bob'


def test_watch_continues_when_its_position_is_writable(
    punch: Any, daemon: Running, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, retried = Path(daemon.data_dir, "looked"), threading.Event()
    moved = directory.rename(f"{directory}.moved")
    directory.touch()
    monkeypatch.setattr(agent_watch, "is_stopped", lambda _socket: retried.set())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    punch("add", "Fix the build", "-p", "urgent", "--actor", "bob")
    assert retried.wait(PATIENCE_S)
    directory.unlink()
    moved.rename(directory)
    assert lines.get() == '#4 "Fix the build" added by bob'


def test_late_change_is_printed_with_its_title(punch: Any, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    late = ["Fix the build"]

    def read(*arguments: Any) -> Any:
        if late:
            punch("add", late.pop(), "-p", "urgent", "--actor", "bob")
        return unseen.read_changes(*arguments)

    monkeypatch.setattr(agent_watch, "read_changes", read)
    punch("add", "Deploy", "-p", "urgent", "--actor", "bob")
    assert lines.get() == '#4 "Deploy" added by bob'
    assert lines.get() == '#5 "Fix the build" added by bob'


def run_punch(daemon: Spawned, *words: str) -> None:
    subprocess.run([*command(daemon, *words), "-c", "work"], check=True, env=environment(), stdout=subprocess.DEVNULL)


def test_watch_survives_its_daemon_but_not_its_host(home: Path) -> None:
    with spawned_daemon(home) as daemon:
        run_punch(daemon, "add", "Write")
        run_punch(daemon, "agent", "prime", "--session", SESSION)
        words = [*command(daemon, "agent", "watch"), "-c", "work"]
        host = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        with subprocess.Popen(
            [sys.executable, "-c", host, *words], env=environment(SESSION), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            run_punch(daemon, "add", "First", "-p", "urgent", "--actor", "bob")
            assert "First" in process.stdout.readline()
            daemon.kill()
            daemon.start()
            run_punch(daemon, "add", "Second", "-p", "urgent", "--actor", "bob")
            line = process.stdout.readline()
            assert "Second" in line and "First" not in line
            os.kill(process.pid, signal.SIGKILL)
            assert process.stdout.read() == "", "the watch's output stays open"
