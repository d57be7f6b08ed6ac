"""The architecture as tests: which module imports which, which modules stay pure, and that the map is correct."""

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"punchlist_schemas": "schemas", "punchlist": "client", "punchlist_apps": "client", "punchlistd": "daemon"}
"""Import package → the folder that contains it."""

DATA = tuple(f"punchlist_schemas.{name}" for name in ("changes", "errors", "events", "order", "params", "things"))
"""Modules of the contract that contain plain values. The domain may use no others."""

GROUND = ("punchlistd.clock", "punchlistd.metrics", "punchlistd.settings", "punchlistd.slices")
"""Small modules that every room of the daemon may use."""

LOG = ("punchlistd.store.port", "punchlistd.store.record")
"""The port of the event log."""

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "punchlist_schemas": ("punchlist_schemas",),
    "punchlist": ("punchlist", "punchlist_schemas"),
    "punchlist.__main__": ("punchlist_apps.cli",),  # `python -m punchlist` is the command line
    "punchlist_apps": ("punchlist_apps", "punchlist", "punchlist_schemas"),
    "punchlistd": (),
    "punchlistd.clock": (),
    "punchlistd.metrics": ("punchlist_schemas",),
    "punchlistd.settings": ("punchlist_schemas",),
    "punchlistd.slices": (),
    "punchlistd.process": ("punchlistd.process", "punchlist_schemas"),
    "punchlistd.domain": ("punchlistd.domain", *DATA),
    "punchlistd.domain.responses": ("punchlistd.domain", *DATA, "punchlist_schemas.results"),
    "punchlistd.store": (
        "punchlistd.store",
        "punchlist_schemas.events",
        "punchlist_schemas.system",
        "punchlist_schemas.things",
    ),
    "punchlistd.engine": (
        "punchlistd.engine",
        "punchlistd.__version__",
        "punchlistd.domain",
        "punchlistd.store.search",
        *GROUND,
        *LOG,
        "punchlist_schemas",
    ),
    "punchlistd.net": ("punchlistd.net", "punchlistd.__version__", "punchlistd.engine", *GROUND, "punchlist_schemas"),
    "punchlistd.replication": (
        "punchlistd.replication",
        "punchlistd.domain",
        "punchlistd.engine",
        *GROUND,
        *LOG,
        "punchlist_schemas",
    ),
    "punchlistd.offline": (
        "punchlistd.offline",
        "punchlistd.domain",
        "punchlistd.engine.lists.history",
        "punchlistd.net.listener",
        "punchlistd.process",
        "punchlistd.store",
        *GROUND,
        "punchlist_schemas",
    ),
    "punchlistd.app": ("punchlistd", "punchlist_schemas"),
    "punchlistd.__main__": ("punchlistd", "punchlist_schemas"),
}
"""Room → what it may import. The longest matching prefix of a module's name is its room."""

_CONNECTION = ("errors", "base", "connection")
_CALLS = (*_CONNECTION, "calls")
_CLIENTS = (*_CALLS, "clients")
_LIBRARY = (*_CLIENTS, "taskfiles", "tools")

_PRINTING = ("common", "files", "cli.printing")
_PARSING = (*_PRINTING, "cli.parsing")
_CALLING = (*_PARSING, "cli.calling")
_RUNNING = (*_CALLING, "cli.running")
_INSTALLING = (*_CALLING, "hosts", "hosts.sessions", "cli.installing")
_COMMANDS = (*_RUNNING, *_INSTALLING, "chat", "mcp", "ui", "web")

