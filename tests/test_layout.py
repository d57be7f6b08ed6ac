"""The architecture, executable: who imports whom, what stays pure, and that the map is true."""

import ast
import graphlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"punchlist_schemas": "schemas", "punchlist": "client", "punchlistd": "daemon"}

DATA = tuple(f"punchlist_schemas.{name}" for name in ("changes", "errors", "events", "params", "things"))
"""The part of the contract that the domain speaks in: plain values."""

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "punchlist_schemas": ("punchlist_schemas",),
    "punchlist": ("punchlist", "punchlist_schemas"),  # its rooms are FLOORS
    "punchlistd": (),
    "punchlistd.settings": ("punchlist_schemas",),
    "punchlistd.domain": ("punchlistd.domain", *DATA),
    "punchlistd.domain.responses": ("punchlistd.domain", *DATA, "punchlist_schemas.results"),
    "punchlistd.store": (
        "punchlistd.store",
        "punchlist_schemas.events",
        "punchlist_schemas.system",
        "punchlist_schemas.things",
    ),
    "punchlistd.clock": (),
    "punchlistd.engine": (
        "punchlistd.engine",
        "punchlistd.__version__",
        "punchlistd.clock",
        "punchlistd.domain",
        "punchlistd.settings",
        "punchlistd.store.port",
        "punchlistd.store.record",
        "punchlistd.store.search",
        "punchlist_schemas",
    ),
    "punchlistd.net": (
        "punchlistd.net",
        "punchlistd.__version__",
        "punchlistd.clock",
        "punchlistd.engine",
        "punchlistd.settings",
        "punchlist_schemas",
    ),
    "punchlistd.shared": (
        "punchlistd.shared",
        "punchlistd.clock",
        "punchlistd.domain",
        "punchlistd.engine",
        "punchlistd.settings",
        "punchlistd.store.port",
        "punchlistd.store.record",
        "punchlist_schemas",
    ),
    "punchlistd.app": ("punchlistd", "punchlist_schemas"),
    "punchlistd.audit": ("punchlistd", "punchlist_schemas"),
    "punchlistd.backups": ("punchlistd", "punchlist_schemas"),
    "punchlistd.leftovers": (),
    "punchlistd.process": ("punchlist_schemas.system",),
    "punchlistd.machines": ("punchlistd", "punchlist_schemas"),
    "punchlistd.read_only": ("punchlistd", "punchlist_schemas"),
    "punchlistd.repair": ("punchlistd", "punchlist_schemas"),
    "punchlistd.report": ("punchlistd", "punchlist_schemas"),
    "punchlistd.run": ("punchlistd", "punchlist_schemas"),
    "punchlistd.status_file": ("punchlist_schemas.system",),
    "punchlistd.__main__": ("punchlistd", "punchlist_schemas"),
}
"""Room → what of ours it may import. A module's room is the longest of these that its name begins with."""

LIBRARY = ("punchlist", "punchlist.taskfiles")
IMPORTERS = (*LIBRARY, "punchlist.importers")
HTTP = (*LIBRARY, "punchlist.http")
TOOLS = (*LIBRARY, "punchlist.tools")
SERVICES = ("punchlist.hosts", "punchlist.hosts.sessions", "punchlist.mcp", "punchlist.mirror")
WORDS = (
    "punchlist.cli.argument_types",
    "punchlist.cli.event_lines",
    "punchlist.cli.reasons",
    "punchlist.cli.render",
    "punchlist.cli.style",
)
"""Signs and sentences for people: the command line's, and those of the faces that draw on a terminal."""
CLI = (*TOOLS, *SERVICES, *WORDS, "punchlist.cli", "punchlist.importers")

FLOORS: dict[str, tuple[str, ...]] = {
    "punchlist": ("punchlist",),
    "punchlist.taskfiles": LIBRARY,
    "punchlist.importers": IMPORTERS,
    "punchlist.tools": TOOLS,
    "punchlist.hosts": (*TOOLS, "punchlist.hosts", "punchlist.hosts.sessions"),
    "punchlist.hosts.sessions": (*TOOLS, "punchlist.hosts.sessions"),  # which session of a host this process belongs to
    "punchlist.mirror": (*TOOLS, "punchlist.importers", "punchlist.mirror"),
    "punchlist.http": HTTP,
    "punchlist.mcp": (*TOOLS, "punchlist.http", "punchlist.hosts.sessions", "punchlist.mcp"),
    # Faces for people, beside each other: none imports another. A command may start one.
    "punchlist.chat": (*TOOLS, *SERVICES, "punchlist.chat"),
    "punchlist.ui": (*TOOLS, *SERVICES, *WORDS, "punchlist.ui"),
    "punchlist.web": (*TOOLS, *SERVICES, "punchlist.http", "punchlist.chat", "punchlist.web"),
    **dict.fromkeys(WORDS, (*LIBRARY, *WORDS)),
    "punchlist.cli": CLI,
    "punchlist.cli.runner": (*CLI, "punchlist.cli.runner"),
    # No command imports another: what two of them need stands beside them, in punchlist.cli.
    "punchlist.cli.commands": (
        *CLI,
        "punchlist.cli.runner",
        "punchlist.http",
        "punchlist.chat",
        "punchlist.ui",
        "punchlist.web",
    ),
}
"""Room of the client → the rooms that it may import. "punchlist" alone means the top modules, which are the library."""

