"""Detects untrue claims in a model's text: changes without an event, and counts that weren't returned by a tool.

Only claims that use the English phrases below are detected. Therefore real changes are always reported by
`receipts.format_results`, never in a model's words. This module checks turns without changes.
"""

import re
from collections.abc import Iterable
from typing import Any

from punchlist_apps.chat.receipts import ToolResult

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
_HEDGES = (
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
_LISTINGS = re.compile(
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
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+|;\s+|,\s+but\s+|(?<![^\S\n])\s++but\s+", re.I)


def find_untrue(text: str, results: Iterable[ToolResult]) -> list[str]:
    """Return the sentences of a text whose claims aren't supported by this turn's calls."""
    results = list(results)
    changed = any(result.changes for result in results)
    reads = [result for result in results if result.tool in ("list_todo_tasks", "get_todo_task") and not result.refused]
    counts = [_collect_counts(result) for result in reads if isinstance(result.data, list)]
    untrue: list[str] = []
    for sentence in (part.strip() for part in _SENTENCE_ENDS.split(text)):
        bare = sentence.replace("’", "'").strip("*_`#> -")
        if not bare:
            continue
        if _is_claim(bare) and not changed and not _restates(bare, reads):
            untrue.append(sentence)
        elif (not counts and (_LISTINGS.search(sentence) or _EMPTY.search(bare))) or _is_miscounted(bare, counts):
            untrue.append(sentence)
        elif _EMPTY.search(bare) and counts and not any(0 in numbers for numbers in counts):
            untrue.append(sentence)
    return untrue


def _is_claim(sentence: str) -> bool:
    low = sentence.lower()
    if re.search(_HEDGES, low):
        return False
    return any(re.search(claim, low) for claim in _CLAIMS)


def _restates(sentence: str, reads: list[ToolResult]) -> bool:
    """Return whether a sentence only restates what was read, as in "task 5 is completed" or "your list has 3 tasks"."""
    low = sentence.lower()
    if (
        not reads
        or re.search(rf"\b(?:i|we)(?:'ve| have)?\b.{{0,400}}{_CHANGED}", low)
        or re.match(rf"(?:\w+[,.!] )?{_CHANGED}\b", low)
    ):
        return False
    return re.search(r"\b(?:is|are|list (?:now )?(?:has|contains|includes|is))\b", low) is not None


def _collect_counts(result: ToolResult) -> set[int]:
    """Return the task counts that a result confirms: total, open, completed, and by status."""
    rows: list[dict[str, Any]] = result.rows
    count = sum(int(row.get("omitted", 1)) for row in rows)
    statuses = {str(row.get("status", "")) for row in rows}
    completed = sum(1 for row in rows if row.get("completed"))
    by_status = (sum(1 for row in rows if row.get("status") == status) for status in statuses)
    return {count, completed, count - completed, *by_status}


def _is_miscounted(sentence: str, counts: list[set[int]]) -> bool:
    for match in _COUNT.finditer(sentence):
        word = match["count"].lower()
        if word in ("any", "some", "several", "many", "a few"):
            if not counts and not re.search(_HEDGES, sentence.lower()):
                return True
            continue
        number = int(word) if word.isdecimal() else _NUMBERS[word]
        if not any(number in numbers for numbers in counts):
            return True
    return False
