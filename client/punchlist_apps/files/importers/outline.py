"""Parses the structure of Markdown text: tasks, and the headings and groups above them, with their lines.

markdown-it-py finds lists, code, block quotes and comments as CommonMark defines them. Nesting follows the indentation,
even where CommonMark requires one more space.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from markdown_it.token import Token

BOX = re.compile(r"^\[(?P<box>[^\]\n]?)\](?P<star>\\?\*)?(?:[ \t\u00a0]+(?P<title>.*)|$)")
"""Matches a checkbox with its title. Kiro writes a star after the checkbox of an optional task."""

BOX_LINE = re.compile(
    r"^(?P<head>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]*)?\[)(?P<box>[^\]\n]?)(?P<rest>\](?:\\?\*)?(?:[ \t\u00a0].*|$))"
)
"""Matches a line with a checkbox, split into the text through `[`, the character in the box, and the rest."""

ANY_BOX = re.compile(
    r"^[ \t>|]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t|]*+)?\[([^\]\n])\](?:\\?\*)?(?:[ \t\u00a0]|$)", re.MULTILINE
)
"""Matches checkboxes anywhere, including in code and block quotes."""

_TIGHT = re.compile(r"^([ \t]*(?:[-*+]|\d{1,9}[.)]))(?=\[[^\]\n]\][ \t])", re.MULTILINE)
_MARKER = re.compile(r"^([ \t]*)(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_FRONT = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TAB = 4
_MAX_NESTING = 90
_MIN_WRAPPED = 60
"""Minimum length of a line for a title to continue on the next line, unless the line ends a sentence."""


class Entry(msgspec.Struct):
    """A task, or a heading or group above tasks.

    Attributes:
        kind: `task`, `heading`, or `group` for an item without a checkbox above items with checkboxes.
        line: Its first line, counted from 0.
        end: The line after its last one, including nested entries.
        titled: Number of lines in its title.
        title: Its title.
        box: The character in its checkbox; None if it has no checkbox.
        above: The index of its parent entry, or -1.
        indent: Its column; for a heading, its level.
        description: The text below the title that doesn't belong to another entry.
        is_optional: Whether a star follows its checkbox.
        words: The part of the title that a new title replaces; empty for all of it. Marks around it stay.
        lead: The part of the title before `words`, such as an id. Other marks between the two aren't in the title.
        members: Members of the task that marks on its lines set.
        key: Its id in the file, if it has one.
        blockers: The indexes of the entries that it waits for.
    """

    kind: str
    line: int
    end: int
    titled: int
    title: str
    box: str | None
    above: int = -1
    indent: int = 0
    description: str = ""
    is_optional: bool = False
    words: str = ""
    lead: str = ""
    members: dict[str, Any] = {}
    key: str = ""
    blockers: list[int] = []


class Outline(msgspec.Struct):
    """The structure of a document.

    Attributes:
        entries: The entries in document order.
        has_boxes: Whether only items with checkboxes are tasks. In text without checkboxes, all list items are.
        title: The line of the document's title, or -1.
        prose: Number of lines of text that don't belong to an entry.
        hidden: Number of checkboxes in code, tables, block quotes or comments.
        front: Number of lines of front matter.
        left_out: What the form's reader left out, as pairs of a kind and a line.
        lanes: Status -> line of the heading below which a board shows tasks with this status; "" for the first lane
            that names no status.
    """

    entries: list[Entry]
    has_boxes: bool
    title: int
    prose: int
    hidden: int
    front: int
    left_out: list[tuple[str, int]] = []
    lanes: dict[str, int] = {}


def parse_outline(text: str, *, boxes_only: bool = False, boxes: str = "", wraps: bool = True) -> Outline:
    """Parse Markdown text.

    Args:
        boxes_only: Whether items without checkboxes are never tasks.
        boxes: The characters that a checkbox may contain; empty for all characters.
        wraps: Whether a long title may continue on the next line.
    """
    front = _FRONT.match(text)
    front_lines = front[0].count("\n") if front else 0
    blanked = "\n" * front_lines + text[front.end() :] if front else text
    candidates, has_boxes, title = _find_entries(_TIGHT.sub(r"\1 ", blanked), boxes, wraps=wraps)
    entries = _nest(candidates, has_boxes=has_boxes or boxes_only)
    lines = text.split("\n")
    _describe(entries, lines)
    used = sum(entry.titled for entry in entries) + sum(
        bool(line.strip()) for entry in entries for line in entry.description.split("\n")
    )
    text_lines = sum(bool(line.strip()) for line in lines[front_lines:])
    count = sum(entry.box is not None for entry in entries)
    hidden = max(0, sum(not boxes or match[1] in boxes for match in ANY_BOX.finditer(text)) - count)
    return Outline(entries, has_boxes, title, max(0, text_lines - used - (title >= 0)), hidden, front_lines)


def list_above(entries: Sequence[Entry], index: int) -> Iterator[int]:
    """Yield the indexes of an entry's parents, from the nearest upward."""
    while (index := entries[index].above) >= 0:
        yield index


