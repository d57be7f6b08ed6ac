"""Markdown tables of figures with anchors and targets."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

HEAD = ("what", "punchlist", "anchor", "ratio", "target", "")


class Row(msgspec.Struct, frozen=True):
    """One figure.

    Attributes:
        ratio: Ratio of figure to anchor.
        met: Whether the target was met; None without a target or an anchor to compare with.
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


def ratio_row(what: str, figure: str, anchor: str, ratio: float, target: str) -> Row:
    """Return a row whose target limits the ratio, such as `≥ 1.25 ×` or `≤ 1.1 ×`; "" for no target."""
    met = _holds(ratio, target) if target else None
    return Row(what, figure, anchor, f"{ratio:.2f}", target, met)


def value_row(what: str, figure: str, value: float, target: str, anchor: str = "") -> Row:
    """Return a row whose target limits the value, in the same unit, such as `≤ 10 ms`."""
    return Row(what, figure, anchor, "", target, _holds(value, target))


def skipped_row(what: str, why: str) -> Row:
    """Return a row for a figure that can't be measured here."""
    return Row(what, "skipped", why)


def _holds(value: float, target: str) -> bool:
    sign, limit = target.split()[:2]
    number = float(limit.replace(",", ""))
    return value >= number if sign == "≥" else value <= number


def clients(number: int) -> str:
    """Return a string such as `1 client` or `64 clients`."""
    return f"{number} client{'s' if number > 1 else ''}"


def count(value: float) -> str:
    """Format a number with thousands separators, or with a decimal if it is below 100."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def micros(value: float) -> str:
    """Format a duration in microseconds, or in milliseconds if it is long."""
    return f"{value:,.0f} µs" if value < 10_000 else f"{value / 1000:,.1f} ms"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """Return a table in Markdown."""
    lines = [head, rule or ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def markdown(rows: Iterable[Row]) -> str:
    """Return the table of figures in a page."""
    return grid(HEAD, (row.cells() for row in rows), ("---", "---:", "---:", "---:", "---", "---"))


def write(page: Path, name: str, text: str) -> None:
    """Replace the text between the markers `<!-- figures: NAME -->` and `<!-- /figures -->` of a page."""
    head, begin, rest = page.read_text("utf-8").partition(f"<!-- figures: {name} -->\n")
    _, end, tail = rest.partition("<!-- /figures -->")
    if not begin or not end:
        raise ValueError(f"{page} has no place for the figures of {name}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}", "utf-8")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
