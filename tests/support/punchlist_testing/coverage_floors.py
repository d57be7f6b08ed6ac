"""How much of each part of the sources, and of each module, the suite must cover: lines and branches together.

Run with REPORT [PART…], it reads the JSON report of coverage.py, prints the figures and what falls short, and exits
with 1 if anything does. Without PART it judges what `make coverage` measures.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from punchlist_testing import nats_server, postgres_server
from punchlist_testing.optional import explain

MODULE = 80
"""What each module must reach, in per cent: the figure of its part must not hide one that nothing runs."""


class Part(NamedTuple):
    """A part of the sources: the paths that it begins with, and what it must reach in per cent."""

    paths: tuple[str, ...]
    floor: int


PARTS = {
    "daemon": Part(("daemon/",), 95),
    "schemas": Part(("schemas/",), 95),
    "client": Part(("client/",), 90),
    # These import the MCP SDK, which .venv does not hold: `make conformance` measures them.
    "mcp": Part(("client/punchlist_apps/mcp/", "client/punchlist_apps/cli/commands/mcp.py"), 90),
    # And these the Agents SDK: `make conformance ONLY=agents` measures them.
    "agents-sdk": Part(("client/punchlist_apps/chat/models/agents_sdk.py", "client/punchlist_apps/web/chatkit.py"), 80),
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
    # And only tests with a PostgreSQL server these.
    "postgres": Part(("daemon/punchlistd/replication/adapters/postgres",), 80),
}


SERVERS = {"nats": ("nats-server", nats_server.program), "postgres": ("postgres", postgres_server.programs)}
"""Part → the server that its tests need, by its name in `optional.NEEDS`, and the function that finds it."""


def choose_parts() -> tuple[list[str], list[str]]:
    """Return the parts that `make coverage` can judge here, and a line for each that lacks its server."""
    lacking = {part: explain(server) for part, (server, find) in SERVERS.items() if find() is None}
    parts = [part for part in ("daemon", "schemas", "client", *SERVERS) if part not in lacking]
    return parts, [f"{part}: not judged, it {reason}" for part, reason in lacking.items()]


def part_of(path: str) -> str:
    """The part that a source file belongs to: that of the longest path that it begins with."""
    fitting = [(len(start), name) for name, part in PARTS.items() for start in part.paths if path.startswith(start)]
    return max(fitting)[1]


def judged(files: Mapping[str, Mapping[str, Any]], parts: list[str]) -> tuple[list[str], list[str]]:
    """The figures of some parts, and what of them falls short, as lines.

    Args:
        files: The member `files` of the report.
        parts: Names of `PARTS`.
    """
    figures: list[str] = []
    short: list[str] = []
    for name in parts:
        mine = {path: file["summary"] for path, file in files.items() if part_of(path) == name}
        reached = _percent(*mine.values())
        floor = PARTS[name].floor
        figures.append(f"{name}: {reached:.1f} % of {len(mine)} modules, the floor is {floor} %")
        if not mine:
            short.append(f"{name} was not measured")
        if reached < floor:
            short.append(f"{name} as a whole is covered to {reached:.1f} %: {floor} % is the floor")
        for path, summary in mine.items():
            if (of_module := _percent(summary)) < MODULE:
                short.append(f"{path} is covered to {of_module:.1f} %: {MODULE} % is the floor of a module")
    return figures, short


def _percent(*summaries: Mapping[str, int]) -> float:
    possible = sum(one["num_statements"] + one.get("num_branches", 0) for one in summaries)
    covered = sum(one["covered_lines"] + one.get("covered_branches", 0) for one in summaries)
    return 100.0 * covered / possible if possible else 100.0


def main(arguments: list[str]) -> int:
    report, *parts = arguments
    parts, lacking = (parts, list[str]()) if parts else choose_parts()
    figures, short = judged(json.loads(Path(report).read_text("utf-8"))["files"], parts)
    print("\n".join([*figures, *lacking, *short]))
    if short:
        print("write the missing tests, or delete what nothing uses; .venv/bin/coverage report names the lines")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
