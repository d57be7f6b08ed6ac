"""A client across `os.fork`: each process has its own connection, claims and responses."""

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist import Client, Conversation, connect
from punchlist_testing.daemon import Spawned, spawned_daemon

CHILDREN = 3
EACH = 30


@pytest.fixture
def process(tmp_path: Path) -> Generator[Spawned]:
    """A daemon that releases the claims of a closed connection immediately."""
    with spawned_daemon(tmp_path, "--grace", "0") as process:
        yield process


@pytest.fixture
def client(process: Spawned) -> Generator[Client]:
    with connect(socket=process.socket, autostart=False, name="parent", timeout_s=10) as client:
        yield client


@pytest.fixture
def plan(client: Client) -> Conversation:
    return client.conversation("c")


def add_and_read_back(plan: Conversation, who: str, made: "multiprocessing.SimpleQueue[tuple[str, bool]]") -> None:
    for n in range(EACH):
        title = f"{who}-{n}"
        task = plan.add(title)
        made.put((title, task.title == title and plan.get(task.id).title == title))


def test_forked_processes_share_client_without_mixing_responses(plan: Conversation) -> None:
    plan.add("before")
    context = multiprocessing.get_context("fork")
    made: multiprocessing.SimpleQueue[tuple[str, bool]] = context.SimpleQueue()
    children = [context.Process(target=add_and_read_back, args=(plan, f"child{n}", made)) for n in range(CHILDREN)]
    for child in children:
        child.start()
    parent = threading.Thread(target=add_and_read_back, args=(plan, "parent", made))
    parent.start()
    results = [made.get() for _ in range(EACH * (CHILDREN + 1))]
    parent.join(20)
    for child in children:
        child.join(20)
    assert [child.exitcode for child in children] == [0] * CHILDREN
    assert all(right for _, right in results)
    assert sorted(task.title for task in plan.list()) == sorted(["before", *(title for title, _ in results)])


def child_of(body: str, process: Spawned) -> tuple[int, bytes, bytes]:
    """Run a program under -W error. It can use `client`, `plan` and `fork(function)`, which returns the exit code."""
    head = f"""
import os, sys, punchlist
client = punchlist.connect(socket={process.socket!r}, autostart=False, timeout_s=10)
plan = client.conversation("c")
def fork(action):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    action()
    sys.exit(0)  # an end with all finalizers and exit handlers, not os._exit
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", head + body],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        timeout=30,
        check=False,
    )
    return run.returncode, run.stdout, run.stderr


BODIES = {
    "the parent goes on on its own connection": """
plan.add("one")
pid = [one.pid for one in client.status().clients]
assert fork(lambda: plan.add("two")) == 0
assert pid == [one.pid for one in client.status().clients] == [os.getpid()]
assert len(plan.list()) == 2
""",
    "a child that uses nothing leaves everything alone": """
watch, work = plan.watch(), plan.work("w")
plan.add("one")
assert work.take().id == "1"
assert fork(lambda: None) == 0
assert plan.get("1").status == "in_progress" and next(watch).version == 1
work.complete()
assert plan.get("1").status == "completed"
watch.close()
""",
    "a child does not finish what its parent has claimed": """
plan.add("one")
with plan.work("w") as tasks:
    for task in tasks:
        def leave():
            tasks.complete("by the child")
            tasks.__exit__(None, None, None)
            client.close()
        assert fork(leave) == 0
        assert plan.get("1").status == "in_progress"
assert plan.get("1").result_summary == ""
""",
    "a watch goes on in both": """
watch = plan.watch()
plan.add("one")
def child():
    assert [next(watch).version for _ in range(2)] == [1, 2]
assert fork(child) == 0
assert [next(watch).version for _ in range(2)] == [1, 2]
watch.close()
""",
    "a child of a child": """
def child():
    plan.add("child")
    assert fork(lambda: plan.add("grandchild")) == 0
    plan.add("child again")
assert fork(child) == 0
assert [task.title for task in plan.list()] == ["child", "grandchild", "child again"]
""",
    "a fork while threads call": """
import threading
plan.open()
threads = [threading.Thread(target=lambda: [plan.add("t") for _ in range(20)]) for _ in range(4)]
empty = client.conversation("empty")
threading.Thread(target=lambda: empty.take("ann", wait_ms=600_000), daemon=True).start()
for thread in threads: thread.start()
for _ in range(5):
    assert fork(lambda: plan.list()) == 0
for thread in threads: thread.join()
assert len(plan.list()) == 80
""",
    "the end of the parent is seen although its child lives on": """
plan.add("one")
work = plan.work("w", lease_ms=600_000)
work.take()
r, w = os.pipe()
if os.fork():
    os._exit(0)
import time
for _ in range(600):
    if plan.get("1").status == "pending": break
    time.sleep(0.05)
else: raise SystemExit("the claim is kept by the socket that the child inherited")
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_in_a_forked_child(process: Spawned, body: str) -> None:
    assert child_of(body, process) == (0, b"", b"")
