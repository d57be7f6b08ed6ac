"""todo.txt: one task per line, `x 2026-01-02 (A) 2026-01-01 Call mom +family @phone due:2026-01-09`."""

import re
from collections.abc import Sequence

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft

_DATE = r"\d{4}-\d{1,2}-\d{1,2}"
_HEAD = re.compile(rf"^(?:(x|X) (?:({_DATE}) )?)?(?:\(([A-Z])\) )?(?:({_DATE}) )?(.*)$")
_PAIR = re.compile(r"(?<!\S)([A-Za-z][\w-]*):(?!//)(\S+)")
_WORD = re.compile(r"(?<!\S)[+@]\S*\w\S*")
_BULLET = re.compile(r"^[-*+] ")
_BOX = re.compile(r"(?<!\s)\s++\[([ xX]?)\]$")
"""A checkbox at the end of a line, which some programs use for completed tasks."""

_ALPHANUMERIC = re.compile(r"\w")
_PRIORITIES = {"A": "urgent", "B": "high", "C": "normal"}
_KNOWN = frozenset(("due", "t", "pri", "id", "p", "dep", "rec", "h"))
_LIKE = re.compile(rf"^(?:x {_DATE}|\([A-Z]\) )|\s\+\w|\s@\w+(?:\s|$)|\s(?:due|t|rec|pri):\S", re.MULTILINE)


def _remove_known_pair(pair: re.Match[str]) -> str:
    return "" if pair[1] in _KNOWN else pair[0]


def _remove_trailing_labels(title: str) -> str:
    """Return a title without the projects and contexts at its end."""
    words = title.split()
    while words and words[-1].startswith(("+", "@")) and _ALPHANUMERIC.search(words[-1]):
        words.pop()
    return " ".join(words)


def is_todotxt(text: str) -> bool:
    """Return whether at least a quarter of the lines have syntax specific to this format."""
    return len(_LIKE.findall(text)) * 4 > text.count("\n")


def read(documents: Sequence[Document]) -> Draft:
    """Read the tasks in a file. `+project` and `@context` become labels that keep the `+` or `@`."""
    document = documents[0]
    draft = Draft("todotxt", document.name)
    for line, raw in enumerate(document.text.split("\n"), 1):
        text = raw.strip()
        if not text or text.startswith("#") or not _ALPHANUMERIC.search(text):
            if text:
                draft.skip("lines that begin with #, or without a word", line)
            continue
        box = _BOX.search(text)
        match = _HEAD.match(_BULLET.sub("", text[: box.start()] if box else text))
        done, rest = (match[1], match[5]) if match else ("", text)
        done = done or (box is not None and box[1].lower() == "x")
        letter = match[3] if match else ""
        pairs = dict(_PAIR.findall(rest))
        for name in pairs.keys() & {"rec", "h"}:
            draft.skip(f"`{name}:`", line)
        title = _PAIR.sub(_remove_known_pair, rest)
        letter = letter or pairs.get("pri", "")
        draft.add(
            _remove_trailing_labels(title) or title,
            key=pairs.get("id", ""),
            line=line,
            status="completed" if done else "pending",
            priority=_PRIORITIES.get(letter, "low" if letter else "normal"),
            labels=_WORD.findall(rest),
            due=words.parse_when(draft, pairs.get("due"), "due", line),
            not_before=words.parse_when(draft, pairs.get("t"), "t", line),
            parent=pairs.get("p", ""),
            blocked_by=[ref for ref in pairs.get("dep", "").split(",") if ref],
        )
    return draft.finish()
