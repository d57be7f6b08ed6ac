"""Which agent a session of a host is: one name for its hooks and for its MCP server.

A host such as Claude Code starts hooks and MCP servers as separate processes. What they have in common:

| what | hooks | MCP server |
|---|---|---|
| session id | `session_id` on standard input | `CLAUDE_CODE_SESSION_ID`, as it was when the server was started |
| host's process | nearest ancestor that is no shell | the same |

The session id changes within one process of the host (`/clear`, `/resume`), and then the server still has the old
one. So each hook notes the host's process and its sessions in a file, and the server looks there. The name of an agent
is its host's name and six hex digits of a hash of its session's id: `claude-code/7f3c1a`. No id is stored or shown.
A server of a host without session ids notes its key with its place, for the next server there to continue.
"""

import fcntl
import json
import os
import time
from collections.abc import Mapping
from hashlib import sha256

from punchlist_apps.common import plain_json
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "env"})
_KEEP_S = 30 * 86_400
_HOST = 40
_SESSIONS = 50
_MAX_BYTES = 64 << 10
_NOTED = {"agent": "", "sessions": ()}


class HostProcess:
    """One process of a host: the key of its agent, and the keys of the sessions that it has had, oldest first."""

    __slots__ = ("agent", "sessions")

    def __init__(self, agent: str = "", sessions: tuple[str, ...] = ()) -> None:
        self.agent = agent
        self.sessions = sessions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostProcess) and (self.agent, self.sessions) == (other.agent, other.sessions)

    def __hash__(self) -> int:
        return hash((self.agent, self.sessions))


def key_of(session: str) -> str:
    """What stands for a session's id: 32 hex digits, whatever the id is."""
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def agent_name(host: str, key: str) -> str:
    """The name of an agent, `HOST/XXXXXX`: short and plain, whatever the host calls itself."""
    words = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else " " for one in host).split()
    plain = "-".join(words).strip("-.")[:_HOST]
    return f"{plain or 'agent'}/{key[:6]}"


def session_of(env: "Mapping[str, str]") -> str | None:
    """The id of the session that an MCP server was started for, if its host says so."""
    return (env.get("CLAUDECODE") and env.get("CLAUDE_CODE_SESSION_ID")) or None


def host_process() -> str | None:
    """The host that started this process, as `PID-START`; shells in between are passed over. None if unknown."""
    pid = os.getppid()
    while pid > 1 and (found := os_calls.process(pid)):
        name, started, parent = found
        if name not in _SHELLS:
            return f"{pid}-{started}"
        pid = parent
    return None


class Sessions:
    """The sessions of all hosts, in small files.

    Args:
        process: The host that started this process, see `host_process`.
    """

    def __init__(self, data_dir: str, process: str | None) -> None:
        self._directory = os.path.join(data_dir, "agents")
        self._process = process
        self._locks: dict[str, int] = {}

    def note(self, session: str, source: str = "") -> str:
        """A hook was called in a session; returns the key of the session's agent.

        Args:
            source: How the session began: `startup`, `resume`, `clear` or `compact`; empty if the hook does not say.
        """
        key, before = key_of(session), self.current()
        if before is not None and key in before.sessions and source not in ("startup", "resume"):
            return before.agent
        agent, known = self._agent_of(key), tuple[str, ...]()
        if before is not None and source in ("clear", "compact", "resume"):
            # The person goes on in the same window: after /clear with the same work, after /resume with older work.
            known = before.sessions
            if source != "resume" and agent == key:
                agent = before.agent
                self._save("session", key, HostProcess(agent, (key,)))
        noted = HostProcess(agent, tuple(dict.fromkeys([*known, key]))[-_SESSIONS:])
        if self._process is not None and noted != before:
            self._save("host", self._process, noted)
        return agent

    def current(self) -> HostProcess | None:
        return None if self._process is None else self._load("host", self._process)

    def agent(self, first: str) -> str:
        """The key of an MCP server's agent by now, if its session had the key `first` when the server was started."""
        now = self.current()
        return now.agent if now is not None and first in now.sessions else self._agent_of(first)

    def take(self, name: str) -> bool:
        """Make a name this process's own as long as it lives; False if another living process has it."""
        if name in self._locks:
            return True
        make_directories(self._directory)
        path = self._path("name", name)
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                return False
            if os.fstat(file).st_nlink:  # else it was forgotten between our two calls
                os.utime(file)
                self._locks[name] = file
                return True
            os.close(file)

    def succeed(self, host: str, place: str, drawn: str) -> str:
        """Return the key of the agent that this process continues: one of this place whose process has ended.

        The name is taken with it, so of two processes one continues the agent. Without such an agent the key is
        `drawn`, for a later process to continue.

        Args:
            place: What the processes have in common.
        """
        make_directories(self._directory)
        file = os.open(
            self._path("place", f"{host}\0{place}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        with open(file, "r+b") as opened:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = HostProcess(**plain_json.read_members(opened.read(_MAX_BYTES), _NOTED)).sessions
            key = next((one for one in reversed(known) if self.take(agent_name(host, one))), drawn)
            kept = (*(one for one in known if one != key), key)[-_SESSIONS:]
            opened.seek(0)
            opened.write(json.dumps({"agent": host, "sessions": kept}).encode())
            opened.truncate()
        return key

    def close(self) -> None:
        for file in self._locks.values():
            os.close(file)
        self._locks.clear()

    def _agent_of(self, key: str) -> str:
        known = self._load("session", key)
        return key if known is None else known.agent

    def _path(self, kind: str, name: str) -> str:
        return os.path.join(self._directory, f"{kind}-{key_of(name)}")

    def _load(self, kind: str, name: str) -> HostProcess | None:
        try:
            file = os.open(self._path(kind, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with open(file, "rb") as opened:
                noted = HostProcess(**plain_json.read_members(opened.read(_MAX_BYTES), _NOTED))
        except OSError:
            return None
        return noted if noted.agent else None

    def _save(self, kind: str, name: str, noted: HostProcess) -> None:
        make_directories(self._directory)
        members = {"agent": noted.agent, "sessions": noted.sessions}
        atomic_write(self._path(kind, name), json.dumps(members).encode())
        self._forget(time.time() - _KEEP_S)

    def _forget(self, before: float) -> None:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < before and self._is_free(entry.path):
                    os.unlink(entry.path)

    def _is_free(self, path: str) -> bool:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True
