"""Sessions over a relay: what a host sees while workers end, hang or are replaced, and other hosts misbehave."""

import itertools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any

import anyio
import anyio.to_thread
import pytest

import punchlist
from punchlist import connect
from punchlist_apps.relay import frames
from punchlist_apps.relay.dialing import Dialing
from punchlist_apps.relay.relay import BUFFER_BYTES
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.served_mcp import arguments, environment
from punchlist_testing.workers import HANDSHAKE, PATIENCE_S, Host, ending, find_worker, signal_worker

require_package("mcp")
mcp: Any = import_module("mcp")

MODES = ["legacy", "auto"]
QUICK = """
import sys
from punchlist_apps.relay import relay
relay.PING_S = relay.HANG_S = 0.3
from punchlist_apps.cli import main
sys.exit(main())
"""
"""A relay that soon ends a worker that doesn't reply."""

HASTY = QUICK.replace("relay.PING_S", "relay.PATIENCE_S = relay.PING_S")
"""A relay that also soon gives up finding a worker."""

LATE = """
import sys
from punchlist_apps.relay import dialing, relay
leave, connect, is_first = relay.Relay._leave, dialing.Dialing.connect, []

def leave_long_ago(self, *frame):
    leave(self, *frame)
    self._deadline = 0.0
    is_first.append(True)

relay.Relay._leave = leave_long_ago
dialing.Dialing.connect = lambda self: None if is_first and is_first.pop() else connect(self)
from punchlist_apps.cli import main
sys.exit(main())
"""
"""A relay whose worker left long ago, and which then finds that another relay is starting the next one."""

STRANDED = """
import fcntl, sys, termios
from punchlist_apps.relay import relay
dial = relay.Relay._dial

def dial_when_full(self):
    waiting = bytearray(4)
    fcntl.ioctl(0, termios.FIONREAD, waiting)
    if self._has_begun and int.from_bytes(waiting, sys.byteorder) < fcntl.fcntl(0, fcntl.F_GETPIPE_SZ) - 4096:
        self._retry_after(0.05)
        return
    if self._has_begun:
        relay.show(f"{sum(len(line.text) for line in self._open.values())}")
        relay.Relay._dial = dial
    dial(self)

relay.Relay._dial = dial_when_full
from punchlist_apps.cli import main
sys.exit(main())
"""
"""A relay that gets its second worker once it reads no more input, and then shows how much it has kept."""

FRAGILE = """
import sys, time
from punchlist_apps.worker import __main__, session
receive = session.Session._receive

async def receive_and_fail(self, op, number, line):
    if b"please block" in line:
        await receive(self, op, number, line)
        time.sleep(60)
    if b"please raise" in line:
        raise ValueError("planted")
    return await receive(self, op, number, line)

session.Session._receive = receive_and_fail
sys.exit(__main__.main())
"""
"""A worker whose loop is blocked, or whose session raises, on the words in a line."""


ENDING = """
import os, sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist_apps.worker import session
    receive = session.Session._receive

    async def receive_or_end(self, op, number, line):
        text = await receive(self, op, number, line)
        if b"please end" in text:
            await self.flush()
            os._exit(9)
        return text

    session.Session._receive = receive_or_end
"""
"""Makes each worker end on the words in a line, after it has reported the line as begun."""


ENDING_ONCE = """
import os, sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist.clients.aio import AsyncClient
    run = AsyncClient.run

    async def run_and_end(self, call):
        result = await run(self, call)
        if call.request.method == METHOD:
            try:
                os.close(os.open(MARK, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return result
            os._exit(9)
        return result

    AsyncClient.run = run_and_end
"""
"""Makes a worker end after its first call of a method, unless the mark shows that one has ended."""


PATIENT = """
import sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist_apps.worker import session, worker
    session.LEAVE_S = worker.LEAVE_S = 3600
"""
"""Makes each worker that leaves wait for its running calls."""


WATCHFUL = """
import sys
from punchlist.connection import starter
starter.IDLE_EXIT_S = 1
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist_apps.worker import worker
    worker._CHECK_S = 0.1
"""
"""Makes each worker check often whether it is needed."""


UPGRADED = """
import sys
if "punchlist_apps.worker" in sys.orig_argv and "--lock-fd" not in sys.orig_argv:
    class Upgrade:
        def find_spec(name, path, target=None):
            if name == "punchlist_apps.worker.worker":
                sys.meta_path.remove(Upgrade)
                with open(CHANGED, "a", encoding="utf-8") as source:
                    source.write("# newer\\n")

    sys.meta_path.insert(0, Upgrade)
"""
"""Upgrades the installation after the first worker has begun to load its sources."""


ENDING_DURING_ANOTHER = """
import asyncio, os, sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist.clients.aio import AsyncClient
    run, waiting = AsyncClient.run, []

    async def run_and_wait(self, call):
        for event in waiting:
            event.set()
        result = await run(self, call)
        if call.request.method == "task.claim" and os.path.exists(FIFO):
            waiting.append(asyncio.Event())
            open(FIFO, "w").close()
            os.unlink(FIFO)
            await waiting[0].wait()
            os._exit(9)
        return result

    AsyncClient.run = run_and_wait
"""
"""Makes a worker end after a claim, once another call has begun. While the pipe exists, it is opened by the claim."""


