"""`punch daemon service`: the daemon under systemd's user manager, started by the first connection, or launchd."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from punchlist.connection.launch import Target
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing import launchd
from punchlist_apps.cli.installing.supervisor import Manager, stop
from punchlist_apps.cli.installing.systemd_units import (
    HARDENING,
    SERVICE,
    SOCKET,
    WEB_SERVICE,
    WEB_SOCKET,
    Places,
    UnitError,
    find_program_paths,
    render_units,
)
from punchlist_apps.cli.parsing.arguments import Usage, choice, flag
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_schemas.rendezvous import home, make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

COMMANDS = {
    "service": Usage(
        (
            choice("action", text="what to do", choices=("install", "status", "uninstall")),
            flag("--now", text="also start it now (with uninstall: stop it)"),
            flag("--web", text="with install: also start punch web at the first request"),
            flag("--hardened", text="with install: let the daemon see nothing but its own data"),
            flag("--print", text="with install: print the units, and change nothing"),
        ),
        (
            "punch daemon service install --now",
            "punch daemon service install --web --now",
            "punch daemon service status",
        ),
    ),
}

_WANTS = "sockets.target.wants/"
_LINGER = "to have it without being logged in: loginctl enable-linger"


def run_service(context: Context) -> int:
    if os_calls.SERVICE_MANAGER == "launchd":
        return _under_launchd(context)
    try:
        return {"install": _install, "status": _status, "uninstall": _uninstall}[context.args.action](context)
    except UnitError as error:
        show_error("configuration", str(error))
        return CONFIGURATION


def _under_launchd(context: Context) -> int:
    action, target, path = context.args.action, context.target, launchd.agent_path()
    if context.args.web or context.args.hardened:
        raise UsageError("--web and --hardened are for systemd; on macOS start punch web by hand")
    if action == "status":
        found = launchd.query_status()
        state = "installed" if os.path.exists(path) else "not installed"
        context.answer({"file": path, "state": state, "launchd": found.text}, [f"{path}: {state}", found.text])
        return 0 if found.succeeded else REFUSED
    if action == "uninstall":
        launchd.unload()  # fails where it is not loaded, which is what is wanted
        is_there = os.path.lexists(path)
        if is_there:
            os.unlink(path)
        context.note(f"the lists stay where they are: {target.data_dir}")
        return context.answer({"removed": is_there}, [f"removed {path}" if is_there else "nothing is installed"])
    text = launchd.build_agent(target.socket, target.data_dir)
    if context.args.print:
        context.print_lines([f"# {path}\n{text.decode()}"])
        return 0
    make_directories(target.data_dir)
    context.print_lines([f"{_write(Path(path), text.decode())} {path}"])
    if not context.args.now:
        context.note("takes effect at the next login; to begin at once: punch daemon service install --now")
        return 0
    launchd.unload()
    _end_own(context)
    loaded = launchd.load()
    if not loaded.succeeded:
        show_error("manager", f"launchctl bootstrap: {loaded.text}", "see: punch daemon service status")
        return REFUSED
    context.print_lines(["did launchctl bootstrap"])
    return 0


def _directory() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(config if config.startswith("/") else f"{home(os.environ)}/.config") / "systemd" / "user"


def _units(target: Target, *, hardened: bool, web: bool) -> dict[str, str]:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    places = Places(target.socket, target.data_dir, runtime_dir=runtime, programs=find_program_paths())
    return render_units(places, hardened=hardened, web=web)


def _is_installed(name: str) -> bool:
    return (_directory() / name).exists()


def _install(context: Context) -> int:
    web = bool(context.args.web)
    units = _units(context.target, hardened=context.args.hardened, web=web)
    if context.args.print:
        context.print_lines(f"# {_directory() / name}\n{text}" for name, text in units.items())
        return 0
    make_directories(context.target.data_dir)
    for name, text in units.items():
        context.print_lines([f"{_write(_directory() / name, text)} {_directory() / name}"])
    sockets = [SOCKET, WEB_SOCKET] if web else [SOCKET]
    for name in sockets:
        context.print_lines([f"{_enable(name)} {_directory() / _WANTS / name}"])
    manager = Manager()
    if manager.error:
        return _without_manager(context, manager.error)
    steps = [("daemon-reload",)]
    if context.args.now:
        if manager.show(SOCKET).get("ActiveState") != "active":
            _end_own(context)
        steps += [("start", *sockets), ("try-restart", SERVICE, *([WEB_SERVICE] if web else []))]
    for step in steps:
        if trouble := manager.run(*step):
            show_error(
                "manager", f"systemctl --user {' '.join(step)}: {trouble}", f"see: journalctl --user -u {SERVICE}"
            )
            return REFUSED
        context.print_lines([f"did systemctl --user {' '.join(step)}"])
    if not context.args.now:
        context.note(f"takes effect at the next login; to begin at once: punch daemon service install --now; {_LINGER}")
    return 0


def _without_manager(context: Context, trouble: str) -> int:
    said = f"no user manager answers ({trouble})"
    if context.args.now:
        show_error("manager", f"{said}: nothing could be started", f"log in through a session of systemd, or {_LINGER}")
        return REFUSED
    context.note(f"{said}; the units take effect once there is one: at the next login, or {_LINGER}")
    return 0


def _write(path: Path, text: str) -> str:
    before = path.read_text("utf-8") if path.is_file() else None
    if before == text:
        return "unchanged"
    make_directories(str(path.parent))
    atomic_write(str(path), text.encode())
    return "wrote" if before is None else "rewrote"


def _enable(name: str) -> str:
    """What `systemctl --user enable` does, which needs a manager for it."""
    link = _directory() / _WANTS / name
    if link.is_symlink() or link.exists():
        return "unchanged"
    make_directories(str(link.parent))
    link.symlink_to(f"../{name}")
    return "linked"


def _end_own(context: Context) -> None:
    """End a daemon that runs by itself, so that the manager can have its socket."""
    with suppress(PunchlistError):
        if stop(context.target, context.options) is not None:
            context.print_lines(["ended the daemon that ran by itself"])


def _uninstall(context: Context) -> int:
    manager = Manager()
    running = [SOCKET, SERVICE, *([WEB_SOCKET, WEB_SERVICE] if _is_installed(WEB_SOCKET) else [])]
    if context.args.now and (trouble := manager.run("stop", *running)) and not manager.error:
        context.note(f"systemctl --user stop: {trouble}")
    names = (_WANTS + SOCKET, _WANTS + WEB_SOCKET, HARDENING, SERVICE, SOCKET, WEB_SERVICE, WEB_SOCKET)
    found = [path for name in names if os.path.lexists(path := _directory() / name)]
    for path in found:
        path.unlink()
        context.print_lines([f"removed {path}"])
    folder = _directory() / os.path.dirname(HARDENING)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not found:
        context.print_lines(["nothing is installed"])
    elif manager.error:
        context.note(f"no user manager answers ({manager.error}), so there was nothing to tell")
    elif trouble := manager.run("daemon-reload"):
        show_error("manager", f"systemctl --user daemon-reload: {trouble}")
        return REFUSED
    if not context.args.now and os.path.exists(context.target.socket):
        context.note("the daemon that runs goes on; to end it: punch daemon stop")
    context.note(f"the lists stay where they are: {context.target.data_dir}")
    return 0


def _status(context: Context) -> int:
    units = _units(context.target, hardened=_is_installed(HARDENING), web=_is_installed(WEB_SOCKET))
    files = {name: _state(_directory() / name, text) for name, text in units.items()}
    manager = Manager()
    found: dict[str, Any] = {"files": files, "manager": manager.error or "answers"}
    lines = [f"{_directory() / name}: {state}" for name, state in files.items()]
    if manager.error:
        lines.append(f"no user manager answers ({manager.error})")
    else:
        found["units"] = {unit: manager.show(unit) for unit in units if unit != HARDENING}
        lines += [_unit_line(unit, shown) for unit, shown in found["units"].items()]
    context.answer(found, lines)
    active = found.get("units", {}).get(SOCKET, {}).get("ActiveState") == "active"
    return 0 if active else REFUSED


def _state(path: Path, text: str) -> str:
    if not path.is_file():
        return "not installed"
    return "installed" if path.read_text("utf-8") == text else "installed, differs from what install would write"


def _unit_line(unit: str, shown: dict[str, str]) -> str:
    told = [f"{shown.get('ActiveState')} ({shown.get('SubState')})"]
    if shown.get("MainPID", "0") != "0":
        told.append(f"process {shown['MainPID']}")
    if shown.get("NRestarts", "0") != "0":
        told.append(f"{shown['NRestarts']} restarts")
    if shown.get("Result", "success") != "success":
        told.append(shown["Result"])
    if shown.get("StatusText"):
        told.append(shown["StatusText"])
    return f"{unit}: {', '.join(told)}"
