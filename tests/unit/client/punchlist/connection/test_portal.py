"""The loop behind blocking clients: interrupts that end a wait, and interpreter shutdown."""

import dis
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import pytest

from punchlist import Client, Conversation, connect
from punchlist.connection.portal import Portal
from punchlist_testing.blocking import PATIENCE_S, eventually, waits
from punchlist_testing.daemon import Running


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, timeout_s=5) as client:
        yield client


@pytest.fixture
def plan(client: Client) -> Conversation:
    return client.conversation("c")


def test_blocking_call_from_client_loop_is_rejected() -> None:
    own = Portal()

    async def call() -> None:
        own.call(call)

    with pytest.raises(RuntimeError, match="its own event loop"):
        own.call(call)
    own.close()


def program(daemon: Running, body: str) -> subprocess.Popen[bytes]:
    """Start a Python process under -W error. The code can use `client` and `plan`; it prints a line before it waits."""
    head = f"import punchlist; client = punchlist.connect(socket={daemon.socket!r}, autostart=False)\n"
    head += "plan = client.conversation('c')\n"
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", head + body],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    "wait",
    [
        "plan.take('ann', wait_ms=600_000)",
        "plan.wait('done')",
        "next(plan.watch())",
        "client.call('event.wait', {'after': 1, 'conversation': 'c', 'timeout_ms': 600_000})",
    ],
)
def test_interrupt_ends_waiting_call_completely(daemon: Running, client: Client, plan: Conversation, wait: str) -> None:
    plan.open()
    if "done" in wait:
        plan.add("open")
        plan.take("somebody else", "1")
    body = f"print('waiting', flush=True)\ntry:\n    {wait}\nexcept KeyboardInterrupt:\n    print(len(plan.list()))\n"
    with program(daemon, body) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert eventually(lambda: waits() or client.status().subscriptions != ())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out.strip(), err) == (0, b"1" if "done" in wait else b"0", b"")


ENDS = {
    "closed": "client.close()",
    "left open": "",
    "in the midst of work": "plan.add('one'); work = plan.work('w'); work.take(); watch = plan.watch()",
    "a thread still waits": (
        "import threading; threading.Thread(target=plan.take, args=('ann',), kwargs={'wait_ms': 600_000}, daemon=True)"
        ".start(); client.status()"
    ),
    "an exception": "raise SystemExit(0)",
    "used by an exit handler": "import atexit; atexit.register(plan.list); client.close(); plan.list()",
}


@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
def test_interpreter_ends_immediately_and_silently(daemon: Running, body: str) -> None:
    with program(daemon, body) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_no_call_of_the_main_thread_imports_anything(daemon: Running) -> None:
    """An interrupt during an import may leave the import lock held, and the loop's thread would wait for it forever."""
    body = """
import sys, threading, punchlist
punchlist.connect

class Noted:
    names = []
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread():
            self.names.append(name)

sys.meta_path.insert(0, Noted())
with punchlist.connect(socket=sys.argv[1], autostart=False) as client:
    plan = client.conversation('c')
    plan.add('one')
    with client.watch(after=0) as watch:
        next(watch)
    with plan.work('ann') as work:
        work.take()
        work.complete('well')
    plan.list(), client.status(), client.call('task.list', {'conversation': 'c'})
print(Noted.names)
"""
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    command = [sys.executable, "-c", body, daemon.socket]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


class Interrupts:
    """Interrupts this thread at step N of the portal, counted from the moment when `is_ready` holds."""

    def __init__(self, step: int, is_ready: Callable[[], bool]) -> None:
        self._steps = itertools.count()
        self._step = step
        self._is_ready = is_ready
        self._was_ready = False

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code is not Portal.deliver.__code__:
            return None
        frame.f_trace_opcodes = True
        # Python handles no signal at a return.
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] != dis.opmap["RETURN_VALUE"]:
            self._was_ready = self._was_ready or self._is_ready()
            if self._was_ready and next(self._steps) == self._step:
                raise KeyboardInterrupt
        return self.trace


def interrupt_at_each_step(call: Callable[[], object], is_ready: Callable[[], bool]) -> Generator[None]:
    """Make a call that is interrupted at its first step, then one at its second, until a call completes."""
    for step in itertools.count():
        outer = sys.gettrace()
        # Python 3.12 reports opcodes only if a frame requested them before tracing starts.
        sys._getframe().f_trace_opcodes = True  # pyright: ignore[reportPrivateUsage]
        sys.settrace(Interrupts(step, is_ready).trace)
        try:
            call()
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        finally:
            sys.settrace(outer)
        if not interrupted:
            assert step, "no step was interrupted"
            return
        yield


CLAIMS: dict[str, Callable[[Client, Conversation], object]] = {
    "take": lambda _client, plan: plan.take("ann"),
    "call": lambda client, _plan: client.call("task.claim", {"conversation": "c", "owner": "ann"}),
    "work": lambda _client, plan: plan.work("ann").take(),
    "claim": lambda _client, plan: plan.claim("ann").__enter__(),
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_answered_during_an_interrupt_is_released(
    daemon: Running, client: Client, plan: Conversation, claim: Callable[[Client, Conversation], object]
) -> None:
    plan.add("one")
    with connect(socket=daemon.socket, autostart=False) as other:
        there = other.conversation("c")
        for _ in interrupt_at_each_step(lambda: claim(client, plan), lambda: there.get("1").status == "in_progress"):
            assert eventually(lambda: there.get("1").status == "pending")


def test_an_interrupted_watch_misses_nothing(plan: Conversation) -> None:
    plan.open()
    with plan.watch() as watch:
        plan.add("a task")
        versions = [1]
        for _ in interrupt_at_each_step(lambda: versions.append(watch.next(PATIENCE_S).version), lambda: True):
            plan.add("one more")
        last = plan.info().version
        while versions[-1] < last:
            versions.append(watch.next(PATIENCE_S).version)
    assert versions == list(range(1, last + 1))
