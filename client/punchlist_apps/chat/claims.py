"""Which sentences of a model's text are not proved by the turn: changes that no event shows, counts that nobody read.

A claim that is missed is one in words that are not here. So whatever did change is never told in a model's words:
`receipts.sentences` tells it. This guards the turns without changes.
"""

import re
from collections.abc import Iterable
from typing import Any

from punchlist_apps.chat.receipts import Done

_CHANGED = (
    r"(?:created|added|made|put|completed|marked|checked|ticked|crossed|finished|closed|deleted|removed|erased|cleared"
    r"|emptied|renamed|retitled|updated|changed|edited|moved|reopened|started|set|scheduled|saved|cancelled"
    r"|canceled|undone|restored)"
)
_VERBS = r"(?:created?|adds?|completes?|marks?|deletes?|removes?|renames?|updates?|sets?)"
_SUBJECT = (
    r"(?:i|we|it|that|this|they|these|those|all|both|everything|the|your|task|tasks|#?\d+|\"[^\"]*\"|“[^“”]*”|'[^']*')"
)
_CLAIMS = (
    rf"^(?:(?:ok|okay|sure|done|great|alright|all right|got it|certainly|of course|yes|good news)[,.!:—– -]+)*"
    rf"(?:(?:successfully|just|now) )?{_CHANGED}\b",
    rf"\b(?:i|we)(?:'ve|'d| have| had)?(?: just| now| also| already| successfully| then)* {_CHANGED}\b",
    rf"\b{_SUBJECT}\b[^.?!]{{0,400}}?\b(?:has|have|is|are|was|were|been|got|'s|'ve)(?: now| just| already| successfully"
    rf"| all| been)* "
    rf"{_CHANGED}\b",
    r"^(?:all )?done\b",
    r"\b(?:it|that|this)(?:'s| is| has been) (?:all )?(?:done|taken care of|gone)\b",
    r"\b(?:task|tasks|list|it|they|everything)\b[^.?!]{0,400}\b(?:is|are) (?:now )?(?:gone|done|empty|complete)\b",
    rf"\bsuccessfully {_VERBS}",
    r"\bi(?:'m| am) (?:now )?(?:creating|adding|completing|marking|deleting|removing|renaming|updating)\b",
    r"\b(?:your|the) (?:task |to-?do )?list (?:now )?(?:has|contains|includes|is)\b",
)
_LOOSE = (
    r"\?$|^(?:do|does|did|can|could|would|will|shall|should|may|have you|are you|is there|what|which|how|why|if"
    r"|when|unless"
    r"|to|let me know)\b"
    r"|\b(?:not|n't|never|nothing|no task|no tasks|none|cannot|unable|can|could|would|will|want|wish|like|if|once"
    r"|before|after"
    r"|until|unless|please|say|tell|ask|asked|might|may|should|shall|need|needs|about to|going to|you (?:have |'ve )?"
    r"(?:added|completed|created|deleted|finished))\b|n't\b"
)
_COUNT = re.compile(
    r"\b(?:you(?:'ve| have| currently have| now have)?(?: got)?|there (?:are|is|were)|list (?:has|contains|holds))\s+"
    r"(?:(?:a total of|exactly|only|just|currently|now|still)\s+)?(?P<count>\d+|no|zero|one|two|three|four|five|six"
    r"|seven|eight"
    r"|nine|ten|eleven|twelve|any|several|some|many|a few)\s+(?:\w+\s+){0,2}?(?:tasks?|to-?dos?|items?|things|left"
    r"|remaining)\b",
    re.I,
)
_HERE = re.compile(
    r"\b(?:here(?:'s| is| are) (?:your|the) (?:\w+ )?(?:tasks?|list|to-?dos?)|your (?:\w+ )?(?:tasks"
    r"|to-?dos)(?: \w+)? (?:are|is)\b)"
    r"|^[^\S\n]*+(?:[-*•☐☑✓●]|\d+[.)])\s+(?:#\d+|\[[ x]\])",
    re.I | re.M,
)
_EMPTY = re.compile(
    r"\b(?:list|queue) is (?:now |currently |already )?empty\b|\bno (?:open |pending )?tasks (?:left|remaining)\b", re.I
)
_NUMBERS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"no": 0}
_ENDS = re.compile(r"(?<=[.!?])\s+|\n+|;\s+|,\s+but\s+|(?<![^\S\n])\s++but\s+", re.I)


def untrue(text: str, done: Iterable[Done]) -> list[str]:
    """The sentences of a text that claim what the calls of this turn don't show."""
    calls = list(done)
    changed = any(one.changes for one in calls)
    read = [one for one in calls if one.tool in ("list_todo_tasks", "get_todo_task") and not one.refused]
    lists = [_counts(one) for one in read if isinstance(one.data, list)]
    found: list[str] = []
    for sentence in (part.strip() for part in _ENDS.split(text)):
        bare = sentence.replace("’", "'").strip("*_`#> -")
        if not bare:
            continue
        if _is_claim(bare) and not changed and not _restates(bare, read):
            found.append(sentence)
        elif (not lists and (_HERE.search(sentence) or _EMPTY.search(bare))) or _is_miscounted(bare, lists):
            found.append(sentence)
        elif _EMPTY.search(bare) and lists and not any(0 in counts for counts in lists):
            found.append(sentence)
    return found


def _is_claim(sentence: str) -> bool:
    low = sentence.lower()
    if re.search(_LOOSE, low):
        return False
    return any(re.search(claim, low) for claim in _CLAIMS)


def _restates(sentence: str, read: list[Done]) -> bool:
    """Whether a sentence says what was read: "task 5 is completed", "your list has 3 tasks"."""
    low = sentence.lower()
    if (
        not read
        or re.search(rf"\b(?:i|we)(?:'ve| have)?\b.{{0,400}}{_CHANGED}", low)
        or re.match(rf"(?:\w+[,.!] )?{_CHANGED}\b", low)
    ):
        return False
    return re.search(r"\b(?:is|are|list (?:now )?(?:has|contains|includes|is))\b", low) is not None


def _counts(done: Done) -> set[int]:
    """Every number that a list proves: all of them, those that are open, completed, in progress."""
    rows: list[dict[str, Any]] = done.rows
    count = sum(int(row.get("omitted", 1)) for row in rows)
    by = {str(row.get("status", "")) for row in rows}
    completed = sum(1 for row in rows if row.get("completed"))
    return {count, completed, count - completed, *(sum(1 for row in rows if row.get("status") == one) for one in by)}


def _is_miscounted(sentence: str, lists: list[set[int]]) -> bool:
    for found in _COUNT.finditer(sentence):
        word = found["count"].lower()
        if word in ("any", "some", "several", "many", "a few"):
            if not lists and not re.search(_LOOSE, sentence.lower()):
                return True
            continue
        number = int(word) if word.isdecimal() else _NUMBERS[word]
        if not any(number in counts for counts in lists):
            return True
    return False
