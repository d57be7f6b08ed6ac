"""Minimum test coverage of each part of the sources and of each module, lines and branches together.

Run with REPORT [PART…], it reads the JSON report of coverage.py, prints the figures and every shortfall, and exits with
1 if there is a shortfall. Without PART it checks the parts that `make coverage` measures.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from punchlist_testing import nats_server, postgres_server
from punchlist_testing.optional import explain

MODULE = 80
"""Minimum for each module, in percent, because the average of a part could hide a module without tests."""


class Part(NamedTuple):
    """A part of the sources: its path prefixes and its minimum in percent."""

    paths: tuple[str, ...]
    floor: int


PARTS = {
    "daemon": Part(("daemon/",), 95),
    "schemas": Part(("schemas/",), 95),
    "client": Part(("client/",), 90),
    # These import the MCP SDK, which isn't installed in .venv: `make conformance` measures them.
    "mcp": Part(
        (
            "client/punchlist_apps/mcp/",
            "client/punchlist_apps/worker/",
            "client/punchlist_apps/relay/",
            "client/punchlist_apps/cli/commands/mcp.py",
        ),
        90,
    ),
    # These import the Agents SDK: `make conformance ONLY=agents` measures them.
    "agents-sdk": Part(("client/punchlist_apps/chat/models/agents_sdk.py", "client/punchlist_apps/web/chatkit.py"), 80),
    # These import agent frameworks: `make conformance ONLY=frameworks` measures them.
    "frameworks": Part(("client/punchlist/tools/adapters.py", "client/punchlist/tools/todos.py"), 90),
    # Only tests with a NATS server run these.
    "nats": Part(
        (
            "client/punchlist_apps/cli/commands/space.py",
            "daemon/punchlistd/app/machines.py",
            "daemon/punchlistd/replication/posts/history.py",
            "daemon/punchlistd/replication/lanes/left.py",
            "daemon/punchlistd/replication/adapters/nats",
            "daemon/punchlistd/replication/adapters/link_keeper.py",
            "daemon/punchlistd/replication/adapters/link_refusals.py",
            "daemon/punchlistd/replication/posts/refusals.py",
            "daemon/punchlistd/replication/sharing.py",
        ),
        80,
    ),
    # Only tests with a PostgreSQL server run these.
    "postgres": Part(("daemon/punchlistd/replication/adapters/postgres",), 80),
}


SERVERS = {"nats": ("nats-server", nats_server.program), "postgres": ("postgres", postgres_server.programs)}
"""Part -> name in `optional.NEEDS` of the server its tests need, and the function that finds it."""


def choose_parts() -> tuple[list[str], list[str]]:
    """Return the parts that `make coverage` can check here, and a line for each part whose server is missing."""
    lacking = {part: explain(server) for part, (server, find) in SERVERS.items() if find() is None}
    parts = [part for part in ("daemon", "schemas", "client", *SERVERS) if part not in lacking]
    return parts, [f"{part}: not judged, it {reason}" for part, reason in lacking.items()]


def part_of(path: str) -> str:
    """Return the part with the longest prefix of the path."""
    matches = [(len(prefix), name) for name, part in PARTS.items() for prefix in part.paths if path.startswith(prefix)]
    return max(matches)[1]


def judge(files: Mapping[str, Mapping[str, Any]], parts: list[str]) -> tuple[list[str], list[str]]:
    """Return a line for each part, and a line for each shortfall.

    Args:
        files: The `files` member of the report.
        parts: Names from `PARTS`.
    """
    figures: list[str] = []
    short: list[str] = []
    for name in parts:
        modules = {path: file["summary"] for path, file in files.items() if part_of(path) == name}
        reached = _percent(*modules.values())
        floor = PARTS[name].floor
        figures.append(f"{name}: {reached:.1f} % of {len(modules)} modules, the floor is {floor} %")
        if not modules:
            short.append(f"{name} was not measured")
        if reached < floor:
            short.append(f"{name} as a whole is covered to {reached:.1f} %: {floor} % is the floor")
        for path, summary in modules.items():
            if (percent := _percent(summary)) < MODULE:
                short.append(f"{path} is covered to {percent:.1f} %: {MODULE} % is the floor of a module")
    return figures, short


def _percent(*summaries: Mapping[str, int]) -> float:
    possible = sum(summary["num_statements"] + summary.get("num_branches", 0) for summary in summaries)
    covered = sum(summary["covered_lines"] + summary.get("covered_branches", 0) for summary in summaries)
    return 100.0 * covered / possible if possible else 100.0


def main(arguments: list[str]) -> int:
    report, *parts = arguments
    parts, lacking = (parts, list[str]()) if parts else choose_parts()
    figures, short = judge(json.loads(Path(report).read_text("utf-8"))["files"], parts)
    print("\n".join([*figures, *lacking, *short]))
    if short:
        print("write the missing tests, or delete what nothing uses; .venv/bin/coverage report names the lines")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
