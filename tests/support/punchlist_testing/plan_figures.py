"""Measures how completely Markdown plans are read: `python -m punchlist_testing.plan_figures FOLDER`.

For each file below the folder it counts the checkboxes, the dependencies that the text states, and the bytes that
change if a task is ticked. Checkboxes and dependencies are found by plain patterns, independently of the readers.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from punchlist_apps.files.importers import markdown
from punchlist_apps.files.importers.document import Document, decode
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.markdown_forms import BY_NAME, MarkdownForm, detect_form, get_status
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_apps.files.mirror.plan_bytes import replace_lines
from punchlist_apps.files.mirror.plan_text import SyncedEntry, get_title, parse_entries, rewrite_text

_MIN_EDGES = 0.99
"""Minimum share of the stated dependencies that must be read."""

_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[[ xX~/-]\]\\?\*?\s+(.*)")
_NAME = r"(?:T\d{3}[a-z]?|\d+\.\d+|[A-Z]{3,}-\d+)"
_ID = re.compile(rf"\**(?:Task )?({_NAME}|\d+)(?=[.:*) ])")
_STATED = re.compile(
    rf"(?:[Dd]epends? on|[Dd]ependencies:|[Bb]locked by)[*_ ]*((?:(?:, | and |[Tt]asks? )*{_NAME}(?:[-–]{_NAME})?)+)"
)
_ENDS = re.compile(rf"({_NAME})(?:[-–]({_NAME}))?")

Edge = tuple[int, int]


def find_boxes(text: str) -> dict[int, str]:
    """Return the text after each checkbox outside of code, by line."""
    boxes: dict[int, str] = {}
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= line.lstrip().startswith(("```", "~~~"))
        if not is_code and (match := _BOX.match(line)):
            boxes[number] = match[1]
    return boxes


def find_stated(text: str, boxes: dict[int, str]) -> set[Edge]:
    """Return the dependencies stated below each checkbox, as pairs of lines. Only ids that the file has once count."""
    names = {line: match[1] for line, title in boxes.items() if (match := _ID.match(f"{title} "))}
    unique = {name: line for line, name in names.items() if list(names.values()).count(name) == 1}
    stated: set[Edge] = set()
    task = 0
    for number, line in enumerate(text.split("\n"), 1):
        task = number if number in boxes else 0 if line.startswith("#") else task
        for match in _STATED.finditer(line) if task else ():
            for first, last in _ENDS.findall(match[1]):
                start, end = unique.get(first, 0), unique.get(last or first, 0)
                listed = [other for other in unique.values() if start <= other <= end] if start else []
                stated |= {(task, other) for other in listed if other != task}
    return stated


def find_read(draft: Draft) -> set[Edge]:
    line_of = {item.ref: item.line for item in draft.items}
    return {(item.line, line_of[other]) for item in draft.items for other in item.blocked_by}


def count_exact_ticks(data: bytes, document: Document, form: MarkdownForm) -> tuple[int, int]:
    """Tick each open task alone. Return the number of ticks, and of those that change one character of the file."""
    entries = parse_entries(document.text, form).entries
    names = [str(index) for index in range(len(entries))]
    ticks = exact = 0
    for index, entry in enumerate(entries):
        if entry.box != " " or form.has_markers or get_status(entry, form) == "completed":
            continue
        title = get_title(entry)
        synced = {names[index]: SyncedEntry(names[index], title, entry.box, "", title, "pending", "pending")}
        present = {
            name: {
                "title": title if name == names[index] else "",
                "status": "completed" if name == names[index] else "",
            }
            for name in names
        }
        lines = rewrite_text(document.text, names, synced, present, form)
        ticked = replace_lines(data, document.text.split("\n"), lines, document.name)
        changed = [(old, new) for old, new in zip(data, ticked, strict=False) if old != new]
        ticks += 1
        exact += len(data) == len(ticked) and changed == [(ord(" "), ord("x"))]
    return ticks, exact


def measure(data: bytes, name: str) -> Counter[str]:
    """Return the figures of one file.

    Raises:
        FormatError: The file can't be read.
    """
    document = decode(data, name)
    form = detect_form(document)
    draft = markdown.read_form(document, form)
    boxes = find_boxes(document.text)
    stated = find_stated(document.text, boxes)
    ticks, exact = count_exact_ticks(data, document, form)
    figures = Counter(files=1, boxes=len(boxes), stated=len(stated), ticks=ticks, exact=exact)
    figures["tasks"] = len(boxes.keys() & {item.line for item in draft.items})
    figures["edges"] = len(stated & find_read(draft))
    figures["all edges"] = len(find_read(draft))
    for remark in draft.skipped.values():
        figures[f"left out: {remark.text.partition(': ')[0]}"] += remark.count
    return figures


def main(folder: str) -> int:
    by_form: dict[str, Counter[str]] = {name: Counter() for name in BY_NAME}
    failed = 0
    for path in sorted(Path(folder).rglob("*.md")):
        data = path.read_bytes()
        try:
            figures = measure(data, str(path))
        except FormatError as error:
            print(error)
            failed += 1
            continue
        by_form[detect_form(decode(data, str(path))).name] += figures
        wrong = [
            f"{figures[got]} of {figures[all_of]} {all_of}"
            for got, all_of in (("tasks", "boxes"), ("edges", "stated"), ("exact", "ticks"))
            if figures[got] < figures[all_of]
        ]
        if wrong:
            print(f"{path}: {', '.join(wrong)}")
    total = sum(by_form.values(), Counter[str]())
    columns = ("files", "boxes", "tasks", "stated", "edges", "all edges", "ticks", "exact")
    print(f"{'form':10}", *(f"{column:>9}" for column in columns))
    for name, figures in (*by_form.items(), ("all", total)):
        if figures:
            print(f"{name:10}", *(f"{figures[column]:9,}" for column in columns))
    for kind, count in sorted(total.items()):
        if kind.startswith("left out: "):
            print(f"{kind}: {count:,}")
    is_whole = total["tasks"] == total["boxes"] and total["exact"] == total["ticks"] and not failed
    return 0 if is_whole and total["edges"] >= _MIN_EDGES * total["stated"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
