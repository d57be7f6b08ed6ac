import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist.calls.cursor import Change
from punchlist.connection.options import Options
from punchlist.errors import ConfirmationRequired
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.events import to_wire_value
from punchlist_apps.common.terminal.style import FRAME_S, FRAMES
from punchlist_schemas.events import decode_event
from punchlist_testing.daemon import Running, Spawned
from punchlist_testing.peer import scripted_peer
from punchlist_testing.terminal import Terminal, command, environment, spawned, terminal


def until_watched(client: Client) -> None:
    """Poll until a client has subscribed. The test's own timeout limits the wait."""
    while not client.status().subscriptions:
        pass


def read_events(process: "subprocess.Popen[str]", count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


@pytest.fixture
def client(home: Any, daemon: Running) -> Generator[Client]:
    with connect(name="tester") as client:
        yield client


def test_piped_events_are_json_lines(client: Client) -> None:
    with spawned("watch") as process:
        until_watched(client)
        client.conversation("default").add("a\x1b[2J")
        client.conversation("other").add("not shown")
        client.conversation("default").start("1")
        events = read_events(process, 3)
    assert [event["event"]["type"] for event in events] == ["ConversationOpened", "TaskAdded", "StatusChanged"]
    assert [event["version"] for event in events] == [1, 2, 3]
    assert events[1]["event"]["task"]["title"] == "a\x1b[2J"


def test_events_cover_all_lists(client: Client) -> None:
    with spawned("watch", "--all-conversations") as process:
        until_watched(client)
        client.conversation("one").add("a")
        client.conversation("two").add("b")
        assert [event["conversation"] for event in read_events(process, 4)] == ["one", "one", "two", "two"]


def test_push_redraws_list(client: Client) -> None:
    plan = client.conversation("default")
    plan.add("Read")
    with terminal("watch") as screen:
        screen.wait_for("Read")
        plan.add("Write \x1b[31m中文")
        drawn = screen.wait_for("Write \\x1b[31m中文")
        assert "\x1b[2A" in drawn, "the frame is drawn over the previous one"
        plan.start("1", actor="ada")
        screen.wait_for("1 in progress")
        screen.resize(12, 20)
        assert "default  0/2" in screen.wait_for("Writ…")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("\x1b[?25h")
        assert screen.finish() == 130


def test_spinner_turns_while_task_runs(client: Client) -> None:
    plan = client.conversation("default")
    plan.add_many(["Read", "Write"])
    with terminal("watch") as screen:
        screen.wait_for("Write")
        screen.wait_for("\x1b[J")
        assert screen.is_quiet(5 * FRAME_S)
        plan.start("2")
        frames = {mark for mark in FRAMES if screen.wait_for(mark)}
        assert frames == set(FRAMES)
        assert "default" not in screen.wait_for(FRAMES[0]), "more than the task's line was drawn"
        plan.complete("2")
        screen.wait_for("✓")
        screen.wait_for("\x1b[J")
        assert screen.is_quiet(5 * FRAME_S)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_spinner_needs_capable_terminal(client: Client, env: dict[str, str]) -> None:
    plan = client.conversation("default")
    plan.add("Read")
    plan.start("1")
    with terminal("watch", env=env) as screen:
        screen.wait_for("Read")
        screen.wait_for("\n")
        plan.note("1", "x")
        screen.wait_for("Read")
        drawn = screen.wait_for("\n")
        assert not set(FRAMES) & set(drawn)


def test_cleared_list_disappears_inline(client: Client, tmp_path: Path) -> None:
    plan = client.conversation("default")
    os.mkfifo(tmp_path / "output")
    shell = f"exec {shlex.join(command('watch', '--inline', '3'))} < {tmp_path / 'output'}"
    shown = Terminal(["sh", "-c", shell], environment(TERM="xterm"), columns=60, rows=20)
    try:
        with open(tmp_path / "output", "w") as output:
            print("cc main.c", file=output, flush=True)
            shown.wait_for("cc main.c")
            plan.add("Read")
            before = shown.wait_for("Read")
            assert "no tasks" not in before and "0/0" not in before
            shown.wait_for("\x1b[J")
            plan.complete("1")
            shown.wait_for("✓")
            shown.wait_for("\x1b[J")
            plan.clear()
            assert shown.wait_for("\x1b[J") == "\x1b[2A\r\x1b[J"
            print("done", file=output, flush=True)
            shown.wait_for("done")
        rest = shown.wait_for("\x1b[?25h")
        assert "default" not in rest
        assert shown.finish() == 0
    finally:
        shown.close()


def test_push_redraws_departed_session(client: Client) -> None:
    client.conversation("default").add("one")
    client.call("agent.enter", {"agent": "bot/1"})
    client.conversation("default", actor="bot/1").take("bot/1", keep=True)
    with terminal("watch") as screen:
        screen.wait_for("@bot/1")
        client.call("agent.leave", {"agent": "bot/1"})
        screen.wait_for(" free at ")
        client.call("agent.enter", {"agent": "bot/1"})
        client.conversation("default").add("two")
        assert "free at" not in screen.wait_for("two")


def test_all_lists_show_departed_session(client: Client) -> None:
    client.conversation("website-0123456789ab").add("one")
    client.call("agent.enter", {"agent": "bot/1"})
    client.conversation("website-0123456789ab", actor="bot/1").take("bot/1", keep=True)
    with terminal("watch", "--all-conversations", columns=120) as screen:
        assert "website-" not in screen.wait_for("@bot/1")
        client.call("agent.leave", {"agent": "bot/1"})
        screen.wait_for("free at ")
        client.call("agent.enter", {"agent": "bot/1"})
        client.conversation("late").add("two")
        assert "free at" not in screen.wait_for("2 lists")


def test_dumb_terminal_appends_lists(client: Client) -> None:
    with terminal("watch", env={"TERM": "dumb"}) as screen:
        screen.wait_for("no tasks")
        client.conversation("default").add("Read")
        assert "\x1b" not in screen.wait_for("Read")


def test_long_list_is_cut_to_window(client: Client) -> None:
    client.conversation("default").add_many([f"task {n}" for n in range(50)])
    with terminal("watch", rows=8) as screen:
        drawn = screen.wait_for("more lines")
        assert drawn.count("\n") == 6
        screen.process.send_signal(signal.SIGTERM)
        screen.wait_for("\x1b[?25h")
        assert screen.finish() == 143


def test_tasks_in_progress_stay_visible(client: Client) -> None:
    plan = client.conversation("default")
    plan.add_many([f"task {n}." for n in range(1, 31)])
    with terminal("watch", rows=12) as screen:
        screen.wait_for("more lines")
        plan.start("20")
        screen.wait_for("task 20.")
        for task in plan.list(status="pending"):
            plan.start(task.id)
        screen.wait_for("30 in progress")
        screen.type("q")
        assert screen.finish() == 0


def test_watch_continues_after_daemon_was_killed(home: Any, process: Spawned) -> None:
    with connect(name="tester") as client, terminal("watch") as screen:
        client.conversation("default").add("before")
        screen.wait_for("before")
        process.restart()
        client.conversation("default").add("after")
        screen.wait_for("after")


def test_closed_pipe_ends_stream_quietly(client: Client) -> None:
    with spawned("watch") as process:
        until_watched(client)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        client.conversation("default").add("a")
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def later(action: Any) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_wait_for_tasks_all_or_any_change(punch: Any, client: Client) -> None:
    plan = client.conversation("default")
    plan.add_many(["a", "b", "c"])

    def work() -> None:
        until_watched(client)
        plan.complete("1")

    for words, code in ((("1",), 0), (("--any-change",), 0)):
        thread = later(work) if words == ("1",) else later(lambda: (until_watched(client), plan.start("2")))
        assert punch("wait", *words, "--timeout", "20").code == code
        thread.join()
    plan.fail("2", "no \x1bluck")
    failed = punch("wait", "#2", "1")
    assert (failed.code, failed.err) == (1, "error: #2 b failed\n  no \\x1bluck\n")
    assert punch("wait", "9").err.startswith("error: ")
    plan.complete("3")
    assert punch("wait", "--json").json["counts"]["completed"] == 2


def test_wait_ends_when_list_is_stuck(punch: Any) -> None:
    punch("add", "a")
    punch("add", "b", "--blocked-by", "1")
    punch("fail", "1")
    for wanted in ((), ("2",)):
        waited = punch("wait", "--timeout", "5s", *wanted)
        assert waited.code == 1
        assert waited.err.startswith("error: "), waited.err
        assert "wait for #1, which failed" in waited.err
    assert punch("wait", "1", "--timeout", "5s").code == 1


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("1",), "#1 was not finished"),
        (("1", "#2"), "#1, #2 were not all finished"),
        ((), "not all tasks were finished"),
        (("--any-change",), "nothing changed"),
    ],
)
def test_wait_timeout_has_own_exit_code(punch: Any, client: Client, words: tuple[str, ...], missing: str) -> None:
    client.conversation("default").add_many(["a", "b"])
    outcome = punch("wait", *words, "--timeout", "10ms")
    assert outcome.code == 124
    assert outcome.err == f"error: {missing} within 0.01 s\n  see the list: punch list\n"


