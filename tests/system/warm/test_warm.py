"""Commands that the C program hands to a warm process behave like those of the plain program."""

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist_apps.cli.parsing.index import COMMANDS, OWN_PROCESS
from punchlist_apps.cli.warm import server
from punchlist_testing.daemon import READY_S
from punchlist_testing.terminal import Terminal
from punchlist_testing.warm import PLAIN, PROGRAM, Warm, is_compiled, wait_until, warm_home

pytestmark = pytest.mark.skipif(not is_compiled(), reason="punch is not compiled: install a C compiler, then run make")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
OTHER_USER = 65_534


SLOW_START = """
import os, time
create = os.memfd_create

def create_slowly(name):
    time.sleep(0.1)
    return create(name)

os.memfd_create = create_slowly
"""
"""Delays the start of each worker."""


@pytest.fixture(scope="module")
def running() -> Generator[Warm]:
    """A running warm process, shared by the tests of this file. They must leave it running."""
    with warm_home() as warm:
        yield warm.start()


@pytest.fixture
def warm(running: Warm) -> Warm:
    running.run("list", "clear", "--yes")
    return running


@pytest.fixture
def own() -> Generator[Warm]:
    """A home whose warm process the test may end. It isn't started."""
    with warm_home() as warm:
        yield warm


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--json"],
        ["show", "1"],
        ["show", "9"],
        ["nonsense"],
        ["list", "--nonsense"],
        ["--version"],
        ["help", "add"],
        ["done", "1", "\udcff"],
        ["-c", "nowhere", "list"],
        ["complete", "task", "--", "done", ""],
        ["add", ""],
        [],
    ],
)
def test_output_and_exit_code_are_the_same(warm: Warm, words: list[str]) -> None:
    warm.run("add", "Ärger, 日本", "-p", "high")
    handed, plain = warm.run(*words), warm.run_plainly(*words)
    assert (handed.returncode, handed.stdout, handed.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.mark.parametrize(
    "variables",
    [
        {"NO_COLOR": "1", "FORCE_COLOR": "1"},
        {"FORCE_COLOR": "1"},
        {"PUNCHLIST_ACTOR": "eve"},
        {"PUNCHLIST_CONVERSATION": "other"},
        {"TZ": "Pacific/Kiritimati"},
        {"TZ": "America/New_York"},
        {"HOME": "/nonexistent"},
    ],
    ids=str,
)
def test_environment_is_the_callers(warm: Warm, variables: dict[str, str]) -> None:
    env = {**warm.env, **variables}
    warm.run("add", "a", "--due", "2030-01-02 03:04", env=env)
    for words in (["list"], ["list", "--json"], ["log"]):
        handed, plain = warm.run(*words, env=env), warm.run_plainly(*words, env=env)
        assert (handed.returncode, handed.stdout) == (plain.returncode, plain.stdout) and plain.stdout
    assert warm.run("list").stdout == warm.run_plainly("list").stdout, "the variables were forgotten"


@pytest.mark.parametrize(
    "settings", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "latin-1"}]
)
def test_each_locale_has_its_warm_process(own: Warm, settings: dict[str, str]) -> None:
    path = own.find_path()
    own.env |= settings
    assert own.find_path() != path
    own.start()
    own.run("add", "Ärger → 日本")
    assert own.run("list").stdout == own.run_plainly("list").stdout


@pytest.mark.parametrize("how", ["ulimit -S -n 64", "ulimit -n 999", "ulimit -f 0", "renice -n 3 $$ >/dev/null"])
def test_limits_are_the_callers(warm: Warm, how: str) -> None:
    if how.startswith("renice") and shutil.which("renice") is None:
        pytest.skip("renice is not installed")
    outcome = warm.run("list", wrapper=["bash", "-c", f'{how}; exec "$@"', "bash"])
    assert outcome.returncode == PLAIN and outcome.stdout.startswith("/"), "it starts its own"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_umask_is_the_callers(warm: Warm, mask: int) -> None:
    file = warm.home / f"{mask:o}.json"
    assert warm.run("export", str(file), umask=mask).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask


def test_relative_paths_are_the_callers(warm: Warm) -> None:
    folder = warm.home / "project"
    folder.mkdir(exist_ok=True)
    assert warm.run("export", "out.md", "--force", cwd=folder).returncode == 0
    assert (folder / "out.md").exists()