NEWER_MEMORY = """
import os, sys
if "punchlist_apps.worker" in sys.orig_argv and os.path.exists(MARK):
    import json
    from punchlist_apps.worker import opening
    opening._encode_memory = lambda agents: json.dumps({"agents": {"a": ["a", "", False, *"bcdefghij"]}}).encode()
"""
"""Makes a worker save its memory like a newer version while the mark exists."""


UNREACHABLE = """
import os, sys, time
if "punchlist_apps.worker" in sys.orig_argv:
    def hang(call):
        def call_or_hang(path, *args, **options):
            while str(path).startswith(DIRECTORY) and os.access(MARK, os.F_OK):
                time.sleep(0.1)
            return call(path, *args, **options)
        return call_or_hang

    os.stat, os.lstat = hang(os.stat), hang(os.lstat)
"""
"""Makes a directory's file system hang for each worker while the mark exists."""


WITHOUT_PROC = """
import ctypes, sys
libc = ctypes.CDLL(None)
NEWNS, PRIVATE = 0x20000, 0x44000
mounts = (b"/", None, PRIVATE), (b"/proc", b"tmpfs", 0)
if libc.unshare(NEWNS) or any(libc.mount(b"none", *mount, None) for mount in mounts):
    sys.exit(77)
from punchlist_apps.cli import main
sys.exit(main())
"""
"""A relay, and thereby a worker, for which /proc is empty."""


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
def hosts(daemon: Spawned) -> Generator[Callable[..., Host]]:
    """Starts hosts, and ends them after the test."""
    with ExitStack() as stack:
        yield lambda *words, **options: stack.enter_context(Host(daemon.directory, *words, **options))


def plant(folder: Path, code: str) -> dict[str, str]:
    """Return an environment whose processes run some code at their start."""
    (folder / "plant").mkdir()
    (folder / "plant" / "sitecustomize.py").write_text(code)
    env = environment()
    return env | {"PYTHONPATH": f"{folder / 'plant'}:{env['PYTHONPATH']}"}


def run_folder(daemon: Spawned) -> Path:
    return daemon.directory / "run"


def titles(daemon: Spawned) -> list[str]:
    with connect(socket=daemon.socket, autostart=False) as client:
        return [task.title for task in client.conversation("work").list()]


def owners(daemon: Spawned) -> dict[str, str]:
    with connect(socket=daemon.socket, autostart=False) as client:
        return {task.title: task.owner for task in client.conversation("work").list()}


