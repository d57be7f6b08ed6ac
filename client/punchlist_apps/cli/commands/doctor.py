"""`punch doctor`: check everything a daemon needs, with advice. It doesn't start a daemon or change anything."""

import os
import shutil
import stat
import sys
import sysconfig
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from punchlist import __version__
from punchlist.base.text import one_line, safe
from punchlist.connection.launch import Target, find_lock_holder
from punchlist.errors import DaemonUnavailable, Damaged, PunchlistError, RequestRefused, TimedOut
from punchlist_apps.cli.calling import warm_process
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.installing.supervisor import Manager
from punchlist_apps.cli.installing.systemd_units import MCP_SERVICE, MCP_SOCKET, unit_directory
from punchlist_apps.cli.parsing.arguments import Usage
from punchlist_apps.cli.printing.summaries import count_errors, format_server
from punchlist_schemas.directory import DirectoryList
from punchlist_schemas.rendezvous import status_path
from punchlist_schemas.system import os_calls

if TYPE_CHECKING:
    from punchlist_apps.hosts.catalog import Host
    from punchlist_apps.hosts.health import ConfiguredCommand
    from punchlist_apps.hosts.plugins import Plugin

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
_DAY_S = 86_400
REPLY_S = 10.0
"""Upper limit for a reply from the daemon, in seconds."""


class Finding(NamedTuple):
    """Result of one check.

    Attributes:
        check: Name of the check.
        state: `ok`, `warn` or `fail`.
        found: Description of the result.
        advice: What to do; empty if nothing needs to be done.
    """

    check: str
    state: str
    found: str
    advice: str = ""


def run_doctor(context: Context) -> int:
    findings: list[Finding] = []
    for finding in examine(context.target):
        findings.append(finding)
        if not context.args.json:
            state = context.style.paint(finding.state, f"{finding.state:>4}")
            advice = [f"      {context.style.glyphs['to']} {safe(finding.advice)}"] if finding.advice else []
            context.print_lines([f"{state}  {finding.check}: {safe(finding.found)}", *advice])
    if context.args.json:
        context.print_json([finding._asdict() for finding in findings])
    return int(any(finding.state == "fail" for finding in findings))


def examine(target: Target) -> Iterator[Finding]:
    yield _check_python()
    yield _check_directory("socket directory", os.path.dirname(target.socket), "XDG_RUNTIME_DIR or --socket")
    yield _check_directory("data directory", target.data_dir, "PUNCHLIST_DATA_DIR or --data-dir")
    yield _check_disk(target.data_dir)
    running = target.with_autostart(False)
    with Caller(running, name="punch doctor", timeout_s=REPLY_S) as client:
        replies = True
        try:
            client.open()
            yield from _check_daemon(target, client)
        except PunchlistError as error:
            replies = False
            yield _explain_no_reply(target, running.pid(), error)
        yield from _check_mirrors(target.data_dir)
        yield _check_warm_process()
        yield _check_project(target, client if replies else None)
    yield from _check_hosts()
    yield _check_worker(target)
    yield from _check_extras(target.data_dir)


def _check_warm_process() -> Finding:
    """Report why commands run without a warm process."""
    try:
        with open(f"{warm_process.find_directory()}/warm.log", encoding="utf-8", errors="replace") as log:
            error = log.read().strip().rpartition("\n")[2]
    except OSError:
        error = ""
    if error:
        return Finding(
            "warm process", "warn", error, "commands take longer without it, and try to start it again after a minute"
        )
    return Finding("warm process", "ok", "commands start it if punch is compiled")


def _check_project(target: Target, client: Caller | None) -> Finding:
    """Check which list agents in this directory use, or report why they can't use a list."""
    from punchlist.base import project
    from punchlist_schemas import directory
    from punchlist_schemas.project_file import DirectoryError

    try:
        meant = directory.find_list()
    except DirectoryError as error:
        return Finding("project", "fail", str(error), error.advice)
    if meant is None:
        return Finding("project", "ok", "no project file and no repository here", "give agents a list here: punch init")
    if not meant.may_use(target.data_dir, _find_used(client, meant)):
        error = project.not_allowed(meant)
        return Finding("project", "fail", str(error), error.advice)
    source = meant.file or f"the repository {meant.root}"
    return Finding("project", "ok", f"{meant.conversation}, by {source}")


