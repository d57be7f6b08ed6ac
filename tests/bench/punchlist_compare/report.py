"""Writes the results as a Markdown table, with the reason for each empty cell below it."""

from punchlist_bench import table
from punchlist_compare.results import Figure, Results, Row, list_rows

EMPTY = "–"


def describe_run(results: Results) -> str:
    """Return when, on which machine and in how many rounds the figures were measured."""
    text = (
        f"Measured by `make compare` on {results.day}: {results.machine}.\n"
        f"Figures are medians of {results.rounds} rounds or more unless a footnote says otherwise.\n"
    )
    if results.load is not None:
        text += f"Other programs caused a load average of {results.load:.1f} before the run.\n"
    return text


def draw_table(results: Results, *, short: bool = False) -> str:
    """Return the table, or only its most important rows; the best figure of a row is bold."""
    footnotes: dict[str, int] = {}
    rows = [row for row in list_rows(results.sizes) if row.short or not short]
    lines = [_draw_row(results, row, footnotes) for row in rows]
    head = ["", *(f"{peer} {version}" for peer, version in results.versions.items())]
    text = table.grid(head, lines, ("---", *["---:"] * len(results.versions)))
    return text + "".join(f"\n{number}. {why}" for why, number in footnotes.items()) + "\n"


def _draw_row(results: Results, row: Row, footnotes: dict[str, int]) -> list[str]:
    cells = {peer: results.get(row.key, peer) for peer in results.versions}
    best = min((cell.value for cell in cells.values() if cell.value is not None), default=None)
    # More flushes aren't worse: they are what durability costs.
    return [
        f"{row.label}, {row.unit}",
        *(_draw_cell(cell, best if row.unit != "flushes" else None, footnotes) for cell in cells.values()),
    ]


def _draw_cell(cell: Figure, best: float | None, footnotes: dict[str, int]) -> str:
    text = EMPTY if cell.value is None else format_figure(cell.value)
    if cell.value is not None and cell.value == best:
        text = f"**{text}**"
    if cell.why:
        number = footnotes.setdefault(cell.why, len(footnotes) + 1)
        text += f" <sup>{number}</sup>"
    return text


def format_figure(value: float) -> str:
    """Format a figure: with one decimal below 100, with none from 100 on."""
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
