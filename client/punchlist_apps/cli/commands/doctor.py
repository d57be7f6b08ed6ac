"""`punch doctor`: looks at everything a daemon needs and says what to change. Starts no daemon, changes nothing."""

import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any, NamedTuple

from punchlist import __version__
from punchlist.base.text import one_line, safe
from punchlist.connection.launch import Target, find_lock_holder
from punchlist.errors import DaemonUnavailable, Damaged, PunchlistError, RequestRefused, TimedOut
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.parsing.arguments import Usage
from punchlist_apps.cli.printing.summaries import product, with_counts
from punchlist_schemas.directory import Meant
from punchlist_schemas.rendezvous import status_path
from punchlist_schemas.system import os_calls

COMMANDS = {
    "doctor": Usage((), ("punch doctor",)),
}

_LISTS = 100
_MIN_FREE_BYTES = 256 << 20
_LARGE_LOG_BYTES = 1 << 30
_LARGE_WAL_BYTES = 64 << 20
_NEEDED_PYTHON = (3, 11)
_OPTIMIZED = "--enable-optimizations"
_SYSTEM_FOLDER = "/usr/bin"
_SYSTEM_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
_MIB = 1 << 20
_OTHERS = 0o077
REPLY_S = 10.0
"""Time limit for a reply of the daemon, in seconds."""


class Finding(NamedTuple):
    """One check: its name, `ok`, `warn` or `fail`, what was found, and the way out."""

    check: str
    state: str
    found: str
    advice: str = ""


def run_doctor(context: Context) -> int:
    findings: list[Finding] = []
    for one in examine(context.target):
        findings.append(one)
        if not context.args.json:
            advice = [f"      {context.style.glyphs['to']} {safe(one.advice)}"] if one.advice else []
            found = f"{context.style.paint(one.state, f'{one.state:>4}')}  {one.check}: {safe(one.found)}"
            context.lines([found, *advice])
    if context.args.json:
        context.json([finding._asdict() for finding in findings])
    return int(any(finding.state == "fail" for finding in findings))


def examine(target: Target) -> Iterator[Finding]:
    yield _python()
    yield _private_folder("socket directory", os.path.dirname(target.socket), "XDG_RUNTIME_DIR or --socket")
    yield _private_folder("data directory", target.data_dir, "PUNCHLIST_DATA_DIR or --data-dir")
    yield _disk(target.data_dir)
    there = target.with_autostart(False)
    with Caller(there, name="punch doctor", timeout_s=REPLY_S) as client:
        replies = True
        try:
            client.open()
            yield from _daemon(target, client)
        except PunchlistError as error:
            replies = False
            yield _without_reply(target, there.pid(), error)
        yield from _mirrors(target.data_dir)
        yield _project(target, client if replies else None)
    yield from _hosts()
    yield from _extras(target.data_dir)


def _project(target: Target, client: Caller | None) -> Finding:
    """The list that an agent in this directory gets, or why it gets none."""
    from punchlist.base import project
    from punchlist_schemas import directory
    from punchlist_schemas.project_file import DirectoryError

    try:
        meant = directory.meant()
    except DirectoryError as error:
        return Finding("project", "fail", str(error), error.advice)
    if meant is None:
        return Finding("project", "ok", "no project file and no repository here", "agents get a list by: punch init")
    if not meant.may_use(target.data_dir, _find_used(client, meant)):
        refusal = project.not_allowed(meant)
        return Finding("project", "fail", str(refusal), refusal.advice)
    found = f"{meant.conversation}, by {meant.file or f'the repository {meant.root}'}"
    return Finding("project", "ok", found)


def _find_used(client: Caller | None, meant: "Meant") -> str | None:
    """Return the id of the list of this name; with no daemon to ask, it is taken for unused."""
    try:
        found = client and client.call("conversation.get", {"conversation": meant.conversation})["conversation"]
        return found["conversation"] if found and found["version"] else None
    except PunchlistError:
        return None