def _find_used(client: Caller | None, meant: "DirectoryList") -> str | None:
    """Return the id of the list with this name, or None if the name is unused or no daemon is running."""
    try:
        summary = client and client.call("conversation.get", {"conversation": meant.conversation})["conversation"]
        return summary["conversation"] if summary and summary["version"] else None
    except PunchlistError:
        return None


def _check_hosts() -> Iterator[Finding]:
    """Check punchlist's entries in the hosts' configurations."""
    from punchlist_apps.common import extras
    from punchlist_apps.hosts import health
    from punchlist_apps.hosts.catalog import HOSTS, Place
    from punchlist_apps.hosts.plugins import find_plugin

    entries = list(health.find_commands(os.environ, os.getcwd()))
    place = Place("project", os.getcwd(), os.environ, "punch")
    found = [(host, plugin) for host in HOSTS if (plugin := find_plugin(host, place))]
    if extras.is_installed():
        yield Finding("extra mcp", "ok", "installed")
    else:
        yield Finding("extra mcp", "warn" if entries or found else "ok", extras.MISSING, extras.build_install_command())
    for entry in entries:
        trouble, advice = health.check_command(entry, os.environ)
        if trouble:
            yield Finding(entry.title, "fail", trouble, advice or f"punch setup {entry.host} --scope {entry.scope}")
        else:
            yield Finding(entry.title, "ok", entry.text)
    for host, plugin in found:
        yield from _check_plugin(host, plugin, entries)


def _check_plugin(host: "Host", plugin: "Plugin", entries: "list[ConfiguredCommand]") -> Iterator[Finding]:
    """Check a host's plugin: `punch` must be in PATH, and no entries of a setup may repeat the plugin's."""
    from punchlist_apps.hosts import check

    twice = {entry.scope: entry.path for entry in entries if entry.host == host.name and not entry.problem}
    for scope, path in twice.items():
        problem = f"configured twice, by the plugin {plugin.name} and in {path}"
        # Without the entries for this user, all other projects would lack the server.
        is_needed = plugin.is_local and scope == "user"
        advice = plugin.turn_off if is_needed else f"punch setup {host.name} --scope {scope} --remove"
        yield Finding(host.title, "warn", problem, advice)
    try:
        yield Finding(host.title, "ok", f"plugin {plugin.name}, runs {check.find_program('punch', os.environ)}")
    except check.ServerError as error:
        problem = f"the plugin {plugin.name} can't run punch: {error}"
        yield Finding(host.title, "fail", problem, error.advice or "put its directory into PATH")


def _check_worker(target: Target) -> Finding:
    """Check the worker of the hosts' sessions, or report why they run without one."""
    from punchlist_apps import relay
    from punchlist_apps.relay import control
    from punchlist_apps.relay.dialing import find_path
    from punchlist_apps.relay.relay import Unavailable

    if relay.is_own():
        return Finding("sessions", "ok", "each in its own process, because PUNCHLIST_MCP=own")
    try:
        status = control.read_status(find_path(target.socket, target.data_dir))
    except Unavailable as error:
        return Finding("sessions", "warn", f"each in its own process, because the worker can't be reached: {error}")
    if status is not None and status.state != "running":
        advice = f"kill -9 {status.pid}; the sessions continue with the next worker, and lose nothing"
        return Finding("sessions", "warn", f"the worker, process {status.pid}, is {status.state}", advice)
    if status is not None:
        return Finding("sessions", "ok", f"served by the worker, process {status.pid}")
    if unit := _find_failed_unit():
        advice = f"systemctl --user reset-failed {MCP_SERVICE} {unit}; systemctl --user start {unit}"
        return Finding("sessions", "warn", f"{unit} is not active, so sessions start a worker themselves", advice)
    if not (reason := _read_new_line(f"{target.data_dir}/mcp.log")):
        return Finding("sessions", "ok", "none; the first one starts a worker")
    return Finding("sessions", "warn", f"no worker is running; the last one reported: {reason}")