FLOORS: dict[str, dict[str, tuple[str, ...]]] = {
    "punchlist": {
        "": _LIBRARY,  # loads the names of its rooms on first use
        "__main__": (),
        "errors": (),
        "base": (),
        "connection": _CONNECTION,
        "calls": _CALLS,
        "clients": _CLIENTS,
        "taskfiles": ("base",),
        "tools": _LIBRARY,
    },
    "punchlist_apps": {
        "": (),
        "common": (),
        "files": ("common",),
        "hosts": ("common", "hosts.sessions"),
        "hosts.sessions": ("common",),
        "mcp": ("common", "hosts.sessions"),
        "chat": ("common",),
        "ui": ("common",),
        "web": ("common", "chat"),
        "cli": (*_CALLING, "cli.dispatch"),
        "cli.dispatch": _CALLING,
        "cli.printing": _PRINTING,
        "cli.parsing": _PARSING,
        "cli.calling": _CALLING,
        "cli.running": _RUNNING,
        "cli.installing": _INSTALLING,
        **{
            f"cli.commands.{path.stem}": _COMMANDS
            for path in (ROOT / "client/punchlist_apps/cli/commands").glob("*.py")
        },
    },
    "punchlistd.engine": {
        "": (),
        "replies": (),
        "lists": ("replies",),
        "calls": ("replies", "lists"),
        "watching": ("replies", "lists"),
        "claims": ("replies", "lists", "calls"),
        "timers": ("replies", "lists", "calls"),
        "reading": ("replies", "lists", "calls", "watching", "claims"),
        "writing": ("replies", "lists", "calls", "watching", "claims", "timers"),
    },
}
"""Package → room → the rooms below that it may import. A command can't import another command."""

IMPURE = frozenset(
    "aiosqlite anyio asyncio datetime io logging multiprocessing os pathlib random secrets selectors shutil signal"
    " socket sqlite3 ssl subprocess tempfile threading time uuid watchfiles".split()
)
"""Modules for clocks, randomness, the system and the disk. Pure modules get these as arguments instead."""

PURE: dict[str, frozenset[str]] = {
    "punchlistd.domain": frozenset(),
    "punchlistd.net.connection.protocol": frozenset(),  # bytes in, calls out; fuzzed without a loop
    "punchlistd.net.jsonrpc": frozenset(),
    "punchlist_schemas": frozenset(),
    "punchlist_schemas.rendezvous": frozenset({"os"}),  # asks the system who owns a directory
    "punchlist_schemas.directory": frozenset({"os"}),  # finds the list for a directory, so it reads that directory
    "punchlist_schemas.project_file": frozenset({"os"}),
    "punchlist_schemas.repository": frozenset({"os"}),
    "punchlist_schemas.build": frozenset({"os"}),  # reads the installed files
    "punchlist_schemas.system": IMPURE,  # the system calls themselves
    "punchlist_schemas.export": IMPURE,  # a program that writes files
    "punchlist.connection.core": frozenset({"os"}),  # generates idempotency keys
}
"""Modules without I/O and clocks → the impure modules that each may still import."""


def is_within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def room_of(module: str, rooms: Iterable[str]) -> str | None:
    return max((room for room in rooms if is_within(module, (room,))), key=len, default=None)


def imported_names(source: str) -> Iterator[str]:
    """Yield every imported name; for `from a import b` it is `a.b`, whether or not b is a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def broken_rules(module: str, source: str) -> list[str]:
    """Return the imports of a module that its room doesn't allow."""
    allowed = MAY_IMPORT[room_of(module, MAY_IMPORT) or module]
    pure_room = room_of(module, PURE)
    forbidden = IMPURE - PURE[pure_room] if pure_room else frozenset[str]()
    broken: list[str] = []
    for name in imported_names(source):
        top = name.partition(".")[0]
        if top in ("", *FOLDERS.values()):
            broken.append(f"{module} imports {name}: relative, or a folder instead of a package")
        elif top in FOLDERS and not is_within(name, allowed):
            broken.append(f"{module} imports {name}: it may only import {', '.join(allowed) or 'nothing of ours'}")
        elif top in forbidden:
            broken.append(f"{module} imports {name}: it is pure")
    return broken


