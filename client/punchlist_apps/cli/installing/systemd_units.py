"""The shipped systemd user units, with the paths of this user filled in."""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from punchlist.connection.starter import IDLE_EXIT_S
from punchlist_apps.cli.installing.shipped import read_shipped
from punchlist_schemas.rendezvous import home

SOCKET = "punchlistd.socket"
SERVICE = "punchlistd.service"
HARDENING = "punchlistd.service.d/hardening.conf"
WEB_SOCKET = "punchlist-web.socket"
WEB_SERVICE = "punchlist-web.service"
MCP_SOCKET = "punchlist-mcp.socket"
MCP_SERVICE = "punchlist-mcp.service"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[\w@%+=:,./~-]+", re.ASCII)


class UnitError(Exception):
    """A unit can't be built."""


class Places(NamedTuple):
    """The absolute paths that differ between users, and the Python interpreter in which punchlistd is installed."""

    socket: str
    data_dir: str
    runtime_dir: str = ""
    """XDG_RUNTIME_DIR, which units call %t."""
    python: str = sys.executable
    programs: tuple[str, ...] = ()
    """Directories from which the program is loaded; made visible in units that hide the home directory."""
    worker: str = ""
    """The socket of the MCP worker; empty to leave its units out."""


def unit_directory() -> Path:
    """Return the directory of this user's units."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(config if config.startswith("/") else f"{home(os.environ)}/.config") / "systemd" / "user"


def read_shipped_unit(name: str) -> str:
    return read_shipped(f"systemd/{name}")


def render_units(places: Places, *, hardened: bool = False, web: bool = False) -> dict[str, str]:
    """Return the text of each unit, by file name in the directory of user units.

    Raises:
        UnitError: A path contains characters that aren't allowed in a unit.
    """
    command = [_quote_program(places.python), "-P", "-m", "punchlistd", "--data-dir", _quote_argument(places.data_dir)]
    units = {
        SOCKET: _replace_setting(
            read_shipped_unit(SOCKET), "ListenStream", _build_listen_address(places.socket, places.runtime_dir)
        ),
        SERVICE: _replace_setting(read_shipped_unit(SERVICE), "ExecStart", " ".join(command)),
    }
    if hardened:
        directory = os.path.dirname(_build_listen_address(places.socket, places.runtime_dir))
        if not _PLAIN.fullmatch(directory) or ":" in directory:
            raise UnitError(
                f"{directory} contains characters that the hardened unit can't contain; choose another socket"
            )
        needed = f"{directory} %t/systemd/notify {_quote_mount(places.data_dir)}"
        text = _replace_setting(read_shipped_unit(HARDENING), "BindPaths", needed)
        programs = " ".join(map(_quote_mount, dict.fromkeys(places.programs)))
        units[HARDENING] = _replace_setting(text, "BindReadOnlyPaths", programs)
    if web:
        command = [_quote_program(places.python), "-P", "-m", "punchlist", "web", "--idle-exit", "10m"]
        command += ["--socket", _quote_argument(places.socket), "--data-dir", _quote_argument(places.data_dir)]
        units[WEB_SOCKET] = read_shipped_unit(WEB_SOCKET)
        units[WEB_SERVICE] = _replace_setting(read_shipped_unit(WEB_SERVICE), "ExecStart", " ".join(command))
    if places.worker:
        command = [_quote_program(places.python), "-P", "-m", "punchlist_apps.worker", "--idle-exit", str(IDLE_EXIT_S)]
        command += ["--socket", _quote_argument(places.worker), "--data-dir", _quote_argument(places.data_dir)]
        address = _build_listen_address(places.worker, places.runtime_dir)
        units[MCP_SOCKET] = _replace_setting(read_shipped_unit(MCP_SOCKET), "ListenStream", address)
        units[MCP_SERVICE] = _replace_setting(read_shipped_unit(MCP_SERVICE), "ExecStart", " ".join(command))
    return units


def quote(word: str) -> str:
    """Quote one word of a systemd setting (see systemd.syntax(7))."""
    if _CONTROL.search(word):
        raise UnitError(f"{word!r} contains control characters, which units must not contain")
    text = word.replace("\\", "\\\\").replace("%", "%%").replace('"', '\\"')
    return text if _PLAIN.fullmatch(text) else f'"{text}"'


def _quote_program(path: str) -> str:
    """Quote the first word of a command line, where `$` has no special meaning and some characters are not allowed."""
    if any(character in path for character in "\"'\\"):
        raise UnitError(f"{path} contains quotes or backslashes, which systemd does not accept in a program's path")
    return quote(path)


def _quote_argument(word: str) -> str:
    """Quote any other word of a command line, where `$` has a special meaning."""
    return quote(word).replace("$", "$$")


def _quote_mount(path: str) -> str:
    """Quote a path for a setting in which colons have a special meaning."""
    if ":" in path:
        raise UnitError(f"{path} contains a colon, which the hardened unit can't contain")
    return quote(path)


def _build_listen_address(socket: str, runtime_dir: str) -> str:
    """Return the socket's path for the unit, relative to %t if possible, because the runtime directory may change."""
    if _CONTROL.search(socket):
        raise UnitError(f"{socket!r} contains control characters, which units must not contain")
    inside = runtime_dir and socket.startswith(runtime_dir.rstrip("/") + "/")
    below = socket[len(runtime_dir.rstrip("/")) :] if inside else socket
    return ("%t" if inside else "") + below.replace("%", "%%")


def _replace_setting(text: str, setting: str, value: str) -> str:
    changed, count = re.subn(rf"^{setting}=.*$", lambda _: f"{setting}={value}", text, flags=re.MULTILINE)
    if count != 1:
        raise UnitError(f"the shipped unit has {count} lines {setting}=, not one")
    return changed


def find_program_paths() -> tuple[str, ...]:
    """Return the directories from which this interpreter loads the program."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    daemon = Path(package).with_name("daemon")
    sources = (str(Path(package).parent),) if daemon.is_dir() else (package,)
    return (sys.prefix, sys.base_prefix, *sources)
