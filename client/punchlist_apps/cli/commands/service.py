"""`punch daemon service`: the daemon as a launchd service, or as a systemd user service with socket activation.

With systemd and the extra mcp, also the MCP worker.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from punchlist.connection.launch import Target
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing import launchd
from punchlist_apps.cli.installing.supervisor import STOP_TIMEOUT_S, Manager, stop
from punchlist_apps.cli.installing.systemd_units import (
    HARDENING,
    MCP_SERVICE,
    MCP_SOCKET,
    SERVICE,
    SOCKET,
    WEB_SERVICE,
    WEB_SOCKET,
    Places,
    UnitError,
    find_program_paths,
    render_units,
    unit_directory,
)
from punchlist_apps.cli.parsing.arguments import Usage, choice, flag
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common import extras
from punchlist_apps.relay import control
from punchlist_apps.relay.dialing import find_path
from punchlist_apps.relay.relay import Unavailable
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

COMMANDS = {
    "service": Usage(
        (
            choice("action", text="what to do", choices=("install", "status", "uninstall")),
            flag("--now", text="start it immediately; with uninstall: stop it"),
            flag("--web", text="with install: also start punch web at the first request"),
            flag("--hardened", text="with install: restrict the daemon to its own data"),
            flag("--print", text="with install: print the units without installing them"),
        ),
        (
            "punch daemon service install --now",
            "punch daemon service install --web --now",
            "punch daemon service status",
        ),
    ),
}

_WANTS = "sockets.target.wants/"
_LINGER = "to run it without being logged in: loginctl enable-linger"


def run_service(context: Context) -> int:
    if os_calls.SERVICE_MANAGER == "launchd":
        return _manage_launchd(context)
    try:
        return {"install": _install, "status": _status, "uninstall": _uninstall}[context.args.action](context)
    except UnitError as error:
        show_error("configuration", str(error))
        return CONFIGURATION


def _manage_launchd(context: Context) -> int:
    action, target, path = context.args.action, context.target, launchd.agent_path()
    if context.args.web or context.args.hardened:
        raise UsageError("--web and --hardened need systemd; on macOS, start punch web yourself")
    if action == "status":
        status = launchd.query_status()
        state = "installed" if os.path.exists(path) else "not installed"
        context.answer({"file": path, "state": state, "launchd": status.text}, [f"{path}: {state}", status.text])
        return 0 if status.succeeded else REFUSED
    if action == "uninstall":
        launchd.unload()  # fails if the service isn't loaded, which is fine
        exists = os.path.lexists(path)
        if exists:
            os.unlink(path)
        context.note(f"the lists stay in {target.data_dir}")
        return context.answer({"removed": exists}, [f"removed {path}" if exists else "nothing is installed"])
    text = launchd.build_agent(target.socket, target.data_dir)
    if context.args.print:
        context.print_lines([f"# {path}\n{text.decode()}"])
        return 0
    make_directories(target.data_dir)
    context.print_lines([f"{_write(Path(path), text.decode())} {path}"])
    if not context.args.now:
        context.note("takes effect at the next login; to start it now: punch daemon service install --now")
        return 0
    launchd.unload()
    _stop_unmanaged(context)
    loaded = launchd.load()
    if not loaded.succeeded:
        show_error("manager", f"launchctl bootstrap: {loaded.text}", "see its status: punch daemon service status")
        return REFUSED
    context.print_lines(["ran launchctl bootstrap"])
    return 0


def _build_units(target: Target, *, hardened: bool, web: bool, mcp: bool) -> dict[str, str]:
    runtime, worker = os.environ.get("XDG_RUNTIME_DIR", ""), find_path(target.socket, target.data_dir) if mcp else ""
    places = Places(target.socket, target.data_dir, runtime, programs=find_program_paths(), worker=worker)
    return render_units(places, hardened=hardened, web=web)


def _is_installed(name: str) -> bool:
    return (unit_directory() / name).exists()


def _install(context: Context) -> int:
    web, mcp = bool(context.args.web), extras.is_installed("mcp")
    units = _build_units(context.target, hardened=context.args.hardened, web=web, mcp=mcp)
    if context.args.print:
        context.print_lines(f"# {unit_directory() / name}\n{text}" for name, text in units.items())
        return 0
    make_directories(context.target.data_dir)
    for name, text in units.items():
        context.print_lines([f"{_write(unit_directory() / name, text)} {unit_directory() / name}"])
    sockets = [name for name in (SOCKET, WEB_SOCKET, MCP_SOCKET) if name in units]
    for name in sockets:
        context.print_lines([f"{_enable(name)} {unit_directory() / _WANTS / name}"])
    manager = Manager()
    if manager.error:
        return _report_missing_manager(context, manager.error)
    steps = [("daemon-reload",)]
    if context.args.now:
        if manager.show(SOCKET).get("ActiveState") != "active":
            _stop_unmanaged(context)
        if mcp and manager.show(MCP_SOCKET).get("ActiveState") != "active":
            _stop_unmanaged_worker(context)
        # The worker recognizes a newer installation by itself, and loses no running call.
        steps += [("start", *sockets), ("try-restart", SERVICE, *([WEB_SERVICE] if web else []))]
    for step in steps:
        if trouble := manager.run(*step):
            show_error(
                "manager",
                f"systemctl --user {' '.join(step)}: {trouble}",
                f"see its log: journalctl --user -u {SERVICE}",
            )
            return REFUSED
        context.print_lines([f"ran systemctl --user {' '.join(step)}"])
    if not context.args.now:
        context.note(f"takes effect at the next login; to start it now: punch daemon service install --now; {_LINGER}")
    return 0


def _report_missing_manager(context: Context, trouble: str) -> int:
    message = f"systemd's user manager is not available ({trouble})"
    if context.args.now:
        show_error("manager", f"{message}: nothing was started", f"log in through a systemd session, or {_LINGER}")
        return REFUSED
    context.note(f"{message}; the units take effect at the next login; {_LINGER}")
    return 0


def _write(path: Path, text: str) -> str:
    current = path.read_text("utf-8") if path.is_file() else None
    if current == text:
        return "unchanged"
    make_directories(str(path.parent))
    atomic_write(str(path), text.encode())
    return "wrote" if current is None else "rewrote"


def _enable(name: str) -> str:
    """Link a unit as `systemctl --user enable` does. The command itself isn't used, because it needs a running
    manager."""
    link = unit_directory() / _WANTS / name
    if link.is_symlink() or link.exists():
        return "unchanged"
    make_directories(str(link.parent))
    link.symlink_to(f"../{name}")
    return "linked"


def _stop_unmanaged(context: Context) -> None:
    """Stop a daemon that was started by a command, so that the manager can bind its socket."""
    with suppress(PunchlistError):
        if stop(context.target, context.options) is not None:
            context.print_lines(["stopped the daemon that was not started by the service"])


def _stop_unmanaged_worker(context: Context) -> None:
    with suppress(Unavailable):
        if control.stop(find_path(context.target.socket, context.target.data_dir), STOP_TIMEOUT_S) is not None:
            context.print_lines(["stopped the MCP worker that was not started by the service"])


def _uninstall(context: Context) -> int:
    manager = Manager()
    running = [SOCKET, SERVICE]
    for pair in ((WEB_SOCKET, WEB_SERVICE), (MCP_SOCKET, MCP_SERVICE)):
        running += pair if _is_installed(pair[0]) else ()
    if context.args.now and (trouble := manager.run("stop", *running)) and not manager.error:
        context.note(f"systemctl --user stop: {trouble}")
    sockets = (SOCKET, WEB_SOCKET, MCP_SOCKET)
    names = (*(_WANTS + name for name in sockets), HARDENING, SERVICE, WEB_SERVICE, MCP_SERVICE, *sockets)
    paths = [path for name in names if os.path.lexists(path := unit_directory() / name)]
    for path in paths:
        path.unlink()
        context.print_lines([f"removed {path}"])
    folder = unit_directory() / os.path.dirname(HARDENING)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not paths:
        context.print_lines(["nothing is installed"])
    elif manager.error:
        context.note(f"systemd's user manager is not available ({manager.error}), so it was not reloaded")
    elif trouble := manager.run("daemon-reload"):
        show_error("manager", f"systemctl --user daemon-reload: {trouble}")
        return REFUSED
    if not context.args.now and os.path.exists(context.target.socket):
        context.note("the daemon is still running; to stop it: punch daemon stop")
    context.note(f"the lists stay in {context.target.data_dir}")
    return 0


def _status(context: Context) -> int:
    hardened, web, mcp = map(_is_installed, (HARDENING, WEB_SOCKET, MCP_SOCKET))
    units = _build_units(context.target, hardened=hardened, web=web, mcp=mcp)
    files = {name: _describe_file(unit_directory() / name, text) for name, text in units.items()}
    manager = Manager()
    value: dict[str, Any] = {"files": files, "manager": manager.error or "answers"}
    lines = [f"{unit_directory() / name}: {state}" for name, state in files.items()]
    if manager.error:
        lines.append(f"systemd's user manager is not available ({manager.error})")
    else:
        value["units"] = {unit: manager.show(unit) for unit in units if unit != HARDENING}
        lines += [_format_unit(unit, properties) for unit, properties in value["units"].items()]
    context.answer(value, lines)
    active = value.get("units", {}).get(SOCKET, {}).get("ActiveState") == "active"
    return 0 if active else REFUSED


def _describe_file(path: Path, text: str) -> str:
    if not path.is_file():
        return "not installed"
    return "installed" if path.read_text("utf-8") == text else "installed, but differs from what install would write"


def _format_unit(unit: str, properties: dict[str, str]) -> str:
    facts = [f"{properties.get('ActiveState')} ({properties.get('SubState')})"]
    if properties.get("MainPID", "0") != "0":
        facts.append(f"process {properties['MainPID']}")
    if properties.get("NRestarts", "0") != "0":
        facts.append(f"{properties['NRestarts']} restarts")
    if properties.get("Result", "success") != "success":
        facts.append(properties["Result"])
    if properties.get("StatusText"):
        facts.append(properties["StatusText"])
    return f"{unit}: {', '.join(facts)}"