def _hosts() -> Iterator[Finding]:
    """What the hosts' configurations say of us: the command is there and serves, the hooks are quoted."""
    from punchlist_apps.common import extras
    from punchlist_apps.hosts import health

    found = list(health.find_commands(os.environ, os.getcwd()))
    if extras.is_installed():
        yield Finding("extra mcp", "ok", "installed")
    else:
        yield Finding("extra mcp", "warn" if found else "ok", extras.MISSING, extras.build_install_command())
    for one in found:
        trouble, advice = health.check_command(one, os.environ)
        if trouble:
            yield Finding(one.title, "fail", trouble, advice or f"punch setup {one.host} --scope {one.scope}")
        else:
            yield Finding(one.title, "ok", one.text)


def _extras(data_dir: str) -> Iterator[Finding]:
    """The missing extras: those of configured spaces, then all, with the command that installs one."""
    from punchlist_apps.common import extras

    missing = [name for name in extras.MODULES if not extras.is_installed(name)]
    for name in _extras_of_spaces(data_dir):
        if name in missing:
            found = f"a space needs the extra {name}, which is not installed"
            yield Finding(
                f"extra {name}", "warn", found, f"{extras.build_install_command(name)}; then: punch daemon stop"
            )
    if missing:
        # The daemon can't know how it was installed: its errors about spaces refer to this line.
        one = "shared" if "shared" in missing else missing[0]
        advice = f"to install one, such as {one}: {extras.build_install_command(one)}"
        yield Finding("extras", "ok", f"not installed: {', '.join(missing)}", advice)


def _extras_of_spaces(data_dir: str) -> Iterator[str]:
    """The extras that the addresses of configured spaces need. Without its extra a daemon ends, so the file is read."""
    configured = os.environ.get("PUNCHLIST_SPACE", "")
    try:
        with open(os.path.join(data_dir, "spaces.json"), encoding="utf-8", errors="replace") as file:
            configured += file.read()
    except OSError:
        pass
    if "tls://" in configured or "nats://" in configured:
        yield "shared"
    if "postgres://" in configured or "postgresql://" in configured:
        yield "postgres"


def _python() -> Finding:
    text = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < _NEEDED_PYTHON:
        return Finding("python", "fail", text, "punchlist needs Python 3.11 or newer")
    if _is_optimized():
        return Finding("python", "ok", text)
    found = next(filter(None, (shutil.which(name, path=_SYSTEM_FOLDER) for name in _SYSTEM_PYTHONS)), None)
    quicker = f"{found} runs" if found else f"one that is built with {_OPTIMIZED} runs"
    return Finding(
        "python", "ok", f"{text}, built without {_OPTIMIZED}", f"{quicker} the daemon faster: install punchlist with it"
    )


def _is_optimized() -> bool:
    """Whether this Python was built with profile-guided optimization, which counts more than a newer version.

    A build notes the options it was made with. Debian builds with a profile and without that option, so the system's
    own Python counts as optimized. So does a build that notes no options.
    """
    options: str | None = sysconfig.get_config_var("CONFIG_ARGS")
    return options is None or _OPTIMIZED in options or sys.base_prefix == "/usr"


def _nearest(path: str) -> str:
    while not os.path.exists(path) and path not in ("/", ""):
        path = os.path.dirname(path)
    return path or "."


def _private_folder(check: str, path: str, way_out: str) -> Finding:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return _missing_folder(check, path, way_out)
    except OSError as error:
        return Finding(check, "fail", f"{path}: {error.strerror}", f"make it yours: ls -ld {path}")
    if found.st_uid != os.getuid():
        return Finding(check, "fail", f"{path} belongs to uid {found.st_uid}", "use another with an option, see --help")
    if not stat.S_ISDIR(found.st_mode):
        return Finding(check, "fail", f"{path} is not a directory", "move the file away")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        return Finding(check, "warn", f"{path} is open to others (mode {mode:04o})", f"chmod 700 {path}")
    return Finding(check, "ok", path)