def _tokenize(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    parser.core.ruler.disable(["inline"])
    # Link reference definitions are kept as text, since references aren't resolved.
    parser.block.ruler.disable(["reference"])
    return parser.parse(text)


def _find_entries(text: str, boxes: str, *, wraps: bool) -> tuple[list[Entry], bool, int]:
    """Return the items and headings, whether any item has a checkbox, and the line of the title."""
    entries: list[Entry] = []
    tokens = _tokenize(text)
    lines = text.split("\n")
    quote_depth = 0
    for index, token in enumerate(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quote_depth += token.nesting
        elif quote_depth or token.map is None:
            continue
        elif token.type == "heading_open":
            title = tokens[index + 1].content
            entries.append(Entry("heading", *token.map, titled=token.map[1] - token.map[0], title=title, box=None))
            entries[-1].indent = int(token.tag[1:])
        elif token.type == "list_item_open":
            if (entry := _parse_item(tokens, index, lines, boxes, wraps=wraps)) is not None:
                entries.append(entry)
        elif token.type == "inline" and not token.level - 1 and tokens[index - 1].type == "paragraph_open":
            entries += _parse_loose_boxes(token, lines, boxes)
    titles = [entry for entry in entries if entry.kind == "heading" and entry.indent == 1]
    title = titles[0].line if len(titles) == 1 and entries[0] is titles[0] else -1
    entries = [entry for entry in entries if entry.line != title]
    return entries, any(entry.box is not None for entry in entries), title


def _match_box(row: str, boxes: str) -> re.Match[str] | None:
    match = BOX.match(row)
    return None if match and boxes and match["box"] not in boxes else match


def _parse_item(tokens: "list[Token]", index: int, lines: list[str], boxes: str, *, wraps: bool) -> Entry | None:
    """Return a list item that has text on its first line; None if that line starts a nested list."""
    opened, head = tokens[index].map, tokens[index + 1] if index + 1 < len(tokens) else None
    if opened is None or head is None:
        return None
    start, end = opened
    marker = _MARKER.match(lines[start])
    if marker is None:
        return None
    text = tokens[index + 2].content if head.type == "paragraph_open" and head.map and head.map[0] == start else ""
    if head.type == "heading_open" and head.map and head.map[0] == start:
        text = tokens[index + 2].content
    if not text and head.type != "list_item_close":
        return None
    rows = text.split("\n")
    box = _match_box(rows[0], boxes)
    title = (box["title"] or "") if box else rows[0]
    titled = 1
    while (
        wraps
        and titled < len(rows)
        and len(rows[titled - 1]) >= _MIN_WRAPPED
        and rows[titled - 1].rstrip()[-1:] not in ".:!?>"
    ):
        title = f"{title.rstrip()} {rows[titled].strip()}"
        titled += 1
    column = len(marker[1].expandtabs(_TAB))
    entry = Entry("task", start, end, titled, title.strip(), box["box"] if box else None, indent=column)
    entry.is_optional = bool(box and box["star"])
    return entry


def _parse_loose_boxes(token: "Token", lines: list[str], boxes: str) -> list[Entry]:
    """Return entries for lines that start with a checkbox but no bullet."""
    start = token.map[0] if token.map else 0
    entries: list[Entry] = []
    for offset, row in enumerate(token.content.split("\n")):
        if match := _match_box(row, boxes):
            line = start + offset
            indent = len(lines[line]) - len(lines[line].lstrip())
            title = (match["title"] or "").strip()
            entry = Entry("task", line, line + 1, 1, title, match["box"], indent=indent)
            entry.is_optional = bool(match["star"])
            entries.append(entry)
    return entries


def _nest(candidates: list[Entry], *, has_boxes: bool) -> list[Entry]:
    """Return the tasks and the headings and items above them, with their parents set."""
    headings: list[int] = []
    items: list[int] = []
    above: list[int] = []
    for index, entry in enumerate(candidates):
        if entry.kind == "heading":
            while headings and candidates[headings[-1]].indent >= entry.indent:
                headings.pop()
            above.append(headings[-1] if headings else -1)
            headings.append(index)
            items = []
            continue
        while items and (
            candidates[items[-1]].indent >= entry.indent or candidates[items[-1]].end <= entry.line - _TAB
        ):
            items.pop()
        above.append(items[-1] if items else headings[-1] if headings else -1)
        items.append(index)
    is_selected = [entry.kind == "task" and (entry.box is not None or not has_boxes) for entry in candidates]
    for index in reversed(range(len(candidates))):
        if is_selected[index] and above[index] >= 0:
            if not is_selected[above[index]] and candidates[above[index]].kind == "task":
                candidates[above[index]].kind = "group"
            is_selected[above[index]] = True
    numbers = {
        index: number for number, index in enumerate(index for index, selected in enumerate(is_selected) if selected)
    }
    for index in numbers:
        candidates[index].above = numbers.get(above[index], -1)
    return [candidates[index] for index in numbers]


def _describe(entries: list[Entry], lines: list[str]) -> None:
    """Set the description of each item to those of its lines that don't belong to another entry."""
    for index, entry in enumerate(entries):
        if entry.kind == "heading":
            continue
        own_lines: list[str] = []
        line = entry.line + entry.titled
        for other in entries[index + 1 :]:
            if other.line >= entry.end:
                break
            if other.above == index:
                own_lines += lines[line : other.line]
                line = max(line, other.end)
        own_lines += lines[line : entry.end]
        entry.description = _dedent(own_lines)


def _dedent(lines: list[str]) -> str:
    expanded = [line.expandtabs(_TAB) if "\t" in line[:8] else line for line in lines]
    while expanded and not expanded[0].strip():
        expanded.pop(0)
    while expanded and not expanded[-1].strip():
        expanded.pop()
    margin = min((len(line) - len(line.lstrip(" ")) for line in expanded if line.strip()), default=0)
    dedented = [line[margin:] for line in expanded]
    if dedented and all(line.startswith(">") for line in dedented if line.strip()):
        first_gap = next((number for number, line in enumerate(dedented) if not line.strip()), len(dedented))
        if first_gap == len(dedented):
            return "\n".join(line[1:].removeprefix(" ") for line in dedented)
    return "\n".join(line.rstrip() for line in dedented)
