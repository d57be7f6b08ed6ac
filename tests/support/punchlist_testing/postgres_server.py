"""PostgreSQL servers on loopback for tests, which can kill, pause and restart them."""

import atexit
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from punchlist_apps.cli.installing.space_postgres import Login, build_sql, create_login
from punchlist_testing.nats_server import own_address
from punchlist_testing.optional import needs

READY_S = 60.0
PORT = 5432
DATABASE = "punchlist"
_PASSWORD = "of the owner"


@cache
def programs() -> Path | None:
    """Return the directory of the server's programs: from PATH, else Debian's directory of the newest version."""
    program = shutil.which("postgres")
    places = [str(Path(os.path.realpath(program)).parent)] if program else []
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda place: int(place.split("/")[4]), reverse=True)
    for place in places:
        if all((Path(place) / name).exists() for name in ("postgres", "initdb", "psql")) and _user() is not None:
            return Path(place)
    return None


@cache
def _user() -> str | None:
    """Return the user to run the servers as: PostgreSQL refuses to run as root."""
    if os.getuid():
        return pwd.getpwuid(os.getuid()).pw_name
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


needs_postgres = needs("postgres", programs() is not None)


def _as_user() -> dict[str, Any]:
    if os.getuid():
        return {}
    entry = pwd.getpwnam(_user() or "")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _chown(place: Path) -> None:
    if as_user := _as_user():
        os.chown(place, as_user["user"], as_user["group"])


def _run(place: Path, program: str, *words: str, wrap: Sequence[str] = (), stdin: str | None = None) -> str:
    directory = programs()
    assert directory is not None, "needs_postgres comes first"
    done = subprocess.run(
        [*wrap, str(directory / program), *words],
        check=False,
        env={"HOME": str(place), "PATH": "/usr/bin:/bin", "PGPASSWORD": _PASSWORD, "LC_ALL": "C"},
        input=stdin,
        cwd=place,
        capture_output=True,
        text=True,
        **({} if wrap else _as_user()),
    )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip()}")
    return done.stdout


