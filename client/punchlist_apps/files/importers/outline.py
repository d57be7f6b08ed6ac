"""The shape of a Markdown text: its tasks, and the headings and groups above them, with the lines they stand in.

CommonMark decides what is a list, code, a quotation or a comment (markdown-it-py); what stands below what is read from
the indentation, as people mean it, also where CommonMark would want one more space.
"""

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from markdown_it.token import Token

BOX = re.compile(r"^\[(?P<box>[^\]\n]?)\](?:[ \t\u00a0]+(?P<title>.*)|$)")
BOX_LINE = re.compile(
    r"^(?P<head>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]*)?\[)(?P<box>[^\]\n]?)(?P<rest>\](?:[ \t\u00a0].*|$))"
)
"""A whole line with a box: what stands before it, in it and behind it."""

ANY_BOX = re.compile(r"^[ \t>|]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t|]*+)?\[[^\]\n]\](?:[ \t\u00a0]|$)", re.MULTILINE)
"""What looks like a box, wherever it stands."""

_TIGHT = re.compile(r"^([ \t]*(?:[-*+]|\d{1,9}[.)]))(?=\[[^\]\n]\][ \t])", re.MULTILINE)
_MARKER = re.compile(r"^([ \t]*)(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)")
_FRONT = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TAB = 4
_MOST_NESTED = 90
_WRAPPED = 60
"""A title in a line at least this long that does not end a sentence goes on in the next line."""


class Entry(msgspec.Struct):
    """A task, or what stands above tasks.

    Attributes:
        kind: `task`, `heading`, or `group`: an item without a box above boxes.
        line: Its first line, from 0.
        end: The line behind its last one, what stands below it included.
        titled: How many lines its title takes.
        title: Its title.
        box: What is between the brackets; None without brackets.
        above: The index of the entry that it stands below, or -1.
        indent: Its column, or for a heading its level.
        description: The text below it that is no task.
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


class Outline(msgspec.Struct):
    """What a text holds.

    Attributes:
        entries: In the order of the text.
        has_boxes: Whether its tasks are those with boxes; without any, each item of a list is one.
        title: The line of the document's title, -1 if it has none.
        prose: How many lines with text belong to no task.
        hidden: How many boxes stand in code, tables, quotations or comments.
        front: How many lines of front matter it begins with.
    """

    entries: list[Entry]
    has_boxes: bool
    title: int
    prose: int
    hidden: int
    front: int


def outline(text: str, *, boxes_only: bool = False) -> Outline:
    """Read a text. A line counts from 0. `boxes_only`: an item without a box is no task in any text."""
    front = _FRONT.match(text)
    blanked = front[0].count("\n") if front else 0
    shown = "\n" * blanked + text[front.end() :] if front else text
    found, has_boxes, title = _found(_TIGHT.sub(r"\1 ", shown))
    entries = _nested(found, has_boxes=has_boxes or boxes_only)
    lines = text.split("\n")
    _describe(entries, lines)
    used = sum(entry.titled for entry in entries) + sum(
        bool(line.strip()) for one in entries for line in one.description.split("\n")
    )
    written = sum(bool(line.strip()) for line in lines[blanked:])
    boxes = sum(entry.box is not None for entry in entries)
    hidden = max(0, sum(1 for _ in ANY_BOX.finditer(text)) - boxes)
    return Outline(entries, has_boxes, title, max(0, written - used - (title >= 0)), hidden, blanked)


def _tokens(text: str) -> "list[Token]":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MOST_NESTED}).enable("table")
    parser.core.ruler.disable(["inline"])
    # A text may define what its references mean; nobody follows them here.
    parser.block.ruler.disable(["reference"])
    return parser.parse(text)


def _found(text: str) -> tuple[list[Entry], bool, int]:
    """The items and headings of a text; whether there are boxes; the line of its title."""
    found: list[Entry] = []
    tokens = _tokens(text)
    lines = text.split("\n")
    quoted = 0
    for index, token in enumerate(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quoted += token.nesting
        elif quoted or token.map is None:
            continue
        elif token.type == "heading_open":
            title = tokens[index + 1].content
            found.append(Entry("heading", *token.map, titled=token.map[1] - token.map[0], title=title, box=None))
            found[-1].indent = int(token.tag[1:])
        elif token.type == "list_item_open":
            if (entry := _item(tokens, index, lines)) is not None:
                found.append(entry)
        elif token.type == "inline" and not token.level - 1 and tokens[index - 1].type == "paragraph_open":
            found += _loose(token, lines)
    firsts = [one for one in found if one.kind == "heading" and one.indent == 1]
    title = firsts[0].line if len(firsts) == 1 and found[0] is firsts[0] else -1
    entries = [one for one in found if one.line != title]
    return entries, any(one.box is not None for one in entries), title


def _item(tokens: "list[Token]", index: int, lines: list[str]) -> Entry | None:
    """The item of a list whose first line holds text; one of a list in a list item's first line is none."""
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
    box = BOX.match(rows[0])
    title = (box["title"] or "") if box else rows[0]
    titled = 1
    while titled < len(rows) and len(rows[titled - 1]) >= _WRAPPED and rows[titled - 1].rstrip()[-1:] not in ".:!?>":
        title = f"{title.rstrip()} {rows[titled].strip()}"
        titled += 1
    column = len(marker[1].expandtabs(_TAB))
    return Entry("task", start, end, titled, title.strip(), box["box"] if box else None, indent=column)


