"""Markdown check lists: nesting is `parent`, the box is the status, quoted or indented text below is the description.

Reads `-`, `*`, `+` and numbered items with or without a box; headings and paragraphs between the items are left out.
What a check list has no words for (priority, owner, edges, …) is written into an HTML comment at the item's end,
so that a written list reads back whole.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from punchlist.cli.failure import FormatError
from punchlist.cli.formats.document import Document, Plan, checked
from punchlist.text import one_line

BOXES = {" ": "pending", "x": "completed", "X": "completed", "/": "in_progress", "=": "paused", "!": "failed"}
_BOX_OF = {status: box for box, status in BOXES.items() if box != "X"}
_ITEM = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[(?P<box>[^\]]?)\](?:[ \t]+|$))?(?P<title>.*)$")
_RULE = re.compile(r"^[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_EXTRAS = re.compile(r"[ \t]*<!-- punchlist: (?P<json>\{[^<]*\}) -->[ \t]*$")
_SAME = ("priority", "owner", "active_form", "metadata", "result_summary", "fail_reason", "blocked_by")
_TAB = 4


class _Item(NamedTuple):
    indent: int
    line: int
    members: dict[str, Any]
    description: list[str]


def parse(document: Document) -> Plan:
    """The tasks of a check list, in order.

    Raises:
        FormatError: An unknown box, an empty or impossible title, a broken comment, an open code fence, or no items.
    """
    items: list[_Item] = []
    stack: list[_Item] = []
    for number, line in _outside_fences(document):
        match = None if _RULE.match(line) else _ITEM.match(line)
        if match is None:
            _continue(stack, line)
            continue
        item = _item(match, number, document.name)
        while stack and stack[-1].indent >= item.indent:
            stack.pop()
        if stack:
            item.members["parent"] = stack[-1].members["ref"]
        stack.append(item)
        items.append(item)
    if not items:
        raise FormatError("no list items found", document.name)
    return _finish(items, document.name)


def write(tasks: Iterable[dict[str, Any]], depths: Sequence[int]) -> str:
    """Tasks as a check list that `parse` reads back; `depths` are their levels of nesting."""
    lines: list[str] = []
    for task, depth in zip(tasks, depths, strict=True):
        indent = "  " * depth
        title = str(task["title"])
        extras = _extras(task, title)
        lines.append(f"{indent}- [{_BOX_OF[str(task.get('status', 'pending'))]}] {one_line(title)}{extras}")
        description = str(task.get("description", ""))
        if description and "\r" not in description:
            lines.extend(
                f"{indent}  > {line}".rstrip(" ") if not line else f"{indent}  > {line}"
                for line in description.split("\n")
            )
    return "".join(f"{line}\n" for line in lines)


def _outside_fences(document: Document) -> Iterator[tuple[int, str]]:
    fence, opened = "", 0
    for number, raw in enumerate(document.text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.removesuffix("\r")
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        elif match:
            fence, opened = match[1], number
        else:
            yield number, line
    if fence:
        raise FormatError("a code fence is opened here and never closed", document.name, opened)


def _item(match: re.Match[str], number: int, name: str) -> _Item:
    title = match["title"]
    box = match["box"]
    if box is not None and (box or " ") not in BOXES:
        known = " ".join(f"[{one}]" for one in BOXES if one != "X")
        raise FormatError(f"unknown box [{box}]; known are {known}", name, number)
    members: dict[str, Any] = {"ref": f"line-{number}", "status": BOXES[box or " "]}
    found = _EXTRAS.search(title)
    if found:
        title = title[: found.start()]
        members |= _read_extras(found["json"], name, number)
    members.setdefault("title", title.strip(" \t"))
    if not members["title"]:
        raise FormatError("an item without a title", name, number)
    indent = len(match["indent"].expandtabs(_TAB))
    return _Item(indent, number, members, [])


def _continue(stack: list[_Item], line: str) -> None:
    """Take a line that is no item: text of the item above when it is indented deeper, the end of all items when not."""
    text = line.strip(" \t")
    if not stack:
        return
    if not text:
        if stack[-1].description and not stack[-1].description[-1].startswith(">"):
            stack[-1].description.append("")
        return
    indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip(" "))
    while stack and stack[-1].indent >= indent:
        stack.pop()
    if stack:
        stack[-1].description.append(line.lstrip(" \t") if text.startswith(">") else text)


def _finish(items: list[_Item], name: str) -> Plan:
    plan: Plan = []
    refs: dict[str, int] = {}
    for item in items:
        while item.description and not item.description[-1]:
            item.description.pop()  # blank lines below indented text are not part of it
        if item.description and "description" not in item.members:
            item.members["description"] = "\n".join(_unquoted(line) for line in item.description)
        plan.append(checked(item.members, name, line=item.line))
        first = refs.setdefault(plan[-1]["ref"], item.line)
        if first != item.line:
            raise FormatError(f"ref {item.members['ref']} is already used in line {first}", name, item.line)
    for item, task in zip(items, plan, strict=True):
        for blocker in task.get("blocked_by", ()):
            if blocker not in refs:
                raise FormatError(f"blocked by {blocker}, which is not in this file", name, item.line)
    return plan


def _unquoted(line: str) -> str:
    return line[1:].removeprefix(" ") if line.startswith(">") else line


def _extras(task: dict[str, Any], title: str) -> str:
    members = {key: task[key] for key in _SAME if task.get(key) not in (None, "", [], (), {}, "normal")}
    if one_line(title) != title or "<!--" in title:
        members["title"] = title
    if "\r" in str(task.get("description", "")):
        members["description"] = task["description"]
    if "id" in task and (members.get("blocked_by") or task.get("blocks")):
        members["ref"] = task["id"]
    if not members:
        return ""
    text = json.dumps(members, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return f" <!-- punchlist: {text} -->"


def _read_extras(text: str, name: str, line: int) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise FormatError(f"the punchlist comment is not JSON: {error}", name, line) from error
    allowed = {*_SAME, "title", "description", "ref"}
    members = cast("dict[str, Any]", value)
    if unknown := sorted(set(members) - allowed):
        raise FormatError(f"the punchlist comment has an unknown member: {unknown[0]}", name, line)
    return members