ENTRANCES = {"punchlist.cli.fast": {"punchlist.cli"}, "punchlist.cli.dispatch": {"punchlist.cli"}}
"""Modules that begin a command → who may import them. Whoever needs a function of theirs moves it out."""

IMPURE = frozenset(
    "aiosqlite anyio asyncio datetime io logging multiprocessing os pathlib random secrets selectors shutil signal"
    " socket sqlite3 ssl subprocess tempfile threading time uuid watchfiles".split()
)
"""Clocks, chance, system and disk: what a pure module must be given instead."""

PURE: dict[str, frozenset[str]] = {
    "punchlistd.domain": frozenset(),
    "punchlistd.net.connection.protocol": frozenset(),  # bytes in, calls out: fuzzed without a loop
    "punchlistd.net.jsonrpc": frozenset(),
    "punchlist_schemas": frozenset(),
    "punchlist_schemas.rendezvous": frozenset({"os"}),  # asks the system whose directory it is
    "punchlist_schemas.directory": frozenset({"os"}),  # the rule of which list a directory means looks at it
    "punchlist_schemas.project_file": frozenset({"os"}),
    "punchlist_schemas.repository": frozenset({"os"}),
    "punchlist_schemas.build": frozenset({"os"}),  # looks at the installed files
    "punchlist_schemas.system": IMPURE,  # the calls of the system themselves
    "punchlist_schemas.export": IMPURE,  # a tool that writes files
    "punchlist.core": frozenset({"os"}),  # draws idempotency keys
}
"""What does no I/O and knows no clock → what it may import all the same."""


def is_within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def room_of(module: str, rooms: Iterable[str]) -> str | None:
    return max((room for room in rooms if is_within(module, (room,))), key=len, default=None)


def imported_names(source: str) -> Iterator[str]:
    """Every imported module; for `from a import b` the name `a.b`, whether b is a module or not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def broken_rules(module: str, source: str) -> list[str]:
    """The imports of a module that its room does not allow."""
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
    """The imports of a client's module that go up, or aside into a room that it has no business in."""
    room = room_of(module, FLOORS) or module
    names = [name for name in imported_names(source) if is_within(name, ("punchlist",))]
    upward = [name for name in names if room_of(name, FLOORS) not in FLOORS[room]]
    by_the_back = [name for name in names if module not in ENTRANCES.get(module_of(name), {module})]
    return [f"{module} imports {name}: {room} may import {', '.join(FLOORS[room])}" for name in upward + by_the_back]