def _find_failed_unit() -> str:
    """Return the socket unit of the MCP worker if it is installed but doesn't listen; otherwise ""."""
    if not (unit_directory() / MCP_SOCKET).exists():
        return ""
    manager = Manager()
    return "" if manager.error or manager.show(MCP_SOCKET).get("ActiveState") == "active" else MCP_SOCKET


def _read_new_line(path: str) -> str:
    """Return the last line of a log, why it can't be used, or "" if nothing was written for a day."""
    try:
        with open(path, "r+", encoding="utf-8", errors="replace") as log:
            is_new = os.fstat(log.fileno()).st_mtime > time.time() - _DAY_S
            return one_line(["", *log.read().splitlines()][-1]) if is_new else ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path}: {error.strerror}"


def _check_extras(data_dir: str) -> Iterator[Finding]:
    """Report missing extras that configured spaces need, then all missing extras in one line."""
    from punchlist_apps.common import extras

    missing = [name for name in extras.MODULES if not extras.is_installed(name)]
    for name in _find_needed_extras(data_dir):
        if name in missing:
            problem = f"a space needs the extra {name}, which is not installed"
            yield Finding(
                f"extra {name}", "warn", problem, f"{extras.build_install_command(name)}; then: punch daemon stop"
            )
    if missing:
        # The daemon can't know how it was installed, so its errors about spaces refer to this finding.
        example = "shared" if "shared" in missing else missing[0]
        advice = f"to install one, such as {example}: {extras.build_install_command(example)}"
        yield Finding("extras", "ok", f"not installed: {', '.join(missing)}", advice)


def _find_needed_extras(data_dir: str) -> Iterator[str]:
    """Yield the extras that configured spaces need.

    Read the file of spaces directly, because a daemon exits if an extra is missing.
    """
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


def _check_python() -> Finding:
    text = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < _NEEDED_PYTHON:
        return Finding("python", "fail", text, "install punchlist with Python 3.11 or newer")
    if _is_optimized():
        return Finding("python", "ok", text)
    faster = next(filter(None, (shutil.which(name, path=_SYSTEM_FOLDER) for name in _SYSTEM_PYTHONS)), None)
    advice = f"for a faster daemon, install punchlist with {faster or f'a Python built with {_OPTIMIZED}'}"
    return Finding("python", "ok", f"{text}, built without {_OPTIMIZED}", advice)


def _is_optimized() -> bool:
    """Return whether this Python was built with profile-guided optimization, which matters more than its version.

    Debian builds Python with a profile but without `--enable-optimizations`, so the system's own Python counts as
    optimized. So does a build that doesn't record its options.
    """
    options: str | None = sysconfig.get_config_var("CONFIG_ARGS")
    return options is None or _OPTIMIZED in options or sys.base_prefix == "/usr"


def _find_existing_parent(path: str) -> str:
    while not os.path.exists(path) and path not in ("/", ""):
        path = os.path.dirname(path)
    return path or "."


def _check_directory(check: str, path: str, setting: str) -> Finding:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return _check_parent(check, path, setting)
    except OSError as error:
        return Finding(check, "fail", f"{path}: {error.strerror}", f"check its permissions: ls -ld {path}")
    if info.st_uid != os.getuid():
        return Finding(check, "fail", f"{path} belongs to uid {info.st_uid}", f"use another with {setting}")
    if not stat.S_ISDIR(info.st_mode):
        return Finding(check, "fail", f"{path} is not a directory", "move the file away")
    if info.st_mode & _OTHERS:
        mode = stat.S_IMODE(info.st_mode)
        return Finding(check, "warn", f"{path} is open to others (mode {mode:04o})", f"chmod 700 {path}")
    return Finding(check, "ok", path)