def _missing_folder(check: str, path: str, way_out: str) -> Finding:
    above = _nearest(path)
    if os.access(above, os.W_OK | os.X_OK):
        return Finding(check, "ok", f"{path} is not there yet; the daemon makes it")
    found = f"{path} is not there, and nothing can be made in {above}"
    return Finding(check, "fail", found, f"{way_out} names another place")


def _disk(path: str) -> Finding:
    path = _nearest(path)
    try:
        room = os.statvfs(path)
    except OSError as error:
        return Finding("disk", "warn", f"{path}: {error.strerror}")
    free = room.f_bavail * room.f_frsize
    text = f"{free // _MIB} MiB free for {path}"
    if free < _MIN_FREE_BYTES:
        return Finding("disk", "warn", text, "free some space: a full disk stops all writing")
    return Finding("disk", "ok", text)


def _without_reply(target: Target, pid: int, error: PunchlistError) -> Finding:
    """Return why no daemon runs, or why it doesn't reply."""
    if isinstance(error, TimedOut) and pid and not os_calls.is_suspended(pid):
        found = f"no reply from pid {pid} for {REPLY_S:.0f} s"
        return Finding("daemon", "fail", found, f"{_log_of(target)}; if it stays so: kill -9 {pid} loses no change")
    if isinstance(error, DaemonUnavailable) and error.temporary:
        if elsewhere := find_lock_holder(target.data_dir):
            return _elsewhere(target, elsewhere)
        start = "the next command starts one" if target.autostart else f"punchlistd --socket {target.socket}"
        return Finding("daemon", "warn", "none is running", start)
    first, _, rest = str(error).partition("\n")
    return Finding("daemon", "fail", first, one_line(rest) or _log_of(target))


def _log_of(target: Target) -> str:
    path = os.path.join(target.data_dir, "daemon.log")
    return (
        f"see the end of {path}" if os.path.exists(path) else "see the log of the service: punch daemon service status"
    )


def _daemon(target: Target, client: Caller) -> Iterator[Finding]:
    hello: dict[str, Any] = client.call("daemon.hello")
    yield Finding("daemon", "ok", f"punchlistd {hello['version']}, pid {hello['pid']}, on {target.socket}")
    status: dict[str, Any] = client.call("daemon.status")
    yield _versions(hello)
    if os.path.realpath(status["data_dir"]) != os.path.realpath(target.data_dir):
        advice = "set PUNCHLIST_DATA_DIR for both, or restart the daemon"
        yield Finding("data in use", "warn", f"the daemon keeps its data in {status['data_dir']}", advice)
    yield from _figures(status)
    yield from _lists(client)
    yield from _spaces(client)
    yield status_file(target.socket)


def _lists(client: Caller) -> Iterator[Finding]:
    """Whether the newest lists can be shown whole; `punch daemon verify` also reads what lies before snapshots."""
    names = [one["conversation"] for one in client.call("conversation.list", {"limit": _LISTS})["conversations"]]
    found = 0
    for name in names:
        try:
            cut = client.call("conversation.get", {"conversation": name})["conversation"].get("damaged")
            said = cut and f"{name} is damaged at position {cut['seq']} ({cut['reason']})"
        except Damaged as damaged:
            said = damaged.message
        if said:
            found += 1
            yield Finding("list", "fail", said, "to repair the log: punch daemon stop; punch daemon verify --repair")
    if not found:
        yield Finding(
            "lists", "ok", f"the newest {len(names)} can be shown whole; punch daemon verify checks every event"
        )