def test_unresponsive_daemon_is_not_wait_timeout(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hasty: Options = {"timeout_s": 0.1}
    monkeypatch.setattr(Context, "options", hasty)
    monkeypatch.delenv("PUNCHLIST_DATA_DIR")
    with scripted_peer(home, lambda session, request: None) as peer:
        monkeypatch.setenv("PUNCHLIST_SOCKET", peer.socket)
        outcome = run("wait", "--timeout", "20")
    assert (outcome.code, outcome.err) == (
        69,
        f"error: No reply from the daemon (pid {os.getpid()}) in time; it may be overloaded. "
        "For its state: punch doctor\n",
    )


def test_unknown_event_is_printed_unchanged() -> None:
    raw = b'{"type":"Novelty","x":[1]}'
    assert to_wire_value(Change(1, "a", 1, 0, "ada", decode_event(raw)))["event"] == json.loads(raw)


def test_lists_needing_attention_come_first(client: Client) -> None:
    client.conversation("quiet").open()
    client.conversation("plan").add("Read")
    with terminal("watch", "--all-conversations", columns=80) as screen:
        assert "quiet" in screen.wait_for("Quiet 1") + screen.wait_for("quiet")
        client.conversation("plan").start("1", actor="ada")
        screen.wait_for("Being worked on 1")
        client.conversation("broken").add("x\x1b[2J")
        client.conversation("broken").fail("1")
        screen.wait_for("Needs you 1")
        client.conversation("late").add("y")
        screen.wait_for("4 lists")
        with pytest.raises(ConfirmationRequired) as asked:
            client.conversation("late").erase()
        client.conversation("late").erase(confirm=asked.value.token)
        screen.wait_for("3 lists")
        screen.type("q")
        assert screen.finish() == 0


def test_keys_scroll_and_q_quits(client: Client) -> None:
    client.conversation("default").add_many([f"task {n}." for n in range(50)])
    with terminal("watch", rows=8) as screen:
        screen.wait_for("more lines")
        screen.type("j")
        screen.wait_for("task 5.")
        screen.type("G")
        screen.wait_for("task 49.")
        screen.type("g")
        screen.wait_for("task 0.")
        screen.type("q")
        screen.wait_for("\x1b[?25h")
        assert screen.finish() == 0


def test_inline_list_stays_below_program_output(client: Client, tmp_path: Path) -> None:
    client.conversation("default").add_many([f"task {n}." for n in range(50)])
    os.mkfifo(tmp_path / "output")
    shell = f"exec {shlex.join(command('watch', '--inline', '3'))} < {tmp_path / 'output'}"
    shown = Terminal(["sh", "-c", shell], environment(TERM="xterm"), columns=60, rows=20)
    try:
        with open(tmp_path / "output", "w") as output:
            drawn = shown.wait_for("more lines")
            assert drawn.count("\n") == 2
            output.write("\x1b[32mcc main.c\x1b[0m\n")
            output.flush()
            assert "\x1b[3A\r\x1b[J\x1b[32mcc main.c" in shown.wait_for("cc main.c")
            client.conversation("default").start("40")
            shown.wait_for("task 39.")
        shown.wait_for("\x1b[?25h")
        assert shown.finish() == 0
    finally:
        shown.close()