@cache
def _new_cluster() -> Path:
    """Return the directory of an unused cluster, to be copied, because initdb takes a second of processor time."""
    place = Path(tempfile.mkdtemp(prefix="punchlist-postgres-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    _chown(place)
    secret = place / "password"
    secret.write_text(_PASSWORD)
    secret.chmod(0o644)
    options = ("--auth=scram-sha-256", f"--pwfile={secret}", "--username=owner", "--encoding=UTF8", "--locale=C")
    _run(place, "initdb", "--no-sync", *options, "-D", str(place / "data"))
    return place / "data"


class PostgresServer:
    """A server with the database `punchlist`, not started yet.

    Args:
        settings: Additional lines of its configuration.
        host: Address that it listens on.
        wrap: Command prefix, such as one that enters a network namespace; it must keep the process id.
        copy_of: Primary server; this one becomes its standby.
        place: Directory of all its files; by default a temporary one, which `end` removes.
    """

    def __init__(
        self,
        settings: str = "",
        *,
        host: str = "",
        wrap: Sequence[str] = (),
        copy_of: "PostgresServer | None" = None,
        place: Path | None = None,
    ) -> None:
        self.host = host or own_address()
        self.wrap = tuple(wrap)
        self.process: subprocess.Popen[bytes] | None = None
        self.place = Path(tempfile.mkdtemp(prefix="punchlist-postgres-")) if place is None else place
        self.data = self.place / "data"
        self._made_place = place is None
        _chown(self.place)
        if copy_of is None:
            subprocess.run(["cp", "-a", _new_cluster(), self.data], check=True)
            self._write("postgresql.conf", f"unix_socket_directories = ''\nshared_buffers = 16MB\n{settings}\n")
            # A killed server leaves its shared memory behind: keep it in the server's directory, not in /dev/shm.
            self._write("postgresql.conf", "dynamic_shared_memory_type = mmap\n")
            self._write("pg_hba.conf", "host all all 0.0.0.0/0 scram-sha-256\nhost replication all all scram-sha-256\n")
        else:
            target = f"host={copy_of.host} port={PORT} user=owner password='{_PASSWORD}'"
            self._run("pg_basebackup", "-d", target, "-D", str(self.data), "--write-recovery-conf", "--checkpoint=fast")
            self._write("postgresql.conf", f"{settings}\n")
        self._write("postgresql.conf", f"listen_addresses = '{self.host}'\nport = {PORT}\n")

    def _write(self, name: str, text: str) -> None:
        with open(self.data / name, "a", encoding="utf-8") as file:
            file.write(text)

    def _run(self, program: str, *words: str, stdin: str | None = None) -> str:
        return _run(self.place, program, *words, wrap=self.wrap if program == "psql" else (), stdin=stdin)

    def url(self, user: str) -> str:
        return f"postgres://{user}@{self.host}:{PORT}/{DATABASE}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections.

        Raises:
            RuntimeError: It ended, or took longer than `READY_S`; the message is its log.
        """
        directory = programs()
        assert directory is not None, "needs_postgres comes first"
        run = [str(directory / "postgres"), "-D", str(self.data)]
        who: dict[str, Any] = _as_user()
        if self.wrap and who:
            run, who = ["setpriv", f"--reuid={who['user']}", f"--regid={who['group']}", "--clear-groups", *run], {}
        with open(self.place / "log", "ab") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [*self.wrap, *run],
                stdin=subprocess.DEVNULL,
                stderr=log,
                user=who.get("user"),
                group=who.get("group"),
                extra_groups=who.get("extra_groups"),
            )
        self.process = process
        deadline = time.monotonic() + READY_S
        while True:
            try:
                self.sql("SELECT 1", database="postgres")
                return
            except RuntimeError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(self.log()) from None
                time.sleep(0.05)

    def sql(self, text: str, database: str = DATABASE) -> str:
        """Run statements as the owner; return their output."""
        options = ("--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1")
        target = f"host={self.host} port={PORT} user=owner dbname={database} connect_timeout=5"
        return self._run("psql", *options, "-d", target, stdin=text).strip()

    def add(self, space: str, *logins: Login) -> None:
        """Create a space with `punch space server`'s SQL, and logins for its members."""
        if self.sql(f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'", "postgres") == "":
            self.sql(f"CREATE DATABASE {DATABASE}", "postgres")
        self.sql(build_sql(space, list(logins)))

    def kill(self) -> None:
        """Send SIGKILL to the server and all its processes, and wait for them to end."""
        if self.process is not None and self.process.poll() is None:
            members = self._family()
            for pid in members:
                _signal(pid, signal.SIGKILL)
            self.process.wait()
            # A new server can't start while a process of the old one holds the shared memory.
            while any(map(_is_alive, members[1:])):
                time.sleep(0.01)

    def pause(self) -> None:
        for pid in self._family()[1:]:
            _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._family():
            _signal(pid, signal.SIGCONT)

    def _family(self) -> list[int]:
        """Stop the server, so that it starts no more processes; return its id and those of its children."""
        assert self.process is not None, "start it first"
        _signal(self.process.pid, signal.SIGSTOP)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [self.process.pid, *map(int, children.read_text().split())]

    def end(self) -> None:
        """Kill the server and remove its temporary directory."""
        self.kill()
        if self._made_place:
            shutil.rmtree(self.place, ignore_errors=True)

    def log(self) -> str:
        return (self.place / "log").read_text("utf-8")


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Members:
    """Members of a new space, with their creds files.

    Args:
        directory: Directory of the creds files.
        server: Running server.
        space: Name of the space to create.
        names: Name -> role of each member.
    """

    def __init__(self, directory: Path, server: PostgresServer, space: str, **names: str) -> None:
        directory.mkdir(exist_ok=True)
        self.server = server
        self.space = space
        self._logins = {name: create_login(f"{name}-{space}", role) for name, role in names.items()}
        self._directory = directory
        server.add(space, *self._logins.values())
        for member in self._logins.values():
            path = directory / member.name
            path.touch(0o600)
            path.write_text(member.format_creds([server.host], DATABASE))

    def url(self, name: str) -> str:
        return self.server.url(self._logins[name].name)

    def creds(self, name: str) -> str:
        return str(self._directory / self._logins[name].name)


@contextmanager
def running_postgres(settings: str = "", **options: Any) -> Generator[PostgresServer]:
    """Run a server until the end of the block."""
    server = PostgresServer(settings, **options)
    try:
        server.start()
        yield server
    finally:
        server.end()