def _check_parent(check: str, path: str, setting: str) -> Finding:
    parent = _find_existing_parent(path)
    if os.access(parent, os.W_OK | os.X_OK):
        return Finding(check, "ok", f"{path} does not exist yet; the daemon creates it")
    problem = f"{path} does not exist and can't be created in {parent}"
    return Finding(check, "fail", problem, f"use another with {setting}")


def _check_disk(path: str) -> Finding:
    path = _find_existing_parent(path)
    try:
        info = os.statvfs(path)
    except OSError as error:
        return Finding("disk", "warn", f"{path}: {error.strerror}")
    free = info.f_bavail * info.f_frsize
    text = f"{free // _MIB} MiB free for {path}"
    if free < _MIN_FREE_BYTES:
        return Finding("disk", "warn", text, "free some space: on a full disk all changes fail")
    return Finding("disk", "ok", text)


def _explain_no_reply(target: Target, pid: int, error: PunchlistError) -> Finding:
    """Explain why no daemon is running, or why it doesn't reply."""
    if isinstance(error, TimedOut) and pid and not os_calls.is_suspended(pid):
        problem = f"no reply from pid {pid} for {REPLY_S:.0f} s"
        advice = f"{_advise_log(target)}; if it doesn't recover, kill -9 {pid}, which loses no change"
        return Finding("daemon", "fail", problem, advice)
    if isinstance(error, DaemonUnavailable) and error.temporary:
        if holder := find_lock_holder(target.data_dir):
            return _explain_lock_holder(target, holder)
        advice = "the next command starts one" if target.autostart else f"punchlistd --socket {target.socket}"
        return Finding("daemon", "warn", "not running", advice)
    first, _, rest = str(error).partition("\n")
    return Finding("daemon", "fail", first, one_line(rest) or _advise_log(target))


def _advise_log(target: Target) -> str:
    path = os.path.join(target.data_dir, "daemon.log")
    return (
        f"see the end of {path}" if os.path.exists(path) else "see the log of the service: punch daemon service status"
    )


def _check_daemon(target: Target, client: Caller) -> Iterator[Finding]:
    hello: dict[str, Any] = client.call("daemon.hello")
    yield Finding("daemon", "ok", f"punchlistd {hello['version']}, pid {hello['pid']}, on {target.socket}")
    status: dict[str, Any] = client.call("daemon.status")
    yield _check_versions(hello)
    if os.path.realpath(status["data_dir"]) != os.path.realpath(target.data_dir):
        advice = "set PUNCHLIST_DATA_DIR for both, or restart the daemon"
        yield Finding("data in use", "warn", f"the daemon stores its data in {status['data_dir']}", advice)
    yield from _check_sizes(status)
    yield from _check_lists(client)
    yield from _check_spaces(client)
    yield check_status_file(target.socket)


def _check_lists(client: Caller) -> Iterator[Finding]:
    """Check the most recent lists for damage. `punch daemon verify` also reads the events that precede snapshots."""
    names = [card["conversation"] for card in client.call("conversation.list", {"limit": _LISTS})["conversations"]]
    is_sound = True
    for name in names:
        try:
            cut = client.call("conversation.get", {"conversation": name})["conversation"].get("damaged")
            problem = cut and f"{name} is damaged at position {cut['seq']} ({cut['reason']})"
        except Damaged as error:
            problem = error.message
        if problem:
            is_sound = False
            advice = "repair the log: punch daemon stop; punch daemon verify --repair"
            yield Finding("list", "fail", problem, advice)
    if is_sound:
        found = f"no damage in the latest {len(names)}; to check every event: punch daemon verify"
        yield Finding("lists", "ok", found)


def _check_spaces(client: Caller) -> Iterator[Finding]:
    """Check the connection to each space, and find its lists that can't be changed."""
    try:
        spaces: list[dict[str, Any]] = client.call("space.list").get("spaces", [])
    except RequestRefused:  # the daemon's version doesn't support spaces
        return
    for space in spaces:
        check = f"space {space['space']}"
        if space["state"] == "up":
            yield Finding(check, "ok", f"{space['server']}, {format_server(space)}")
        else:
            state = "fail" if space["state"] == "refused" else "warn"
            yield Finding(check, state, space.get("reason") or "not connected yet", "see details: punch space status")
        if space.get("unchecked"):
            problem = "unknown whether its servers flush a change to disk before they acknowledge it"
            yield Finding(check, "warn", problem, "name their monitors: punch space add … --monitor URL")
        for replica in space.get("lists", ()):
            if replica["state"] in ("diverged", "upgrade_needed", "damaged", "forbidden"):
                problem = replica.get("reason") or replica["state"]
                yield Finding(f"list {replica['conversation']}", "fail", problem)