@pytest.mark.parametrize("words", ["list", "list -c default", "export x.json", "init"])
def test_deleted_directory(warm: Warm, words: str) -> None:
    script = f"mkdir gone && cd gone && rmdir ../gone && punch {words}"
    handed, plain = warm.run_script(script), warm.run_script(script, plainly=True)
    assert (handed.returncode, handed.stdout, handed.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", "</dev/full"])
@pytest.mark.parametrize("words", ["list", "show 9", "import -"])
def test_closed_descriptors(warm: Warm, closed: str, words: str) -> None:
    warm.run("add", "a")
    script = f"punch {words} {closed}"
    handed, plain = warm.run_script(script), warm.run_script(script, plainly=True)
    assert (handed.returncode, handed.stdout, handed.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert warm.run("list").stdout == warm.run_plainly("list").stdout


def test_standard_input_is_read(warm: Warm) -> None:
    text = "".join(f"- [ ] task {number}\n" for number in range(200))
    assert warm.run("import", "-", "--format", "markdown", input=text).returncode == 0
    assert warm.run("list", "--json").stdout.count('"title":"task ') == 200


def test_closed_pipe_ends_the_command(warm: Warm) -> None:
    script = "punch list all --json | true; echo ${PIPESTATUS[0]}; punch log | head -1; echo ${PIPESTATUS[0]}"
    warm.run("add", "a")
    assert warm.run_script(script).stdout == warm.run_script(script, plainly=True).stdout


def test_large_arguments_and_environment(warm: Warm) -> None:
    env = {**warm.env, "FILLER": "x" * 100_000, "MORE": "y" * 100_000}
    warm.run("add", "a")
    outcome = warm.run("note", "1", *("word" for _ in range(1_000)), env=env)
    assert (outcome.returncode, outcome.stdout.count("word")) == (0, 1_000)


def test_a_reader_sees_the_end(warm: Warm) -> None:
    """The idle worker keeps no descriptor of the caller."""
    read, write = os.pipe()
    assert warm.run("list", stderr=write, stdin=read).returncode == 0
    os.close(write)
    assert os.read(read, 1) == b""
    os.close(read)


def test_one_worker_runs_call_after_call(own: Warm) -> None:
    own.start()
    workers = set(own.list_workers())
    for number in range(5):
        own.run("add", str(number))
    assert workers <= set(own.list_workers()), "none has ended"


def test_connection_gets_one_worker(own: Warm, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    own.env["PYTHONPATH"] = f"{tmp_path}:{own.env['PYTHONPATH']}"
    own.start()
    assert len(own.list_workers()) == 1


@pytest.mark.parametrize("words", ["daemon call daemon.status", "help add", "doctor"])
def test_another_worker_runs_the_next_command(warm: Warm, words: str) -> None:
    warm.run("list")
    before = set(warm.list_workers())
    warm.run(*words.split())
    wait_until(lambda: before - set(warm.list_workers()), "a worker has ended")


def test_commands_run_at_the_same_time(warm: Warm) -> None:
    processes = [warm.popen("add", str(number)) for number in range(12)]
    for process in processes:
        assert process.communicate(timeout=READY_S)[1] == "" and process.returncode == 0
    assert warm.run("list", "--json").stdout.count('"title"') == 12


@pytest.mark.parametrize("name", sorted(OWN_PROCESS))
def test_commands_with_own_process(warm: Warm, name: str) -> None:
    more = {"daemon rpc": ["--stdio"], "gate": ["x", "--", "true"], "mirror": ["list"], "run": ["--", "true"]}
    outcome = warm.run(*name.split(), *more.get(name, []))
    assert (outcome.returncode, outcome.stdout) == (PLAIN, "\n"), "it starts no other warm process"
    assert name in COMMANDS


def test_plain_program_reports_broken_streams(warm: Warm) -> None:
    assert warm.run_script("punch list <.").returncode == PLAIN
    assert warm.is_used()


@pytest.mark.parametrize("words", ["import /dev/fd/0", "import /proc/self/fd/0"])
def test_open_files_are_read_by_the_plain_program(warm: Warm, words: str) -> None:
    assert warm.run(*words.split()).returncode == PLAIN


@pytest.mark.parametrize(
    "variables", [{"PUNCHLIST_WARM": "0"}, {"LD_PRELOAD": "/nonexistent.so"}, {"PYTHONPATH": "/a:b"}]
)
def test_variables_turn_it_off(warm: Warm, variables: dict[str, str]) -> None:
    outcome = warm.run("list", env={**warm.env, **variables})
    assert outcome.returncode == PLAIN and not outcome.stdout.startswith("/"), "it starts no warm process"


def test_interrupt_ends_a_wait(warm: Warm) -> None:
    warm.run("add", "a")
    with warm.popen("wait", "1") as process:
        try:
            wait_until(warm.count_clients, "the command is connected")
            process.send_signal(signal.SIGINT)
            assert process.wait(READY_S) == 130
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_signals_end_the_command(warm: Warm, number: signal.Signals) -> None:
    with warm.waiting() as process:
        process.send_signal(number)
        assert process.wait(READY_S) == (130 if number == signal.SIGINT else -number)
    wait_until(lambda: warm.count_clients() == 0, "the worker has ended")


def test_ignored_signals_stay_ignored(warm: Warm) -> None:
    with warm.waiting(("sh", "-c", 'trap "" HUP; exec "$@"', "sh")) as process:
        process.send_signal(signal.SIGHUP)
        warm.run("add", "a")
        assert process.wait(READY_S) == 0


def test_starter_ignores_signals_alone(own: Warm) -> None:
    own.start(["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh"])
    for number, code in ((signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)):
        with own.waiting() as process:
            process.send_signal(number)
            assert process.wait(READY_S) == code
        wait_until(lambda: own.count_clients() == 0, "the worker has ended")


BLOCK = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_starter_blocks_signals_alone(own: Warm) -> None:
    own.start([sys.executable, "-c", BLOCK])
    with own.waiting() as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(READY_S) == 130


def test_killed_program_ends_the_command(warm: Warm) -> None:
    with warm.waiting() as process:
        process.kill()
        wait_until(lambda: warm.count_clients() == 0, "the worker has ended")
    warm.run("add", "a")
    assert '"pending"' in warm.run("list", "--json").stdout, "nobody has claimed it"


def shell(warm: Warm) -> Terminal:
    """Return an interactive shell on a terminal."""
    env = {**warm.env, "PATH": f"{warm.program.parent}:{warm.env['PATH']}", "PS1": "$ ", "TERM": "xterm"}
    words = [
        "setsid",
        "--ctty",
        "--wait",
        "env",
        f"--chdir={warm.home}",
        "bash",
        "--norc",
        "--noprofile",
        "--noediting",
        "-i",
    ]
    return Terminal(words, env, columns=60, rows=20)


@pytest.fixture
def terminal(warm: Warm) -> Generator[Terminal]:
    child = shell(warm)
    try:
        yield child
    finally:
        child.close()


def test_interrupt_key(warm: Warm, terminal: Terminal) -> None:
    terminal.type("punch queue claim --wait 60s; echo code $?\n")
    wait_until(warm.count_clients, "the command is connected")
    terminal.type("\x03")
    terminal.wait_for("code 130")


def test_suspended_job_continues(warm: Warm, terminal: Terminal) -> None:
    terminal.type("punch queue claim --wait 60s\n")
    wait_until(warm.count_clients, "the command is connected")
    terminal.type("\x1a")
    terminal.wait_for("Stopped")
    warm.run("add", "Write the lexer")
    terminal.type("echo code $?\n")
    assert "Write the lexer" not in terminal.wait_for("code 148")
    terminal.type("fg\n")
    terminal.wait_for("Write the lexer")
    terminal.type("echo code $?\n")
    terminal.wait_for("code 0")


def test_background_job_finishes(warm: Warm, terminal: Terminal) -> None:
    terminal.type("punch queue claim --wait 60s & wait $!; echo code $?\n")
    wait_until(warm.count_clients, "the command is connected")
    warm.run("add", "Write the lexer")
    terminal.wait_for("code 0")


def test_questions_are_asked_by_the_plain_program(warm: Warm, terminal: Terminal) -> None:
    warm.run("add", "a")
    terminal.type("punch rm 1; echo code $?\n")
    terminal.wait_for(f"code {PLAIN}")
    terminal.type("punch rm 1 --yes; echo code $?\n")
    terminal.wait_for("code 0")


def test_terminal_size_is_the_callers(warm: Warm, terminal: Terminal) -> None:
    warm.run("add", "x" * 200)
    for columns in (40, 90):
        terminal.resize(columns, 20)
        terminal.type("punch list; echo done\n")
        line = next(line for line in terminal.wait_for("\r\ndone").splitlines() if "xxx" in line)
        assert f"x{'x' * (columns - 30)}" in line and "x" * columns not in line


def test_each_confinement_has_its_warm_process(warm: Warm) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    outcome = subprocess.run(
        ["setpriv", "--no-new-privs", str(warm.program), "list"],
        env=warm.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == PLAIN
    path = outcome.stdout.strip()
    assert path.startswith(f"{warm.home}/punchlist/warm-") and not os.path.exists(path), "it starts its own"


RECORD = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
if sys.argv[2] == "other user":
    os.setresuid(65534, 65534, 65534)
print("ready", flush=True)
link, _ = listener.accept()
link.send(bytes(1))
print(len(link.recv(100)), flush=True)
"""


@pytest.mark.parametrize("who", [pytest.param("other user", marks=needs_root), "sandbox"])
def test_nothing_is_sent_to_another_confinement(own: Warm, who: str) -> None:
    path = own.find_path()
    sandbox = ["setpriv", "--no-new-privs"] if who == "sandbox" else []
    if sandbox and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    with subprocess.Popen(
        [*sandbox, sys.executable, "-c", RECORD, path, who], stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdout is not None
        assert peer.stdout.readline() == "ready\n"
        assert own.run("list").returncode == PLAIN
        assert peer.stdout.readline() == "0\n", "the connection was closed"


@pytest.mark.parametrize(
    "wrapper", [["setpriv", "--no-new-privs"], pytest.param(["setpriv", "--reuid", "65534"], marks=needs_root)]
)
def test_worker_serves_no_other_confinement(own: Warm, wrapper: list[str]) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    path = own.find_path()
    own.start()
    for place in (own.home, own.home / "punchlist", Path(path)):
        place.chmod(0o777)
    connect = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(1))"
    outcome = subprocess.run(
        [*wrapper, sys.executable, "-c", connect, path], capture_output=True, text=True, check=False
    )
    assert (outcome.stdout, outcome.returncode) == ("b'\\x00'\n", 0), outcome.stderr


NO_PRIVILEGES = ["setpriv", "--no-new-privs"]

FILTER = """
import ctypes, os, struct, sys
library = ctypes.CDLL(None)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(allow)))
if library.prctl(22, 2, program, 0, 0):
    sys.exit("no seccomp")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_each_seccomp_filter_has_its_warm_process(own: Warm) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    once = [*NO_PRIVILEGES, sys.executable, "-c", FILTER]
    assert own.find_path(wrapper=once) != own.find_path(wrapper=[*once, sys.executable, "-c", FILTER])


OUT_OF_LANDLOCK = """
import ctypes, os, socket, struct, sys
path, file, *more = sys.argv[1:]
library = ctypes.CDLL(None)
rules = library.syscall(444, (ctypes.c_uint64 * 1)(2), 8, 0)  # no file may be opened for writing
if more and (rules < 0 or library.syscall(446, rules, 0)):
    sys.exit("no Landlock")
link = socket.socket(socket.AF_UNIX)
link.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
link.connect(path)
[number], [(_, _, sender)], _, _ = link.recvmsg(1, socket.CMSG_SPACE(12))
try:
    proof = os.readlink(f"/proc/{struct.unpack('3i', sender)[0]}/fd/{number}")
except OSError:
    proof = ""
arguments = ["punch", "export", "--force", file]
texts = [proof, *arguments, *(f"{name}={value}" for name, value in os.environ.items())]
data = b"".join(text.encode() + bytes(1) for text in texts)
head = struct.pack("3I", 12 + len(data), len(arguments), 0o022)
socket.send_fds(link, [head + data], [0, 1, 2, os.open(".", os.O_RDONLY)])
try:
    print(link.recv(4))
except ConnectionResetError:
    print(b"")
"""


@pytest.mark.parametrize("sandbox", [[], ["landlock"]], ids=str)
def test_no_command_leaves_landlock(own: Warm, sandbox: list[str]) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    path, file = own.find_path(wrapper=NO_PRIVILEGES), own.home / "export.md"
    own.start(NO_PRIVILEGES)
    outcome = subprocess.run(
        [*NO_PRIVILEGES, sys.executable, "-c", OUT_OF_LANDLOCK, path, str(file), *sandbox],
        env=own.env,
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
    )
    if "no Landlock" in outcome.stderr:
        pytest.skip("the kernel has no Landlock")
    assert (outcome.stdout, file.exists()) == (("b''\n", False) if sandbox else (f"{bytes(4)}\n", True)), outcome.stderr


def test_changed_files_end_the_warm_process(own: Warm) -> None:
    folder = own.home / "modules"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("")
    own.env["PYTHONPATH"] = f"{folder}{os.pathsep}{own.env['PYTHONPATH']}"
    path = own.find_path()
    own.start()
    (folder / "sitecustomize.py").write_text("import os")
    assert own.find_path() == path, "the first command after the change starts another"
    assert own.process is not None and own.process.wait(READY_S) == 0


CHANGE = """
import gc, os
freeze = gc.freeze
def change():
    os.utime(__file__)
    freeze()
gc.freeze = change
"""


def test_change_while_loading_ends_the_warm_process(own: Warm) -> None:
    folder = own.home / "modules"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CHANGE)
    own.env["PYTHONPATH"] = f"{folder}{os.pathsep}{own.env['PYTHONPATH']}"
    words = [sys.executable, "-P", "-m", "punchlist_apps.cli.warm.server", own.find_path()]
    assert subprocess.run(words, env=own.env, timeout=READY_S, check=False).returncode == 75


def test_another_program_has_another_warm_process(own: Warm) -> None:
    path = own.find_path()
    own.start()
    shutil.copy(own.program, own.home / "bin/new")
    os.replace(own.home / "bin/new", own.program)
    assert own.find_path() != path


def test_suspended_warm_process(own: Warm) -> None:
    shutil.copy(PROGRAM, own.program)
    own.start()
    assert own.process is not None
    pids = [own.process.pid, *own.list_workers()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    outcome = own.run("add", "a")
    assert (outcome.returncode, outcome.stdout) == (PLAIN, "\n")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    wait_until(own.is_used, "it runs commands again")
    assert '"tasks":[]' in own.run("list", "--json").stdout, "the given-up command was not run"


def test_killed_warm_process_finishes_commands(own: Warm) -> None:
    path = own.find_path()
    own.start()
    with own.waiting() as process:
        assert own.process is not None
        own.process.kill()
        own.process.wait(READY_S)
        wait_until(lambda: own.run("list").returncode == PLAIN, "the idle workers have ended")
        raw = own.run_plainly("add", "Write the lexer")
        assert raw.returncode == 0
        assert "Write the lexer" in process.communicate(timeout=READY_S)[0]
        assert process.returncode == 0
    assert own.find_path() == path


def test_killed_worker_is_reported(warm: Warm) -> None:
    with warm.waiting() as process:
        for worker in warm.list_workers():
            os.kill(worker, signal.SIGKILL)
        assert process.wait(READY_S) == 70
        assert process.stderr is not None and "see: punch doctor" in process.stderr.read()


def test_second_signal_ends_a_suspended_command(own: Warm) -> None:
    own.start()
    with own.waiting() as process:
        workers = own.list_workers()
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(READY_S) in (-signal.SIGINT, -signal.SIGTERM)
        finally:
            for worker in workers:
                os.kill(worker, signal.SIGCONT)
    wait_until(lambda: own.count_clients() == 0, "the worker has ended")


@pytest.mark.parametrize("words", ["next --take --wait 60s", "next --take --wait=60s", "log -f", "log -fn5"])
def test_waiting_command_keeps_no_listener(own: Warm, words: str) -> None:
    own.start()
    with own.popen(*words.split()) as process:
        try:
            wait_until(own.count_clients, "the command is connected")
            assert own.process is not None
            own.process.kill()
            own.process.wait(READY_S)
            wait_until(lambda: own.run("list").returncode == PLAIN, "the idle workers have ended")
            assert own.find_path(), "it starts another warm process"
        finally:
            process.kill()


def test_stopping_the_daemon_ends_it(own: Warm) -> None:
    path = own.find_path()
    own.start()
    Path(own.home / "punchlist/warm-0.sock").touch()
    assert own.run("daemon", "stop").returncode == 0
    assert own.process is not None and own.process.wait(READY_S) == 0
    assert not os.path.exists(path)
    assert not (own.home / "punchlist/warm-0.sock").exists(), "stale files are removed"


LISTEN = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{sys.argv[1]}/warm-1.sock")
listener.listen()
print("ready", flush=True)
sys.stdin.read()
"""


def test_stopping_the_daemon_ends_no_other_process(own: Warm) -> None:
    (own.home / "punchlist/warm-0.sock").mkdir()  # can't be unlinked
    words = [sys.executable, "-c", LISTEN, f"{own.home}/punchlist"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        outcome = own.run_plainly("daemon", "stop")
        assert outcome.returncode == 0, outcome.stderr
        other.communicate()
    assert other.returncode == 0


BROKEN = """
from punchlist_apps.cli.warm import worker
receive, calls = worker._receive, []
def fail(link):
    calls.append(link)
    if len(calls) > 1:
        raise RuntimeError("nothing received")
    return receive(link)
worker._receive = fail
"""


def test_fault_of_a_worker_is_recorded(own: Warm) -> None:
    folder = own.home / "modules"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BROKEN)
    own.env["PYTHONPATH"] = f"{folder}{os.pathsep}{own.env['PYTHONPATH']}"
    path, log = own.find_path(), own.home / "warm.log"
    words = [sys.executable, "-P", "-m", "punchlist_apps.cli.warm.server", path]
    with log.open("wb") as errors:
        own.process = subprocess.Popen(words, env=own.env, stderr=errors)
    wait_until(
        lambda: own.run("list").returncode and "\nRuntimeError: nothing received\n" in log.read_text(),
        "the fault is in the log",
    )


def test_only_one_process_listens(own: Warm) -> None:
    path = own.find_path()
    own.start()
    second = subprocess.run(
        [sys.executable, "-P", "-m", "punchlist_apps.cli.warm.server", path], env=own.env, timeout=READY_S, check=False
    )
    assert second.returncode == 75
    assert own.is_used()


def test_failed_start_is_reported_and_not_repeated(own: Warm) -> None:
    path = own.find_path()
    stub = own.program.with_name("punchlist")
    stub.write_text(f'#!/bin/sh\nexec {sys.executable} -m punchlist "$@"\n')
    (own.home / "punchlist/warm.log").write_text("Traceback\nOSError: too many watches\n")
    assert own.run("list").returncode == 0
    assert "warn  warm process: OSError: too many watches" in own.run("doctor").stdout
    assert not os.path.exists(path)


def test_log_that_is_a_pipe_starts_no_warm_process(own: Warm) -> None:
    os.mkfifo(own.home / "punchlist/warm.log")
    assert own.run_plainly("list", env={**own.env, "PUNCHLIST_WARM": own.find_path()}).returncode == 0


@needs_root
def test_directory_of_another_user_gets_no_warm_process(own: Warm) -> None:
    path = own.find_path()
    os.chown(own.home / "punchlist", OTHER_USER, -1)
    assert own.run_plainly("list", env={**own.env, "PUNCHLIST_WARM": path}).returncode == 0
    assert not (own.home / "punchlist/warm.log").exists()


@pytest.mark.parametrize("words", ["daemon rpc --stdio", "daemon stop", "--version"])
def test_other_commands_start_no_warm_process(own: Warm, words: str) -> None:
    stub = own.program.with_name("punchlist")
    stub.write_text(f'#!/bin/sh\nexec {sys.executable} -m punchlist "$@"\n')
    assert own.run(*words.split()).returncode == 0
    assert not (own.home / "punchlist/warm.log").exists()


@pytest.mark.parametrize("successor", [False, True])
def test_removed_socket_ends_the_warm_process(own: Warm, monkeypatch: pytest.MonkeyPatch, successor: bool) -> None:
    path = own.find_path()
    monkeypatch.setattr(server, "_CHECK_S", 0.01)
    listener, changes, file = server._prepare(path)  # pyright: ignore[reportPrivateUsage]
    os.unlink(path)
    with listener, socket.socket(socket.AF_UNIX) as other:
        if successor:
            other.bind(path)
        server._serve(listener, changes, path, file)  # pyright: ignore[reportPrivateUsage]
    os.close(changes)
    gc.unfreeze()


def test_warm_process_leaves_its_successors_socket(own: Warm) -> None:
    path = own.find_path()
    own.start()
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as successor:
        successor.bind(path)
        own.close()
    assert os.path.exists(path)


def test_plain_program_starts_the_warm_process(own: Warm) -> None:
    path = own.find_path()
    stub = own.program.with_name("punchlist")
    stub.write_text(f'#!/bin/sh\nexec {sys.executable} -m punchlist "$@"\n')
    assert own.run("add", "a").returncode == 0
    stub.write_text(f"#!/bin/sh\nexit {PLAIN}\n")
    wait_until(own.is_used, "the warm process runs commands")
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
    assert own.run("daemon", "stop").returncode == 0