def _spaces(client: Caller) -> Iterator[Finding]:
    """How the way to each space stands, and what can't be changed in it."""
    try:
        spaces: list[dict[str, Any]] = client.call("space.list").get("spaces", [])
    except RequestRefused:  # a daemon of before there were spaces
        return
    for space in spaces:
        check = f"space {space['space']}"
        if space["state"] == "up":
            yield Finding(check, "ok", f"{space['server']}, {product(space)}")
        else:
            state = "fail" if space["state"] == "refused" else "warn"
            yield Finding(check, state, space.get("reason") or "not connected yet", "punch space status says more")
        if space.get("unchecked"):
            found = "nobody can say whether its servers write a change to the disk before they acknowledge it"
            yield Finding(check, "warn", found, "name their monitors: punch space add … --monitor URL")
        for one in space.get("lists", ()):
            if one["state"] in ("diverged", "upgrade_needed", "damaged", "forbidden"):
                yield Finding(f"list {one['conversation']}", "fail", one.get("reason") or one["state"])


def _elsewhere(target: Target, pid: int) -> Finding:
    """A daemon has our data and listens somewhere else: no command can reach it, or start another."""
    found = f"none on {target.socket}; pid {pid} keeps {target.data_dir} and listens elsewhere"
    advice = "set PUNCHLIST_SOCKET or XDG_RUNTIME_DIR as it has them"
    words = os_calls.command_line(pid)
    if "--socket" in words[:-1]:
        advice = f"use that one: PUNCHLIST_SOCKET={words[words.index('--socket') + 1]}"
    return Finding("daemon", "fail", found, f"{advice}; or end it: kill {pid}")


def _versions(hello: dict[str, Any]) -> Finding:
    if hello["version"] != __version__:
        found = f"daemon {hello['version']}, command {__version__}"
        return Finding("versions", "warn", found, "punch daemon stop; the next command starts the new one")
    return Finding("versions", "ok", f"{__version__}, build {hello.get('build') or 'not told'}")


def _figures(status: dict[str, Any]) -> Iterator[Finding]:
    large = (
        ("log", "log_bytes", _LARGE_LOG_BYTES, "erase old lists: punch daemon call conversation.delete"),
        ("wal", "wal_bytes", _LARGE_WAL_BYTES, "it shrinks when the daemon restarts: punch daemon stop"),
    )
    for check, member, limit, advice in large:
        size = int(status[member])
        over = size > limit
        yield Finding(check, "warn" if over else "ok", f"{size / _MIB:.1f} MiB", advice if over else "")
    for error in with_counts(status.get("last_errors", ())):
        yield Finding("last error", "warn", error, f"see the log in {status['data_dir']}")


def _mirrors(data_dir: str) -> Iterator[Finding]:
    """What is wrong with mirror files, as the process that keeps them up last said."""
    from punchlist.taskfiles.config import Config, ConfigError
    from punchlist.taskfiles.report import status
    from punchlist_apps.common.autostart import is_running

    try:
        config = Config(data_dir).read()
        if not config.mirrors and not config.inbound:
            return
    except ConfigError as error:
        yield Finding("mirror", "fail", str(error), "put it right, or remove it: punch mirror add writes it")
        return
    found = status(data_dir)
    if found is None or not is_running(data_dir):
        yield Finding("mirror", "warn", "nobody keeps the files up", "punch mirror run")
    elif found.watching != "events":
        advice = "raise fs.inotify.max_user_instances and max_user_watches"
        yield Finding("mirror", "warn", "the system gives no watches: files are polled", advice)
    else:
        yield Finding("mirror", "ok", f"kept up by pid {found.pid}")
    for one in found.problems if found else ():
        yield Finding(f"mirror {one.kind}", "warn", f"{one.file}: {one.text}", _MIRROR_ADVICE.get(one.kind, ""))


_MIRROR_ADVICE = {
    "corrupt": "put the file right or remove it: it is written anew",
    "foreign": "remove the file: it is written anew",
    "conflict": "take over by hand what is missing, then remove the copy ending in .conflict",
}


def status_file(socket: str) -> Finding:
    path = status_path(socket)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return Finding("status file", "ok", f"{path}: {file.read(200).strip()}")
    except FileNotFoundError:
        return Finding("status file", "warn", f"{path} is not there", "shell prompts read it; see the daemon's log")
    except OSError as error:
        return Finding("status file", "fail", f"{path}: {error.strerror}", f"remove it: {path}")