def _explain_lock_holder(target: Target, pid: int) -> Finding:
    """Report a daemon that holds the data directory but listens on another socket.

    Commands can neither reach that daemon nor start another.
    """
    problem = f"none on {target.socket}; pid {pid} uses {target.data_dir} and listens on another socket"
    advice = "set PUNCHLIST_SOCKET or XDG_RUNTIME_DIR as in its environment"
    words = os_calls.read_command_line(pid)
    if "--socket" in words[:-1]:
        advice = f"use its socket: PUNCHLIST_SOCKET={words[words.index('--socket') + 1]}"
    return Finding("daemon", "fail", problem, f"{advice}; or stop it: kill {pid}")


def _check_versions(hello: dict[str, Any]) -> Finding:
    if hello["version"] != __version__:
        versions = f"daemon {hello['version']}, command {__version__}"
        return Finding("versions", "warn", versions, "punch daemon stop; the next command starts the new version")
    return Finding("versions", "ok", f"{__version__}, build {hello.get('build') or 'unknown'}")


def _check_sizes(status: dict[str, Any]) -> Iterator[Finding]:
    large = (
        ("log", "log_bytes", _LARGE_LOG_BYTES, "erase old lists: punch list rm LIST"),
        ("wal", "wal_bytes", _LARGE_WAL_BYTES, "restart the daemon to shrink it: punch daemon stop"),
    )
    for check, member, limit, advice in large:
        size = int(status[member])
        is_large = size > limit
        yield Finding(check, "warn" if is_large else "ok", f"{size / _MIB:.1f} MiB", advice if is_large else "")
    for error in count_errors(status.get("last_errors", ())):
        yield Finding("last error", "warn", error, f"see the log in {status['data_dir']}")


def _check_mirrors(data_dir: str) -> Iterator[Finding]:
    """Check mirror files, using the mirror process's last report."""
    from punchlist.taskfiles.config import Config, ConfigError
    from punchlist.taskfiles.report import status
    from punchlist_apps.common.autostart import is_running

    try:
        config = Config(data_dir).read()
        if not config.mirrors and not config.inbound:
            return
    except ConfigError as error:
        yield Finding("mirror", "fail", str(error), "correct it or remove it; to write it again: punch mirror add")
        return
    report = status(data_dir)
    if report is None or not is_running(data_dir):
        yield Finding("mirror", "warn", "no process updates the files", "punch mirror run")
    elif report.watching != "events":
        advice = "raise fs.inotify.max_user_instances and max_user_watches"
        yield Finding("mirror", "warn", "no file watches left: files are polled", advice)
    else:
        yield Finding("mirror", "ok", f"updated by pid {report.pid}")
    for problem in report.problems if report else ():
        advice = _MIRROR_ADVICE.get(problem.kind, "")
        yield Finding(f"mirror {problem.kind}", "warn", f"{problem.file}: {problem.text}", advice)


_MIRROR_ADVICE = {
    "corrupt": "correct the file, or remove it to have it written again",
    "foreign": "remove the file to have it written again",
    "conflict": "merge missing changes by hand, then remove the copy ending in .conflict",
}


def check_status_file(socket: str) -> Finding:
    path = status_path(socket)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return Finding("status file", "ok", f"{path}: {file.read(200).strip()}")
    except FileNotFoundError:
        return Finding("status file", "warn", f"no file {path}, which shell prompts read", "see the daemon's log")
    except OSError as error:
        return Finding("status file", "fail", f"{path}: {error.strerror}", f"remove it: {path}")
