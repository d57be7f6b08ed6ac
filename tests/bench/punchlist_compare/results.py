"""The results of a comparison: a figure for each peer and row, or the reason why there is none."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Figure(msgspec.Struct, omit_defaults=True):
    """A cell.

    Attributes:
        samples: All samples, in the row's unit; empty if there is none.
        why: Reason for an empty cell, or a footnote to the figure.
    """

    samples: list[float] = []
    why: str = ""

    @property
    def value(self) -> float | None:
        return statistics.median(self.samples) if self.samples else None


class Row(msgspec.Struct, frozen=True):
    """A row of the table.

    Attributes:
        unit: `ms`, `MiB`, `tokens` or `flushes`.
        short: Whether the README shows it.
        drawn: Whether the picture has it.
    """

    key: str
    label: str
    unit: str
    short: bool = False
    drawn: bool = False


class Results(msgspec.Struct):
    """A run.

    Attributes:
        load: The machine's load average before the run, caused by other programs; None if it wasn't recorded.
        versions: Peer → version, in the order of the columns.
        figures: Key of the row → peer → cell.
    """

    machine: str
    day: str
    rounds: int
    sizes: list[int]
    versions: dict[str, str]
    figures: dict[str, dict[str, Figure]] = {}
    load: float | None = None

    def add(self, key: str, peer: str, sample: float) -> None:
        self.get(key, peer).samples.append(sample)

    def explain(self, key: str, peer: str, why: str) -> None:
        self.get(key, peer).why = why

    def get(self, key: str, peer: str) -> Figure:
        return self.figures.setdefault(key, {}).setdefault(peer, Figure())


def list_rows(sizes: Sequence[int]) -> list[Row]:
    """Return all rows for these sizes, in the order of the table."""
    middle = pick_calls_size(sizes)
    rows = [
        Row(
            f"{operation}.{size}.{kind}",
            f"`{operation}`, {size:,} tasks{', processor' if kind == 'cpu' else ''}",
            "ms",
            short=kind == "wall" and size == middle and operation in ("add", "list"),
            drawn=kind == "wall" and size == middle,
        )
        for operation in ("add", "list", "done", "next")
        for kind in ("wall", "cpu")
        for size in sizes
    ]
    return [
        *rows,
        Row("mcp.first", "MCP start, first session", "ms"),
        Row("mcp.first.cpu", "MCP start, first session, processor", "ms"),
        Row("mcp.further", "MCP start, further session", "ms", short=True, drawn=True),
        Row("mcp.further.cpu", "MCP start, further session, processor", "ms"),
        Row("mcp.memory.1", "memory of 1 session", "MiB"),
        Row("mcp.memory.20", "memory of 20 sessions", "MiB", short=True, drawn=True),
        Row("tokens.tools", "tool definitions", "tokens", drawn=True),
        Row("tokens.turn", f"one add and one next, {sizes[0]:,} tasks", "tokens", short=True, drawn=True),
        Row("call.add.0", "MCP add, first 100 tasks", "ms"),
        Row(f"call.add.{middle}", f"MCP add, {middle:,} tasks", "ms", drawn=True),
        Row(f"call.list.{middle}", f"MCP list, {middle:,} tasks", "ms", drawn=True),
        Row("flushes", "one add", "flushes", short=True),
    ]


def pick_calls_size(sizes: Sequence[int]) -> int:
    """Return the size at which MCP calls are timed: the largest up to 1,000, else the smallest."""
    return max((size for size in sizes if size <= 1_000), default=min(sizes))


def load(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def save(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