@pytest.mark.parametrize("mode", MODES)
async def test_writers_outlive_killed_workers(mode: str, daemon: Spawned) -> None:
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments(daemon), env=environment())
    added = anyio.Event(), anyio.Event(), anyio.Event()
    expected: list[str] = []

    async def write(writer: int) -> None:
        async with mcp.Client(server, mode=mode) as session:
            for number in range(30):
                title = f"{writer}/{number}"
                reply = await session.call_tool("plan", {"tasks": [{"title": title}]})
                assert not reply.is_error, reply.content
                expected.append(title)
                if number % 10 == 5:
                    added[number // 10].set()

    with anyio.fail_after(PATIENCE_S * 2):
        async with anyio.create_task_group() as group:
            for writer in range(3):
                group.start_soon(write, writer)
            for event in added:
                await event.wait()
                await anyio.to_thread.run_sync(signal_worker, run_folder(daemon))
    assert sorted(titles(daemon)) == sorted(expected)
    assert len(expected) == 90


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_session_moves_when_worker_leaves(number: int, daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    host.call("plan", tasks=[{"title": "One"}])
    former = signal_worker(run_folder(daemon), number)
    assert "Added #2" in host.call("plan", tasks=[{"title": "Two"}])
    assert find_worker(run_folder(daemon)) not in (None, former)
    assert titles(daemon) == ["One", "Two"]


def test_terminated_worker_has_no_successor_until_needed(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    signal_worker(run_folder(daemon), signal.SIGTERM)
    assert list(run_folder(daemon).glob("mcp-*.sock")) == []
    assert host.call("tasks")


def test_leaving_worker_delays_no_other_session(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    env = plant(tmp_path, PATIENT)
    waiting, host = hosts(env=env), hosts(env=env)
    waiting.call("plan", tasks=[{"title": "One"}])
    wait = waiting.request("tools/call", {"name": "wait", "arguments": {"seconds": 600}})
    waiting.ask("ping", {})  # after it, the call has begun
    former = find_worker(run_folder(daemon))
    assert former is not None
    os.kill(former, signal.SIGTERM)
    while find_worker(run_folder(daemon)) is not None:
        pass
    assert "Added #2" in host.call("plan", tasks=[{"title": "Two"}])
    assert find_worker(run_folder(daemon)) not in (None, former)
    assert "result" in waiting.wait_for(wait)


def test_worker_without_socket_is_replaced(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    env = plant(tmp_path, WATCHFUL)
    host = hosts(env=env)
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    former = find_worker(run_folder(daemon))
    assert former is not None
    with ending(former):
        path.unlink()
    assert host.call("tasks")
    assert hosts(env=env).call("tasks")


def test_session_outlives_a_long_time_without_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts(program=("-c", LATE))
    signal_worker(run_folder(daemon), signal.SIGTERM)
    assert host.call("tasks")


def test_agents_keep_their_names_and_tasks(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    first, second = hosts(), hosts()
    first.call("plan", tasks=[{"title": "One"}, {"title": "Two"}])
    first.call("next")
    second.call("next")
    before = owners(daemon)
    signal_worker(run_folder(daemon))
    second.call("next", result="done by the second")
    first.call("next", result="done by the first")
    assert owners(daemon) == before
    assert len({*before.values()}) == 2


def test_agent_returns_with_the_next_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    host.call("plan", tasks=[{"title": "One"}])
    host.call("next")
    with connect(socket=daemon.socket, autostart=False) as client:
        with client.conversation("work").watch(view="rows") as lists:
            signal_worker(run_folder(daemon))
            for has_left in (True, False):
                while (lists.next(timeout_s=PATIENCE_S)[0].left_at is not None) != has_left:
                    pass


def test_question_is_asked_again_by_the_next_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts("--dialect", "todo", capabilities={"elicitation": {}})
    with connect(socket=daemon.socket, autostart=False) as client:
        client.conversation("work").add("Milk")
    request = host.request("tools/call", {"name": "delete_todo_task", "arguments": {"task_id": 1}})
    asked = next(message for message in host.messages() if message.get("method") == "elicitation/create")
    signal_worker(run_folder(daemon))
    withdrawn, again = [next(host.messages()) for _ in range(2)]
    assert withdrawn["params"]["requestId"] == asked["id"] != again["id"]
    assert again["params"] == asked["params"]
    yes = {"action": "accept", "content": {"confirm": True}}
    host.send({"id": asked["id"], "result": {"action": "decline"}})
    host.send({"id": again["id"], "result": yes})
    assert host.wait_for(request)["result"]["structuredContent"]["status"] == "deleted"
    assert titles(daemon) == []


async def test_modern_answer_reaches_the_next_worker(daemon: Spawned) -> None:
    types: Any = import_module("mcp_types")
    asked: list[str] = []

    async def answer(_context: Any, params: Any) -> Any:
        asked.append(params.message)
        await anyio.to_thread.run_sync(signal_worker, run_folder(daemon))
        return types.ElicitResult(action="accept", content={"confirm": True})

    with connect(socket=daemon.socket, autostart=False) as client:
        client.conversation("work").add("Milk")
    words = arguments(daemon, "--dialect", "todo")
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=environment())
    with anyio.fail_after(PATIENCE_S):
        async with mcp.Client(server, mode="auto", elicitation_callback=answer) as session:
            done = await session.call_tool("delete_todo_task", {"task_id": 1})
            assert done.structured_content["status"] == "deleted"
    assert len(asked) == 1
    assert titles(daemon) == []


def test_subscription_outlives_a_killed_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    with connect(socket=daemon.socket, autostart=False) as client:
        client.conversation("work").add("One")
        host.ask("resources/subscribe", {"uri": "punchlist://work/tasks"})
        signal_worker(run_folder(daemon))
        host.call("tasks")
        client.conversation("work").add("Two")
        updated = next(message for message in host.messages() if message.get("method") != "ping")
    assert updated["method"] == "notifications/resources/updated"
    assert updated["params"]["uri"] == "punchlist://work/tasks"


async def test_modern_subscription_outlives_a_killed_worker(daemon: Spawned) -> None:
    uri = "punchlist://work/tasks"
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments(daemon), env=environment())
    with anyio.fail_after(PATIENCE_S), connect(socket=daemon.socket, autostart=False) as client:
        client.conversation("work").add("One")
        async with mcp.Client(server, mode="auto") as session:
            async with session.listen(resource_subscriptions=[uri]) as events:
                await anyio.to_thread.run_sync(signal_worker, run_folder(daemon))
                await session.list_tools()
                client.conversation("work").add("Two")
                async for event in events:
                    assert uri in str(event)
                    break


def test_unsubscribed_resource_stays_so(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    with connect(socket=daemon.socket, autostart=False) as client:
        client.conversation("work").add("One")
        for method in ("resources/subscribe", "resources/unsubscribe"):
            host.ask(method, {"uri": "punchlist://work/tasks"})
        signal_worker(run_folder(daemon))
        host.call("tasks")
        host.ask("resources/subscribe", {"uri": "punchlist://other/tasks"})
        client.conversation("work").add("Two")
        client.conversation("other").add("Three")
        updated = next(host.messages())
    assert updated["params"]["uri"] == "punchlist://other/tasks"


def test_stream_continues_on_its_list_with_the_next_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    frames = (message for message in host.messages() if message.get("method", "").startswith("notifications/events"))
    with connect(socket=daemon.socket, autostart=False) as client:
        work, other = client.conversation("work"), client.conversation("other")
        work.attach("session-1")
        arguments = {"conversation": "session-1"}
        id = host.request("events/stream", {"name": "task.added", "arguments": arguments, "cursor": None})
        assert next(frames)["method"] == "notifications/events/active"
        other.attach("session-1")
        for number in range(6):  # more than the number of breaks after which other lines are rejected
            other.add("Elsewhere")
            work.add(f"{number}")
            params = next(frames)["params"]
            assert params["data"]["change"]["task"]["title"] == f"{number}"
            signal_worker(run_folder(daemon))
        host.send({"method": "notifications/cancelled", "params": {"requestId": id}})
        host.ask("ping", {})
        signal_worker(run_folder(daemon))
        work.add("Unheard")
        host.request("events/stream", {"name": "task.added"})
        assert next(frames)["method"] == "notifications/events/active"


def test_output_of_an_ending_worker_counts_with_its_position(daemon: Spawned, tmp_path: Path) -> None:
    """A worker that ends between the new text of a line and the output it belongs to has written neither."""
    words = ["--socket", daemon.socket, "--data-dir", daemon.data_dir]
    path = Dialing(words, environment()).path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(PATIENCE_S)
        host = Host(tmp_path)

        def serve(*frames_sent: tuple[bytes, int, bytes]) -> bytes:
            """Serve the host as a worker that sends some frames and ends. Return the line that the relay sent."""
            worker, _ = listener.accept()
            decoder, lines = frames.Decoder(), list[bytes]()
            with worker:
                worker.sendall(frames.encode(frames.ACCEPT))
                while not lines:
                    lines += [body for op, _, body in decoder.feed(worker.recv(1 << 16)) if op in b"lr"]
                worker.sendall(b"".join(frames.encode(*frame) for frame in frames_sent))
            return lines[0]

        host.write(b"first\n")
        assert serve((frames.BEGIN, 1, b"second\n")) == b"first\n"
        assert serve((frames.BEGIN, 1, b"second\n"), (frames.OUTPUT, 0, b'{"event": 1}\n')) == b"first\n"
        assert serve((frames.EXIT, 0, b"")) == b"second\n"
        assert [*host.messages()] == [{"event": 1}]
        host.__exit__()


def spawn_worker(
    daemon: Spawned, stack: ExitStack, hosts: Callable[..., Host], *options: str
) -> "subprocess.Popen[bytes]":
    """Replace the worker by one that fails on certain words; `hosts` are started to find its socket."""
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon), signal.SIGTERM)
    ready, told = os.pipe()
    places = ["--socket", str(path), "--data-dir", daemon.data_dir, "--ready-fd", str(told), *options]
    log = stack.enter_context(open(daemon.directory / "fragile.log", "wb"))
    process = stack.enter_context(
        subprocess.Popen([sys.executable, "-c", FRAGILE, *places], pass_fds=[told], stderr=log, env=environment())
    )
    stack.callback(process.kill)
    os.close(told)
    with open(ready, "rb") as signals:
        assert signals.read() == b"ready"
    return process


def test_blocked_worker_is_replaced(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    with ExitStack() as stack:
        spawn_worker(daemon, stack, hosts, "--hang-exit", "0.5")
        bad, good = hosts(), hosts()
        fragile = find_worker(run_folder(daemon))
        request = bad.request("tools/call", {"name": "plan", "arguments": {"tasks": [{"title": "please block"}]}})
        assert "Added" in good.call("plan", tasks=[{"title": "good"}])
        assert "Added" in bad.wait_for(request)["result"]["content"][0]["text"]
        assert find_worker(run_folder(daemon)) != fragile
        assert b"please block" not in (log := (daemon.directory / "fragile.log").read_bytes())
        assert b"receive_and_fail" in log, "the stacks are in the log"
    assert sorted(titles(daemon)) == ["good", "please block"]


def test_failed_session_ends_alone(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    with ExitStack() as stack:
        spawn_worker(daemon, stack, hosts)
        bad, good = hosts(), hosts()
        fragile = find_worker(run_folder(daemon))
        bad.request("tools/call", {"name": "plan", "arguments": {"tasks": [{"title": "please raise"}]}})
        assert bad.process.wait(PATIENCE_S) == 70
        assert bad.process.stderr is not None
        assert b"session failed" in bad.process.stderr.read()
        assert "Added #1" in good.call("plan", tasks=[{"title": "good"}])
        assert find_worker(run_folder(daemon)) == fragile
    assert titles(daemon) == ["good"]


@pytest.mark.long
def test_request_that_breaks_workers_is_rejected(hosts: Callable[..., Host], tmp_path: Path) -> None:
    env = plant(tmp_path, ENDING)
    host, other = hosts(env=env), hosts(env=env)
    request = other.request("tools/call", {"name": "plan", "arguments": {"tasks": [{"title": "please end"}]}})
    assert "ended several times" in other.wait_for(request)["error"]["message"]
    assert "Added #1" in host.call("plan", tasks=[{"title": "good"}])


@pytest.mark.parametrize("meta", [{}, {"punchlist/user": "ann"}])
@pytest.mark.parametrize("method", ["task.set_status", "task.claim"])
def test_repeated_next_gets_the_same_reply(
    hosts: Callable[..., Host], tmp_path: Path, method: str, meta: dict[str, str]
) -> None:
    def call(tool: str, **arguments: Any) -> str:
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        return host.ask("tools/call", params)["content"][0]["text"]

    mark = tmp_path / "mark"
    mark.touch()
    host = hosts(env=plant(tmp_path, f"METHOD, MARK = {method!r}, {str(mark)!r}{ENDING_ONCE}"))
    call("plan", tasks=[{"title": title} for title in ("one", "two", "three")])
    assert "one" in call("next")
    mark.unlink()
    reply = call("next", result="did it")
    assert mark.exists(), "the worker ended"
    assert "two" in reply
    assert "2 left" in reply


@pytest.mark.parametrize("meta", [{}, {"punchlist/key": "k"}])
def test_retry_after_a_worker_change_adds_nothing(
    daemon: Spawned, hosts: Callable[..., Host], meta: dict[str, str]
) -> None:
    host = hosts()
    params = {"name": "plan", "arguments": {"tasks": [{"title": "One"}]}, "_meta": meta}
    add = {"id": "first", "method": "tools/call", "params": params}
    host.send(add)
    assert "Added #1" in next(host.messages())["result"]["content"][0]["text"]
    host.call("next")
    host.call("next", result="done, so that an equal title is a new task")
    signal_worker(run_folder(daemon))
    host.send(add | ({"id": "second"} if meta else {}))
    assert "Added #1" in next(host.messages())["result"]["content"][0]["text"]
    assert titles(daemon) == ["One"]


def test_retry_during_a_call_leaves_no_line_open(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    params = {"name": "plan", "arguments": {"tasks": [{"title": "One"}]}}
    line = json.dumps({"jsonrpc": "2.0", "id": "plan", "method": "tools/call", "params": params})
    host.write(f"{line}\n{line}\n".encode())
    first, second = [next(host.messages()) for _ in range(2)]
    assert first == second
    signal_worker(run_folder(daemon))
    requests = [host.request("tools/call", {"name": "tasks", "arguments": {}}) for _ in range(2)]
    assert {next(host.messages())["id"] for _ in range(2)} == {*requests}
    assert titles(daemon) == ["One"]


def test_reading_does_not_affect_a_repetition(hosts: Callable[..., Host], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    env = plant(tmp_path, f"FIFO = {str(pipe)!r}{ENDING_DURING_ANOTHER}")
    host = hosts(env=env)
    host.call("plan", tasks=[{"title": title} for title in ("one", "two", "three")])
    assert "one" in host.call("next")
    os.mkfifo(pipe)
    request = host.request("tools/call", {"name": "next", "arguments": {"result": "did it"}})
    with open(pipe, "rb") as signals:
        assert signals.read() == b""
    host.request("tools/call", {"name": "tasks", "arguments": {}})
    reply = host.wait_for(request)["result"]["content"][0]["text"]
    assert "two" in reply and "2 left" in reply


def test_memory_of_a_newer_version_is_ignored(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    env = plant(tmp_path, f"MARK = {str(mark)!r}{NEWER_MEMORY}")
    host = hosts(env=env)
    assert "Added #1" in host.call("plan", tasks=[{"title": "One"}])
    mark.unlink()
    signal_worker(run_folder(daemon))
    assert "One" in host.call("tasks")
    assert "can't be read" in (daemon.directory / "data" / "mcp.log").read_text()


def test_dead_directory_hurts_no_other_session(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    mark, project = tmp_path / "mark", tmp_path / "project"
    project.mkdir()
    env = plant(tmp_path, f"DIRECTORY, MARK = {str(project)!r}, {str(mark)!r}{UNREACHABLE}")
    bad, good = hosts(env=env | {"CLAUDE_PROJECT_DIR": str(project)}), hosts(env=env)
    assert "Added #1" in bad.call("plan", tasks=[{"title": "One"}])
    assert "#1" in bad.call("next")
    mark.touch()
    for signals in ((), (signal.SIGKILL,)):
        for number in signals:
            signal_worker(run_folder(daemon), number)
        assert "One" in good.call("tasks")
        worker = find_worker(run_folder(daemon))
        assert "does not respond" in bad.call("tasks")
        assert "One" in good.call("tasks")
        assert find_worker(run_folder(daemon)) == worker, "it serves all sessions"
    mark.unlink()
    assert "One" in bad.call("tasks")


def test_suspended_worker_is_replaced(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts(program=("-c", QUICK))
    former = signal_worker(run_folder(daemon), signal.SIGSTOP)
    assert "Added #1" in host.call("plan", tasks=[{"title": "One"}])
    assert find_worker(run_folder(daemon)) != former


def test_busy_host_does_not_hide_a_suspended_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host, is_answered = hosts(program=("-c", QUICK)), Event()

    def send_on() -> None:
        while not is_answered.wait(0.05):
            host.send({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})

    former = signal_worker(run_folder(daemon), signal.SIGSTOP)
    ping, sender = host.request("ping", {}), Thread(target=send_on)
    sender.start()
    try:
        assert "result" in host.wait_for(ping)
    finally:
        is_answered.set()
        sender.join()
    assert find_worker(run_folder(daemon)) != former


def test_line_without_end_hurts_no_other(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    bad, good = hosts(), hosts()
    bad.write(b"x" * 10_000_000)
    assert "Added #1" in good.call("plan", tasks=[{"title": "good"}])
    with suppress(BrokenPipeError):
        bad.write(b"x" * 10_000_000)
    assert bad.process.wait(PATIENCE_S) == 65
    assert bad.process.stderr is not None
    assert bad.process.stderr.read() == b"punch: a line of the host is longer than 16 MiB\n"


def test_closed_error_output_keeps_the_exit_code(hosts: Callable[..., Host]) -> None:
    host = hosts()
    assert host.process.stderr is not None
    host.process.stderr.close()
    with suppress(BrokenPipeError):
        host.write(b"x" * 20_000_000)
    assert host.process.wait(PATIENCE_S) == 65
    host.process.stderr = None


def test_unreadable_input_ends_the_session(daemon: Spawned) -> None:
    words = arguments(daemon)
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as host:
        with listening.accept()[0] as input:
            relay = subprocess.Popen(
                [sys.executable, *words], stdin=input.fileno(), stdout=subprocess.PIPE, env=environment()
            )
        with relay:
            opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
            host.sendall(json.dumps(opening).encode() + b"\n")
            assert relay.stdout is not None
            assert b"result" in relay.stdout.readline()
            host.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            host.close()  # resets the connection
            assert relay.wait(PATIENCE_S) == 0


def test_long_line_is_served(hosts: Callable[..., Host]) -> None:
    host = hosts()
    message = {"id": "long", "method": "tools/call", "params": {"name": "tasks", "arguments": {"x": "x" * 10_000_000}}}
    host.send(message)
    assert "result" in next(host.messages())


def test_host_that_does_not_read_hurts_no_other(hosts: Callable[..., Host]) -> None:
    silent, good = hosts(), hosts()
    count = 3_000
    lines = [json.dumps({"jsonrpc": "2.0", "id": f"{number}", "method": "tools/list"}) for number in range(count)]
    writer = Thread(target=silent.write, args=("".join(f"{line}\n" for line in lines).encode(),))
    writer.start()
    assert "Added #1" in good.call("plan", tasks=[{"title": "good"}])
    got = [message["id"] for message in itertools.islice(silent.messages(), count)]
    writer.join(PATIENCE_S)
    assert sorted(got, key=int) == [f"{number}" for number in range(count)]


def test_relay_without_worker_keeps_little(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host, text = hosts(program=("-c", STRANDED)), "x" * 20_000
    signal_worker(run_folder(daemon))
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": f"{number}", "method": "ping", "params": {"text": text}}) + "\n"
        for number in range(500)
    ]
    writer = Thread(target=host.write, args=("".join(lines).encode(),))
    writer.start()
    assert {message["id"] for message in itertools.islice(host.messages(), 500)} == {f"{n}" for n in range(500)}
    writer.join(PATIENCE_S)
    kept = int(host.process.communicate(timeout=PATIENCE_S)[1])
    assert BUFFER_BYTES <= kept < BUFFER_BYTES + 100_000


def test_unreadable_lines_are_ignored(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts()
    host.write(b"\n \nnot json\n[1, 2]\n\xff\n")
    assert host.call("tasks")
    signal_worker(run_folder(daemon))
    assert host.call("tasks")


@pytest.mark.parametrize("words", [(), ("--own",)])
def test_end_of_input_ends_the_session(words: tuple[str, ...], hosts: Callable[..., Host]) -> None:
    host = hosts(*words)
    assert host.call("tasks")
    host.end()
    assert list(host.messages()) == []
    assert host.process.wait(PATIENCE_S) == 0


def test_host_that_is_gone_ends_the_relay(hosts: Callable[..., Host]) -> None:
    host = hosts()
    assert host.process.stdout is not None
    host.process.stdout.close()
    assert host.process.wait(PATIENCE_S) == 0
    host.process.stdout = None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide /proc")
def test_session_works_without_proc(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts(program=("-c", WITHOUT_PROC))
    assert "Added #1" in host.call("plan", tasks=[{"title": "One"}])
    signal_worker(run_folder(daemon))
    assert "Added #2" in host.call("plan", tasks=[{"title": "Two"}])


def test_foreign_program_on_the_socket_is_not_used(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon), signal.SIGTERM)
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(path))
        foreign.listen()
        thread = Thread(target=_serve_nonsense, args=(foreign,))
        thread.start()
        with Host(daemon.directory, program=("-c", HASTY)) as host:
            assert "Added #1" in host.call("plan", tasks=[{"title": "One"}])
        foreign.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)
    path.unlink()


def _serve_nonsense(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            with listening.accept()[0] as peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_last_words_of_a_worker_arrive(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon), signal.SIGTERM)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind(str(path))
        listening.listen()
        host = Host(daemon.directory)
        relay = host.process
        with listening.accept()[0] as worker:
            worker.settimeout(PATIENCE_S)
            worker.sendall(frames.encode(frames.ACCEPT))
            host.send({"id": 1, "method": "ping", "params": {"text": "x" * 2_000_000}})
            received = b""
            while b"xxx" not in received:
                received += worker.recv(1000)
            # The rest doesn't fit in the socket, so the relay writes before it reads.
            relay.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, relay.pid, os.WSTOPPED)
            worker.sendall(frames.encode(frames.OUTPUT, 1, b'{"id": 1}\n') + frames.encode(frames.EXIT, 3, b"bye"))
        relay.send_signal(signal.SIGCONT)
        assert next(host.messages()) == {"id": 1}
        assert relay.communicate(timeout=PATIENCE_S)[1] == b"bye"
        assert relay.returncode == 3
    path.unlink()


def test_stale_socket_is_replaced(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon))
    assert path.exists(), "a killed worker leaves its socket"
    assert "Added #1" in hosts().call("plan", tasks=[{"title": "One"}])


def install_copy(folder: Path, code: str = "") -> dict[str, str]:
    """Install a copy of the sources, and some code to run at each start; return the environment that uses them."""
    root = Path(punchlist.__file__).parents[2]
    for part in ("client", "schemas", "daemon"):
        shutil.copytree(root / part, folder / "copy" / part, ignore=shutil.ignore_patterns("__pycache__"))
    copied = [str(folder / "copy" / part) for part in ("client", "schemas", "daemon")]
    env = plant(folder, code)
    return env | {"PYTHONPATH": os.pathsep.join([str(folder / "plant"), *copied, *(path for path in sys.path if path)])}


def change_copy(folder: Path) -> None:
    with open(folder / "copy" / "client" / "punchlist" / "__init__.py", "a", encoding="utf-8") as source:
        source.write("# newer\n")


def test_newer_installation_replaces_the_worker(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    env = install_copy(tmp_path)
    session = hosts(env=env)
    session.call("plan", tasks=[{"title": "One"}])
    former = find_worker(run_folder(daemon))
    assert former is not None
    change_copy(tmp_path)
    with ending(former):
        hosts(env=env).call("tasks")
    assert "Added #2" in session.call("plan", tasks=[{"title": "Two"}])


def test_upgrade_during_the_start_replaces_the_worker(
    daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path
) -> None:
    changed = tmp_path / "copy" / "client" / "punchlist" / "__init__.py"
    env = install_copy(tmp_path, UPGRADED.replace("CHANGED", repr(str(changed))))
    session = hosts(env=env)
    former = find_worker(run_folder(daemon))
    assert former is not None
    with ending(former):
        hosts(env=env).call("tasks")
    assert session.call("tasks")


def test_worker_of_a_removed_installation_ends(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    host = hosts(env=install_copy(tmp_path, WATCHFUL))
    worker = find_worker(run_folder(daemon))
    assert worker is not None
    shutil.rmtree(tmp_path / "copy")
    assert host.call("tasks")
    with ending(worker):
        host.end()


def test_worker_tries_again_to_hand_over(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host, log = hosts(), daemon.directory / "data" / "mcp.log"
    former = find_worker(run_folder(daemon))
    assert former is not None
    log.rename(log.with_name("kept.log"))
    log.mkdir()
    os.kill(former, signal.SIGUSR1)
    for _ in range(3):
        host.call("tasks")
    assert find_worker(run_folder(daemon)) == former
    log.rmdir()
    with ending(former):
        # Until the first attempt has failed, another one is not due.
        while find_worker(run_folder(daemon)) == former:
            os.kill(former, signal.SIGUSR1)
    assert host.call("tasks")


def test_two_installations_have_their_own_workers(daemon: Spawned, hosts: Callable[..., Host], tmp_path: Path) -> None:
    root = Path(punchlist.__file__).parents[2]
    shutil.copytree(root / "client", tmp_path / "client", ignore=shutil.ignore_patterns("__pycache__"))
    env = environment() | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "client"), *(path for path in sys.path if path)])
    }
    for host in (hosts(), hosts(env=env)):
        host.call("plan", tasks=[{"title": f"{host.process.pid}"}])
    assert len([*run_folder(daemon).glob("mcp-*.sock")]) == 2
    assert len(titles(daemon)) == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_socket_of_another_user_is_not_used(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon))
    with socket.socket(socket.AF_UNIX) as foreign:
        path.unlink()
        # The credentials of a listener are those of the process that called listen().
        foreign.bind(str(path))
        os.seteuid(65_534)
        try:
            foreign.listen()
        finally:
            os.seteuid(0)
        assert "Added #1" in hosts().call("plan", tasks=[{"title": "One"}])
        foreign.setblocking(False)
        with foreign.accept()[0] as peer:
            assert peer.recv(1) == b"", "nothing was sent to the other user"
    path.unlink()


def test_session_runs_on_its_own_without_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon), signal.SIGTERM)
    Path(f"{path}.lock").unlink()
    Path(f"{path}.lock").mkdir()
    host = hosts()
    assert "Added #1" in host.call("plan", tasks=[{"title": "One"}])
    assert find_worker(run_folder(daemon)) is None
    assert "Is a directory" in (daemon.directory / "data" / "mcp.log").read_text().splitlines()[-1]
    shown = host.process.communicate(timeout=PATIENCE_S)[1].decode()
    assert shown.startswith("punch: no worker (IsADirectoryError: ")
    assert shown.endswith("); this session runs in its own process; run: punch doctor\n")


def test_session_that_ends_without_worker_says_why(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    host = hosts(program=("-c", QUICK.replace("relay.PING_S", "relay.RESUME_S")))
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    Path(f"{path}.lock").unlink()
    Path(f"{path}.lock").mkdir()
    signal_worker(run_folder(daemon))
    shown = host.process.stderr
    assert shown is not None
    assert host.process.wait(PATIENCE_S) == 69
    assert b"Is a directory" in (text := shown.read())
    assert text.endswith(b"; this session ends; run: punch doctor\n")


def test_doctor_says_that_no_worker_can_start(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    log = daemon.directory / "data" / "mcp.log"
    log.mkdir()
    host = hosts()
    assert host.call("tasks")
    assert b"mcp.log" in host.process.communicate(timeout=PATIENCE_S)[1]
    assert f"no worker is running; the last one reported: {log}: Is a directory" in punch(daemon, "doctor")


def test_failure_of_a_relay_is_in_the_log(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    signal_worker(run_folder(daemon), signal.SIGTERM)
    Path(f"{path}.start").unlink()
    Path(f"{path}.start").mkdir()
    assert hosts().call("tasks")
    assert f"{path.name}.start" in (reported := punch(daemon, "doctor"))
    assert "Is a directory" in reported


def test_idle_worker_ends(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    with ExitStack() as stack:
        assert spawn_worker(daemon, stack, hosts, "--idle-exit", "0.2").wait(PATIENCE_S) == 0
        assert list(run_folder(daemon).glob("mcp-*.sock")) == []


def punch(daemon: Spawned, *words: str) -> str:
    command = [sys.executable, "-m", "punchlist", *words, "--socket", daemon.socket, "--data-dir", daemon.data_dir]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGSTOP])
def test_worker_stops_with_the_daemon(number: int, daemon: Spawned, hosts: Callable[..., Host]) -> None:
    hosts()
    worker = find_worker(run_folder(daemon))
    assert worker is not None
    os.kill(worker, number)
    with ending(worker):
        assert "stopped the daemon" in punch(daemon, "daemon", "stop")
    assert "no daemon is running" in punch(daemon, "daemon", "stop")


@pytest.mark.long  # the session tries to reach the daemon for 30 s, as each client does
def test_stopped_daemon_stays_stopped_for_its_sessions(daemon: Spawned) -> None:
    with Host(daemon.directory, autostart=True) as host:
        host.call("plan", tasks=[{"title": "One"}])
        assert "stopped the daemon" in punch(daemon, "daemon", "stop")
        assert find_worker(run_folder(daemon)) is None
        assert "punch daemon start" in host.call("tasks")
        assert "no daemon is running" in punch(daemon, "daemon", "stop")
        with Host(daemon.directory, autostart=True) as another:
            assert "One" in another.call("tasks")
            assert "One" in host.call("tasks")
    punch(daemon, "daemon", "stop")


def test_status_shows_the_worker(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    assert json.loads(punch(daemon, "daemon", "status", "--json"))["worker"] is None
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Host(daemon.directory))
        status = json.loads(punch(daemon, "daemon", "status", "--json"))
        worker = find_worker(run_folder(daemon))
        assert {name: status["worker"][name] for name in ("pid", "state", "sessions")} == {
            "pid": worker,
            "state": "running",
            "sessions": 2,
        }
        shown = punch(daemon, "daemon", "status")
        assert re.search(rf"worker  {re.escape(status['worker']['build'])}, pid {worker}, up \d+s, 2 sessions", shown)
        signal_worker(run_folder(daemon), signal.SIGSTOP)
        assert f"worker  suspended, pid {worker}; to have" in punch(daemon, "daemon", "status")
        os.kill(status["worker"]["pid"], signal.SIGCONT)


def test_doctor_names_the_worker_or_its_last_words(daemon: Spawned, hosts: Callable[..., Host]) -> None:
    assert "sessions: none; the first one starts a worker" in punch(daemon, "doctor")
    hosts()
    worker = find_worker(run_folder(daemon))
    assert f"sessions: served by the worker, process {worker}" in punch(daemon, "doctor")
    signal_worker(run_folder(daemon), signal.SIGSTOP)
    assert f"the worker, process {worker}, is suspended\n      → kill -9 {worker}" in punch(daemon, "doctor")
    signal_worker(run_folder(daemon), signal.SIGKILL)
    (daemon.directory / "data" / "mcp.log").write_text("one\nModuleNotFoundError: No module named 'mcp'\n")
    assert "the last one reported: ModuleNotFoundError: No module named 'mcp'" in punch(daemon, "doctor")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_worker_does_not_serve_another_user(
    daemon: Spawned, hosts: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts()
    (path,) = run_folder(daemon).glob("mcp-*.sock")
    worker = find_worker(run_folder(daemon))
    # Let another user reach the socket, so that only the worker's own check is left.
    run_folder(daemon).chmod(0o755)
    path.chmod(0o666)
    monkeypatch.chdir(run_folder(daemon))
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.settimeout(PATIENCE_S)
        os.seteuid(65_534)
        try:
            foreign.connect(path.name)
        finally:
            os.seteuid(0)
        with suppress(BrokenPipeError):
            foreign.sendall(frames.encode(frames.STOP))
        with suppress(ConnectionResetError):
            assert foreign.recv(100) == b""
    assert hosts().call("tasks")
    assert find_worker(run_folder(daemon)) == worker
