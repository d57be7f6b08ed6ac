"""Draws the results as horizontal bars, one small chart per row, in an SVG that follows the reader's color scheme."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from punchlist_compare.report import format_figure
from punchlist_compare.results import Results, Row, list_rows

COLUMNS = 2
WIDTH, LEFT, RIGHT, BAR, GAP = 430, 124, 76, 14, 5
HEAD = 34
MAX_RATIO = 5.0
"""A bar longer than this multiple of punchlist's is cut and ends in a notch, so that short bars can be compared."""

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 13px }
.name { text-anchor: end }
.bar { fill: #b6bfc9 }
.ours { fill: #0969da }
.cut { stroke: #ffffff; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.bar { fill: #57606a }
.ours { fill: #4493f8 }
.cut { stroke: #0d1117 }
}
"""


def draw(results: Results, ours: str) -> str:
    """Return the SVG; without a figure, a program has no bar."""
    rows = [row for row in list_rows(results.sizes) if row.drawn]
    bars = {row.key: _pick_bars(results, row) for row in rows}
    lines = [rows[first : first + COLUMNS] for first in range(0, len(rows), COLUMNS)]
    parts: list[str] = []
    top = 0
    for line in lines:
        for column, row in enumerate(line):
            parts += _draw_chart(row, bars[row.key], ours, column * WIDTH, top)
        top += HEAD + max(len(bars[row.key]) for row in line) * (BAR + GAP) + 2 * GAP
    size = f'width="{COLUMNS * WIDTH}" height="{top}" viewBox="0 0 {COLUMNS * WIDTH} {top}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
        f"<title>{escape(ours)} compared with other task lists: shorter bars are better</title>\n"
        f"<style>\n{STYLE}</style>\n{''.join(parts)}</svg>\n"
    )


def _pick_bars(results: Results, row: Row) -> dict[str, float]:
    figures = {peer: results.get(row.key, peer).value for peer in results.versions}
    return {peer: value for peer, value in figures.items() if value is not None}


def _draw_chart(row: Row, bars: dict[str, float], ours: str, left: int, top: int) -> Iterator[str]:
    title = escape(f"{row.label.replace('`', '')} ({row.unit})")
    yield f'<text class="title" x="{left + 8}" y="{top + 20}">{title}</text>\n'
    longest = max(bars.values(), default=1.0)
    full = min(longest, bars[ours] * MAX_RATIO) if ours in bars else longest
    room = WIDTH - LEFT - RIGHT
    for number, (peer, value) in enumerate(bars.items()):
        y = top + HEAD + number * (BAR + GAP)
        length = max(1.0, min(value / full, 1.0) * room)
        kind = "bar ours" if peer == ours else "bar"
        x = left + LEFT
        yield f'<text class="name" x="{x - 6}" y="{y + 11}">{escape(peer)}</text>\n'
        yield f'<rect class="{kind}" x="{x}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>\n'
        if value > full:
            cut = x + room - 14
            yield f'<path class="cut" d="M{cut} {y + BAR + 1}l5 -{BAR + 2}m4 0l-5 {BAR + 2}"/>\n'
        yield f'<text x="{x + length + 5:.1f}" y="{y + 11}">{format_figure(value)}</text>\n'