def _loose(token: "Token", lines: list[str]) -> list[Entry]:
    """Lines that begin with a box, without a bullet before it."""
    start = token.map[0] if token.map else 0
    found: list[Entry] = []
    for offset, row in enumerate(token.content.split("\n")):
        if match := BOX.match(row):
            line = start + offset
            indent = len(lines[line]) - len(lines[line].lstrip())
            found.append(Entry("task", line, line + 1, 1, (match["title"] or "").strip(), match["box"], indent=indent))
    return found


def _nested(found: list[Entry], *, has_boxes: bool) -> list[Entry]:
    """The tasks, and those headings and items without a box that have tasks below; each knows what is above it."""
    headings: list[int] = []
    items: list[int] = []
    above: list[int] = []
    for index, entry in enumerate(found):
        if entry.kind == "heading":
            while headings and found[headings[-1]].indent >= entry.indent:
                headings.pop()
            above.append(headings[-1] if headings else -1)
            headings.append(index)
            items = []
            continue
        while items and (found[items[-1]].indent >= entry.indent or found[items[-1]].end <= entry.line - _TAB):
            items.pop()
        above.append(items[-1] if items else headings[-1] if headings else -1)
        items.append(index)
    wanted = [entry.kind == "task" and (entry.box is not None or not has_boxes) for entry in found]
    for index in reversed(range(len(found))):
        if wanted[index] and above[index] >= 0:
            if not wanted[above[index]] and found[above[index]].kind == "task":
                found[above[index]].kind = "group"
            wanted[above[index]] = True
    new = {old: number for number, old in enumerate(index for index, want in enumerate(wanted) if want)}
    for old, number in new.items():
        found[old].above = new.get(above[old], -1)
        del number
    return [found[old] for old in new]


def _describe(entries: list[Entry], lines: list[str]) -> None:
    """Give each item the lines in it that are no task's."""
    for index, entry in enumerate(entries):
        if entry.kind == "heading":
            continue
        taken: list[str] = []
        line = entry.line + entry.titled
        for other in entries[index + 1 :]:
            if other.line >= entry.end:
                break
            if other.above == index:
                taken += lines[line : other.line]
                line = max(line, other.end)
        taken += lines[line : entry.end]
        entry.description = _dedented(taken)


def _dedented(lines: list[str]) -> str:
    shown = [line.expandtabs(_TAB) if "\t" in line[:8] else line for line in lines]
    while shown and not shown[0].strip():
        shown.pop(0)
    while shown and not shown[-1].strip():
        shown.pop()
    margin = min((len(line) - len(line.lstrip(" ")) for line in shown if line.strip()), default=0)
    cut = [line[margin:] for line in shown]
    if cut and all(line.startswith(">") for line in cut if line.strip()):
        first_gap = next((number for number, line in enumerate(cut) if not line.strip()), len(cut))
        if first_gap == len(cut):
            return "\n".join(line[1:].removeprefix(" ") for line in cut)
    return "\n".join(line.rstrip() for line in cut)
