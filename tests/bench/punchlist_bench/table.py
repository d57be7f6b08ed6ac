"""Rows of figures with anchors and targets, as tables in Markdown."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

HEAD = ("what", "punchlist", "anchor", "ratio", "target", "")


class Row(msgspec.Struct, frozen=True):
    """One figure.

    `met` is None where there is no target, or no anchor to measure it by. `ratio` is that of figure to anchor.
    """

    what: str
    figure: str
    anchor: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the cells in the order of `HEAD`."""
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        return (self.what, self.figure, self.anchor, self.ratio, self.target, verdict)


def compared(what: str, figure: str, anchor: str, ratio: float, target: str) -> Row:
    """A row whose target is about the ratio: `≥ 1.25 ×` or `≤ 1.1 ×`; without a target nothing is judged."""
    met = _holds(ratio, target) if target else None
    return Row(what, figure, anchor, f"{ratio:.2f}", target, met)


def absolute(what: str, figure: str, value: float, target: str, anchor: str = "") -> Row:
    """A row whose target is about the value itself, whatever stands behind its number: `≤ 10 ms`."""
    return Row(what, figure, anchor, "", target, _holds(value, target))


def skipped(what: str, why: str) -> Row:
    """A row that could not be measured here."""
    return Row(what, "skipped", why)


def _holds(value: float, target: str) -> bool:
    sign, limit = target.split()[:2]
    number = float(limit.replace(",", ""))
    return value >= number if sign == "≥" else value <= number


def clients(number: int) -> str:
    """`1 client`, `64 clients`."""
    return f"{number} client{'s' if number > 1 else ''}"


def count(value: float) -> str:
    """A number with thousands separated, and with decimals where it is small."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def micros(value: float) -> str:
    """A duration given in microseconds."""
    return f"{value:,.0f} µs" if value < 10_000 else f"{value / 1000:,.1f} ms"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """Return a table in Markdown."""
    lines = [head, rule or ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def markdown(rows: Iterable[Row]) -> str:
    """Return the table of a page."""
    return grid(HEAD, (row.cells() for row in rows), ("---", "---:", "---:", "---:", "---", "---"))


def write(page: Path, name: str, text: str) -> None:
    """Put figures between the markers `<!-- figures: NAME -->` and `<!-- /figures -->` of a page."""
    head, begin, rest = page.read_text("utf-8").partition(f"<!-- figures: {name} -->\n")
    _, end, tail = rest.partition("<!-- /figures -->")
    if not begin or not end:
        raise ValueError(f"{page} has no place for the figures of {name}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}", "utf-8")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
