"""An unprivileged `systemd --user`, for tests that run as root, even on a machine without a running systemd.

It runs as the user nobody, in a mount namespace with its own view of the cgroups.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from punchlist_testing.optional import explain, find_program

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
NEEDED = ("aiosqlite", "anyio", "msgspec", "watchfiles", "idna", "sniffio", "typing_extensions", "uvloop")
FOR_WEB = ("segno", "starlette", "uvicorn", "h11", "click")
FOR_MCP = (
    *("mcp", "mcp_types", "pydantic", "pydantic_core", "annotated_types", "typing_inspection", "httpx2"),
    *("opentelemetry", "cryptography", "cffi", "_cffi_backend", "python_multipart", "sse_starlette"),
)
ANSWERS_S = 15.0
RUNTIME = Path(f"/run/user/{NOBODY}")
"""The standard path: systemd derives it from the user id when it hides paths from a service."""

START = """
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mount --rbind /run /run  # unless /run is a mount, systemd replaces it by an empty one for some services
mkdir -p /run/systemd; mount -t tmpfs none /run/systemd; mkdir -p /run/systemd/system
group=/sys/fs/cgroup/$1; mkdir $group
chown 65534:65534 $group $group/cgroup.procs $group/cgroup.subtree_control $group/cgroup.threads
echo $$ > $group/cgroup.procs
shift
exec "$@"
"""
CLEAN = """
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup && find /sys/fs/cgroup/$1 -depth -type d -exec rmdir {} +
"""


class Unavailable(Exception):
    """This machine can't run a user manager; the message is the reason."""


def systemd_program() -> str:
    """Return the path of systemd.

    Raises:
        Unavailable: This machine can't run a user manager.
    """
    program = next(
        (path for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd") if os.access(path, os.X_OK)), ""
    )
    for is_missing, reason in (
        (os.getuid() != 0, "only root can make the namespace for it"),
        (not program or find_program("systemd-analyze") is None, explain("systemd-analyze")),
        (not all(map(shutil.which, ("unshare", "setpriv", "mount"))), explain("mount")),
    ):
        if is_missing:
            raise Unavailable(reason)
    if RUNTIME.exists():
        raise Unavailable(f"{RUNTIME} exists: another manager of this user may be running")
    script = "mount --make-rprivate / && mount -t cgroup2 none /mnt"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"no cgroups can be mounted in a namespace: {done.stderr.strip()}")
    return program


def interpreter() -> str:
    """Return the path of a Python of this version that the user nobody can run.

    Raises:
        Unavailable: No such Python was found.
    """
    code = "import sys, sqlite3; print(*sys.version_info[:2])"
    for path in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        # Use a shell, because setpriv still has root's access to directories when it executes a program.
        command = [*AS_NOBODY, "sh", "-c", 'exec "$0" "$@"', path, "-I", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout.split() == [str(number) for number in sys.version_info[:2]]:
            return path
    raise Unavailable(f"no Python {sys.version_info[0]}.{sys.version_info[1]} that the user nobody may run")


class UserManager:
    """A running manager, its user's home and runtime directory, and a readable copy of the program."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.runtime = RUNTIME
        self.program = base / "program"
        self.units = self.home / ".config" / "systemd" / "user"
        self.socket = str(self.runtime / "punchlist" / "daemon.sock")
        self.data_dir = str(self.home / ".local" / "share" / "punchlist")
        self.python = ""
        self.pid = 0
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": os.pathsep.join(
                str(self.program / folder) for folder in ("packages", "daemon", "client", "schemas")
            ),
        }

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            [*AS_NOBODY, *command], env=self.env, capture_output=True, text=True, timeout=60, cwd="/", check=False
        )
        assert not check or done.returncode == 0, (
            f"{command}: {done.returncode}\n{done.stdout}{done.stderr}{self.log()}"
        )
        return done.stdout + done.stderr

    def punch(self, *words: str) -> str:
        return self.run(self.python, "-P", "-m", "punchlist", *words)

    def systemctl(self, *words: str) -> str:
        return self.run("systemctl", "--user", *words)

    def show(self, name: str, unit: str = "punchlistd.service") -> str:
        return self.systemctl("show", unit, "--value", "-p", name).strip()

    def log(self) -> str:
        return "".join(
            path.read_text(errors="replace")
            for path in (self.home / "manager.log", self.home / "daemon.log")
            if path.exists()
        )


def _copy_program(manager: UserManager) -> None:
    for folder in ("daemon", "client", "schemas", "systemd"):
        shutil.copytree(ROOT / folder, manager.program / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*NEEDED, *FOR_WEB, *FOR_MCP):
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue
        packages = manager.program / "packages"
        for place in spec.submodule_search_locations or ():
            shutil.copytree(place, packages / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
            for metadata in Path(place).parent.glob(f"{name}-*.dist-info"):
                shutil.copytree(metadata, packages / metadata.name)
        if not spec.submodule_search_locations:
            packages.mkdir(exist_ok=True)
            shutil.copy(str(spec.origin), packages)
    for path in (manager.program, *manager.program.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


@contextmanager
def user_manager() -> Generator[UserManager]:
    """Run a manager, and stop it with everything it started at the end of the block.

    Raises:
        Unavailable: This machine can't run one.
    """
    program, python = systemd_program(), interpreter()
    is_new = not RUNTIME.parent.exists()
    with tempfile.TemporaryDirectory(prefix="punchlist-manager-", dir="/run", ignore_cleanup_errors=True) as name:
        base = Path(name)
        base.chmod(0o755)
        manager = UserManager(base)
        manager.python = python
        for place in (manager.home, manager.runtime):
            place.mkdir(mode=0o700, parents=True)
        _copy_program(manager)
        for place in (manager.home, manager.runtime):
            os.chown(place, NOBODY, NOBODY)
        with open(manager.home / "manager.log", "ab") as log:
            user = [*AS_NOBODY, "--inh-caps=-all", program, "--user", "--log-level=info", "--log-target=console"]
            group = base.name
            process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", START, "sh", group, *user], env=manager.env, stdout=log, stderr=log
            )
        manager.pid = process.pid
        try:
            _wait_until_ready(manager, process)
            yield manager
        finally:
            units = [f"{name}.{kind}" for name in ("punchlist-mcp", "punchlistd") for kind in ("socket", "service")]
            manager.run("systemctl", "--user", "stop", *units, check=False)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            subprocess.run(["unshare", "--mount", "sh", "-c", CLEAN, "sh", group], capture_output=True, check=False)
            shutil.rmtree(manager.runtime, ignore_errors=True)
            if is_new:
                manager.runtime.parent.rmdir()


def _wait_until_ready(manager: UserManager, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + ANSWERS_S
    while "Version=" not in manager.run("systemctl", "--user", "show", "--property=Version", check=False):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable(f"the manager does not answer: {manager.log()[-500:]}")
        time.sleep(0.05)