def broken_floors(module: str, source: str) -> list[str]:
    """Return the imports of a module that go up, or sideways into a room that it may not use."""
    package = room_of(module, FLOORS)
    if package is None:
        return []
    floors = {f"{package}.{room}".rstrip("."): rooms for room, rooms in FLOORS[package].items()}
    room = room_of(module, floors) or module
    allowed = {room, *(f"{package}.{name}" for name in floors[room])}
    return [
        f"{module} imports {name}: {room} may import {', '.join(sorted(allowed))}"
        for name in imported_names(source)
        if is_within(name, (package,)) and room_of(name, floors) not in allowed
    ]


PROCESS_STATE = re.compile(r"\bos\.(environ|getenv|getcwdb?|getpid|getppid|chdir)\b|\bPath\.cwd\b")
"""State of the process that serves a session. The MCP server uses that of the process that the host started."""


def module_of(name: str) -> str:
    """Return the module that an imported name is, or belongs to."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def modules() -> dict[str, Path]:
    """Return our source modules by import name; a package has its own name."""
    found: dict[str, Path] = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def test_module_imports_only_what_its_room_may() -> None:
    assert [rule for module, path in MODULES.items() for rule in broken_rules(module, path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("punchlistd.domain.evolve", "import anyio"),
        ("punchlistd.domain.state", "from punchlist_schemas.results import Limits"),
        ("punchlistd.net.connection", "def late():\n    from punchlistd.store.port import EventLog"),
        ("punchlist.connection.core", "import time"),
        ("punchlist_schemas.methods", "from . import params"),
        ("punchlistd.app.app", "import daemon.punchlistd.app"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(broken_rules(module, source)) == 1


def test_module_imports_only_its_floor_and_below() -> None:
    assert [rule for module, path in MODULES.items() for rule in broken_floors(module, path.read_text("utf-8"))] == []


def test_mcp_server_reads_no_state_of_its_process() -> None:
    server = {name: path for name, path in MODULES.items() if is_within(name, ("punchlist_apps.mcp",))}
    assert "punchlist_apps.mcp.stdio" in server
    assert [name for name, path in server.items() if PROCESS_STATE.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("punchlist.base.text", "def late():\n    from punchlist.connection import launch"),
        ("punchlist_apps.cli.commands.log", "from punchlist_apps.cli.commands.export import run_export"),
        ("punchlistd.engine.lists.access", "from punchlistd.engine.writing import writer"),
    ],
)
def test_an_import_upwards_is_found(module: str, source: str) -> None:
    assert len(broken_floors(module, source)) == 1


@pytest.mark.parametrize("package", FOLDERS)
def test_no_module_has_import_cycle(package: str) -> None:
    graph = {
        name: {module_of(one) for one in imported_names(path.read_text("utf-8"))} - {name, ""}
        for name, path in MODULES.items()
        if is_within(name, (package,)) and name != package
    }
    # The package itself is excluded: it names its faces only for type checkers, and loads them on first use.
    assert "__getattr__" in MODULES["punchlist"].read_text("utf-8")
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("folder", "suffix", "first"),
    [("editors/vscode/src", ".ts", "extension.ts"), ("client/punchlist_apps/web/page", ".js", "app.js")],
)
def test_no_script_has_import_cycle(folder: str, suffix: str, first: str) -> None:
    sources = {path.name: path.read_text("utf-8") for path in (ROOT / folder).glob(f"*{suffix}")}
    graph = {name: set(re.findall(r'\bfrom "\./(.+?)";$', text, re.MULTILINE)) for name, text in sources.items()}
    assert len(graph[first]) > 5
    assert set().union(*graph.values()) <= set(sources)
    graphlib.TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("folder", [*FOLDERS.values(), "systemd", "tests"])
def test_a_top_level_folder_is_not_a_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists(), f"{folder}/ would shadow a package of that name"


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_ships_its_types(package: str) -> None:
    place = ROOT / FOLDERS[package] / package
    assert (place / "py.typed").exists()
    assert (place / "__init__.py").exists()


def test_daemon_and_client_state_one_version() -> None:
    version = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
    files = ("daemon/punchlistd/__init__.py", "client/punchlist/base/__init__.py")
    assert len({version.findall((ROOT / name).read_text("utf-8"))[0] for name in files}) == 1
