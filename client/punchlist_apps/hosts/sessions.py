"""Maps host sessions to agents, so that the hooks and the MCP server of a session use one name.

A host such as Claude Code starts hooks and MCP servers as separate processes. Both can find out these facts:

| what | hooks | MCP server |
|---|---|---|
| session id | `session_id` on standard input | `CLAUDE_CODE_SESSION_ID`, as set at the server's start |
| host's process | nearest ancestor that isn't a shell | the same |

The session id changes within one process of the host (`/clear`, `/resume`), while the server still has the old id.
Therefore each hook stores the host's process and its sessions in a file, which the server reads. The name of an agent
consists of its host's name and six hex digits of a hash of its session's id: `claude-code/7f3c1a`. Ids are never stored
or shown. If the host has no session ids, a server stores its agent's key under its place (directory, user and list), so
that the next server in the same place can continue the agent.
"""

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256

import msgspec

from punchlist_apps.common import plain_json
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

_HOSTS = {
    "codex-mcp-client": "codex",
    "gemini-cli-mcp-client": "gemini",
    "copilot-cli": "copilot",
    "github-copilot-developer": "copilot",
    "cursor-vscode": "cursor",
}
"""Name that a host's MCP client reports -> the host's name for `punch setup`, which its hooks use."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "env"})
_KEEP_S = 30 * 86_400
_MAX_HOST = 40
_MAX_SESSIONS = 50
_MAX_BYTES = 64 << 10


class HostProcess(msgspec.Struct, frozen=True):
    """A process of a host: the key of its agent, and the keys of its sessions, oldest first."""

    agent: str = ""
    sessions: tuple[str, ...] = ()


def hash_session(session: str) -> str:
    """Return the key of a session: 32 hex digits of a hash of its id."""
    return sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def build_agent_name(host: str, key: str) -> str:
    """Return the name of an agent, `HOST/XXXXXX`, with the host's name sanitized and shortened."""
    host = _HOSTS.get(host, host)
    words = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else " " for char in host).split()
    plain = "-".join(words).strip("-.")[:_MAX_HOST]
    return f"{plain or 'agent'}/{key[:6]}"


def get_session(env: "Mapping[str, str]") -> str | None:
    """Return the id of the session that an MCP server was started for, if Claude Code started it."""
    return (env.get("CLAUDECODE") and env.get("CLAUDE_CODE_SESSION_ID")) or None


def find_host_process(pid: int) -> str | None:
    """Return the nearest ancestor of a process that isn't a shell as `PID-START`, or None if unknown."""
    process = os_calls.read_process(pid)
    ancestor = 0 if process is None else process[2]
    while ancestor > 1 and (process := os_calls.read_process(ancestor)):
        name, started, parent = process
        if name not in _SHELLS:
            return f"{ancestor}-{started}"
        ancestor = parent
    return None


class Sessions:
    """The sessions of all hosts, in small files.

    Args:
        process: The host's process, from `find_host_process`.
    """

    def __init__(self, data_dir: str, process: str | None) -> None:
        self._directory = os.path.join(data_dir, "agents")
        self._process = process
        self._locks: dict[str, int] = {}

    def record(self, session: str, source: str = "") -> str:
        """Record the session for which a hook was called. Return the key of the session's agent.

        Args:
            source: How the session started: `startup`, `resume`, `clear` or `compact`; empty if unknown.
        """
        key, before = hash_session(session), self.load_current()
        if before is not None and key in before.sessions and source not in ("startup", "resume"):
            return before.agent
        agent, earlier = self._load_agent(key), tuple[str, ...]()
        if before is not None and source in ("clear", "compact", "resume"):
            # The user continues in the same window: after /clear, with the same work; after /resume, with older work.
            earlier = before.sessions
            if source != "resume" and agent == key:
                agent = before.agent
                self._save("session", key, HostProcess(agent, (key,)))
        after = HostProcess(agent, (*(one for one in earlier if one != key), key)[-_MAX_SESSIONS:])
        if self._process is not None and after != before:
            self._save("host", self._process, after)
        return agent

    def record_next(self, agent: str, *, is_empty: bool) -> None:
        """Record whether an agent's last `next` returned no task."""
        path = self._path("empty", agent)
        if is_empty:
            make_directories(self._directory)
            atomic_write(path, b"")
        else:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def had_empty_next(self, agent: str) -> bool:
        return os.path.exists(self._path("empty", agent))

    def load_current(self) -> HostProcess | None:
        return None if self._process is None else self._load("host", self._process)

    def find_agent(self, first: str) -> str:
        """Return the current key of an MCP server's agent.

        `first` is the key of its session when the server started.
        """
        current = self.load_current()
        return current.agent if current is not None and first in current.sessions else self._load_agent(first)

    def lock_name(self, name: str) -> bool:
        """Lock a name until this process ends. Return False if another process has locked it."""
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
            if os.fstat(file).st_nlink:  # otherwise another process deleted it between open and flock
                os.utime(file)
                self._locks[name] = file
                return True
            os.close(file)

    def continue_agent(self, host: str, place: str, new_key: str) -> str:
        """Return the key of an agent from this place whose process has ended, and lock its name.

        The lock ensures that only one process continues the agent. Without such an agent, return `new_key` and store
        it.

        Args:
            place: Identifies the processes that continue each other's agents.
        """
        make_directories(self._directory)
        file = os.open(
            self._path("place", f"{host}\0{place}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        with open(file, "r+b") as opened:
            fcntl.flock(file, fcntl.LOCK_EX)
            stored = plain_json.read(opened.read(_MAX_BYTES), HostProcess).sessions
            key = next((old for old in reversed(stored) if self.lock_name(build_agent_name(host, old))), new_key)
            keys = (*(old for old in stored if old != key), key)[-_MAX_SESSIONS:]
            opened.seek(0)
            opened.write(msgspec.json.encode(HostProcess(host, keys)))
            opened.truncate()
        return key

    def close(self) -> None:
        for file in self._locks.values():
            os.close(file)
        self._locks.clear()

    def _load_agent(self, key: str) -> str:
        process = self._load("session", key)
        return key if process is None else process.agent

    def _path(self, kind: str, name: str) -> str:
        return os.path.join(self._directory, f"{kind}-{hash_session(name)}")

    def _load(self, kind: str, name: str) -> HostProcess | None:
        try:
            file = os.open(self._path(kind, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with open(file, "rb") as opened:
                process = plain_json.read(opened.read(_MAX_BYTES), HostProcess)
        except OSError:
            return None
        return process if process.agent else None

    def _save(self, kind: str, name: str, process: HostProcess) -> None:
        make_directories(self._directory)
        atomic_write(self._path(kind, name), msgspec.json.encode(process))
        self._delete_old(time.time() - _KEEP_S)

    def _delete_old(self, before: float) -> None:
        with os.scandir(self._directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process may have deleted it
                    if entry.stat(follow_symlinks=False).st_mtime < before and self._is_unlocked(entry.path):
                        os.unlink(entry.path)

    def _is_unlocked(self, path: str) -> bool:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True