def module_of(name: str) -> str:
    """The module that an imported name is, or is a member of."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def modules() -> dict[str, Path]:
    """Every source module of ours by its import name; a package goes by its own name."""
    found: dict[str, Path] = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def test_a_module_imports_only_what_its_room_may() -> None:
    assert [rule for module, path in MODULES.items() for rule in broken_rules(module, path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("punchlistd.domain.evolve", "import anyio"),
        ("punchlistd.domain.decide.tasks", "from time import time"),
        ("punchlistd.domain.state", "from punchlistd.engine import writer"),
        ("punchlistd.domain.state", "from punchlist_schemas.results import Limits"),
        ("punchlistd.store.sqlite", "import punchlistd.domain.state"),
        ("punchlistd.engine.writer", "from punchlistd.store import sqlite"),
        ("punchlistd.net.connection", "def late():\n    from punchlistd.store.port import EventLog"),
        ("punchlistd.settings", "import punchlistd.app"),
        ("punchlistd.new_room", "import punchlistd.settings"),
        ("punchlist.aio", "from punchlistd import settings"),
        ("punchlist_schemas.framing", "import socket"),
        ("punchlist_schemas.rendezvous", "import socket"),
        ("punchlist.core", "import time"),
        ("punchlist_schemas.methods", "import punchlist.core"),
        ("punchlist_schemas.methods", "from . import params"),
        ("punchlistd.app", "import daemon.punchlistd.app"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(broken_rules(module, source)) == 1


def test_a_module_of_the_client_imports_only_its_floor_and_those_below() -> None:
    of_the_client = {name: path for name, path in MODULES.items() if is_within(name, ("punchlist",))}
    assert of_the_client
    assert [
        rule for module, path in of_the_client.items() for rule in broken_floors(module, path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("punchlist.core", "from punchlist.tools import budget"),
        ("punchlist.taskfiles.file_format", "from punchlist.mirror.merge import Fields"),
        ("punchlist.tools.ids", "from punchlist.mirror import merge"),
        ("punchlist.tools.phrases", "def late():\n    from punchlist.cli.render import cut"),
        ("punchlist.hosts.briefing", "from punchlist.cli.style import write"),
        ("punchlist.mirror.runner", "import punchlist.mcp.server"),
        ("punchlist.ui.board", "from punchlist.cli import context"),
        ("punchlist.cli.context", "from punchlist.cli.fast import run"),
        ("punchlist.cli.failure", "from punchlist.cli.runner import lanes"),
        ("punchlist.cli.commands.log", "from punchlist.cli.commands.import_export import run_export"),
    ],
)
def test_an_import_upwards_is_found(module: str, source: str) -> None:
    assert len(broken_floors(module, source)) == 1


@pytest.mark.parametrize("package", FOLDERS)
def test_no_module_is_imported_by_what_it_imports(package: str) -> None:
    graph = {
        name: {module_of(one) for one in imported_names(path.read_text("utf-8"))} - {name, ""}
        for name, path in MODULES.items()
        if is_within(name, (package,)) and name != package
    }
    # The package itself is left out: it names its faces for type checkers alone and loads them at their first use.
    assert "__getattr__" in MODULES["punchlist"].read_text("utf-8")
    graphlib.TopologicalSorter(graph).prepare()


def test_no_module_of_the_extension_is_imported_by_what_it_imports() -> None:
    sources = {path.name: path.read_text("utf-8") for path in (ROOT / "editors/vscode/src").glob("*.ts")}
    graph = {
        name: set(re.findall(r'^import .* from "\./(.*)";$', text, re.MULTILINE)) for name, text in sources.items()
    }
    assert graph["extension.ts"] > {"actions.ts", "tree.ts"}, "also types are imported by such lines"
    assert set().union(*graph.values()) <= set(sources)
    graphlib.TopologicalSorter(graph).prepare()


def test_a_circle_of_imports_is_found() -> None:
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()


LONGEST = 400

LONG = {
    "punchlist.chat.turn": "a turn is one object: each step of it reads what the steps before wrote down",
    "punchlist.task_calls": "a method for each call about tasks, most of it what their docstrings tell",
    "punchlist.tools.dialects.native": "the tools of one dialect and what they answer",
    "punchlist_schemas.params": "the params of every call, one struct each",
    "punchlist_schemas.results": "the result of every call, one struct each",
    "punchlist_schemas.things": "the nouns of the contract, one struct each",
    "punchlistd.app": "the parts of a daemon, in the order of their start and of their end",
    "punchlistd.domain.inverse": "one inverse for each kind of event",
    "punchlistd.domain.state": "one object and the sets that follow from it, which change together",
    "punchlistd.engine.subscriptions": "one cursor: live, behind and catching up are its states",
    "punchlistd.engine.transaction": "one draft of a commit, from the first call that joins to the last",
    "punchlistd.net.connection": "one peer: bytes in, calls, answers and pushes out, and its end",
    "punchlistd.shared.lane": "one call after the other from its queue to its answer, whatever became of its post",
    "punchlistd.shared.sharing": "what is configured, and what each change of it sets in motion, under one lock",
    "punchlistd.store.reading": "one way to read rows, with the index and without it",
}
"""Modules of more lines, each with the reason why it is one noun."""


def test_a_long_module_is_one_noun_and_says_which() -> None:
    long = {name for name, path in MODULES.items() if len(path.read_text("utf-8").splitlines()) > LONGEST}
    assert long - LONG.keys() == set(), "split it by its nouns, or give the reason in LONG"
    assert LONG.keys() <= MODULES.keys(), "strike what is gone"


@pytest.mark.parametrize("folder", [*FOLDERS.values(), "systemd", "tests"])
def test_a_top_level_folder_is_not_a_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists(), f"{folder}/ would shadow a package of that name"


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_ships_its_types_and_agrees_on_the_version(package: str) -> None:
    place = ROOT / FOLDERS[package] / package
    assert (place / "py.typed").exists()
    assert (place / "__init__.py").exists()
    version = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
    stated = version.findall((place / "__init__.py").read_text("utf-8"))
    assert stated in ([], version.findall((ROOT / "daemon/punchlistd/__init__.py").read_text("utf-8")))


def test_the_run_time_dependencies_are_the_five_and_pinned_for_the_checkout() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {re.split(r"[<>=]", line)[0] for line in project["dependencies"]} == {
        "aiosqlite",
        "anyio",
        "markdown-it-py",
        "msgspec",
        "watchfiles",
    }
    lines = (ROOT / "requirements/dev.txt").read_text("utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    wanted = [*project["dependencies"], *extras["uvloop"], *extras["web"], *extras["dev"]]
    assert {re.split(r"[<>=]", line)[0] for line in wanted} <= pinned


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = [*re.findall(r"`([\w.-]+/[\w./-]*)`", text), *re.findall(r"\]\(([\w./-]+)\)", text)]
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []
