"""Resolves references to tasks: numbers, ordinals in the last list shown, "it", all tasks of one kind, or words of a
title.

Never guesses: if several titles fit equally, all are returned, and a title that is only similar is not `sure`.
"""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from punchlist_apps.chat.rules.words import (
    BLOCKED,
    DONE,
    FAILED,
    IRREGULAR,
    LIST,
    OPEN,
    ORDINALS,
    PRONOUNS,
    RUNNING,
    STOP_WORDS,
)


class Item(NamedTuple):
    """The members of a task that the rules use."""

    id: str
    title: str
    status: str


class Match(NamedTuple):
    """The tasks that a reference resolves to.

    Attributes:
        sure: Whether the match is certain. If not, several ids are equally good matches, or a single id is a task whose
            title is only similar.
        all: Whether the whole list was named.
        missing: Numbers that don't belong to a task.
        status: A status that no task has.
    """

    ids: tuple[str, ...] = ()
    sure: bool = False
    all: bool = False
    missing: tuple[str, ...] = ()
    status: str = ""


NO_MATCH = Match()
MIN_SCORE, MIN_SCORE_ONE_WORD = 0.7, 0.74
"""Minimum score of a matching title, for references of several words and of one word."""
MIN_LEAD = 0.08
"""Minimum lead of the best title's score over the second-best."""
_SLIP_SCORE = 0.95
"""Score of a word that is certainly a misspelling. A reference with at least this score is sure."""
_MIN_SIMILARITY = 0.6
_MAX_WORDS = 24
"""Maximum length of a reference, in words. Longer titles are truncated for comparison."""
_MAX_TASKS_FOR_TYPOS = 200
"""Maximum number of tasks against which misspelled words are matched, because matching is slow."""
_MIN_TYPO_LENGTH, _MIN_SLIP_LENGTH = 4, 6
"""Minimum lengths, in letters, of a word that may be misspelled, and of a word that is certainly misspelled if it is
off by a single slip."""
_CUT = "~"
"""Marks a stem whose ending was removed, such as "settl~" from "settled"."""

_NUMBER = r"(?:(?:tasks?|to-?dos?|items?|numbers?|no\.?|nr\.?)\s+)*(?:#\s*)?(\d{1,15})"
_NUMBERS = re.compile(rf"(?:the )?{_NUMBER}(?:(?:\s*,\s*(?:and )?|\s+and\s+|\s*&\s*|\s+){_NUMBER})*", re.I)
_RANGE = re.compile(rf"(?:the )?{_NUMBER}\s*(?:to|-|–|through|until)\s*#?(\d{{1,15}})", re.I)
_PLACE = re.compile(rf"(?:the |my )?(?P<place>last|final|{'|'.join(ORDINALS)})(?: (?:one|task|item|to-?do))?", re.I)
_ALL = re.compile(
    rf"(?:all|every|each|everything|the whole list|(?:all )?(?:of )?(?:the |my |our )?(?:all )?(?:of )?(?:the |my "
    rf"|our )?"
    rf"(?P<status>{OPEN}|{DONE}|{RUNNING})?(?: (?P<list>{LIST}|ones))?)(?: (?:of )?(?:the |my |our )?{LIST}"
    rf"| of them| the ones)?(?: (?:that|which)(?:'s| is| are) (?P<are>{OPEN}|{DONE}|{RUNNING}))?",
    re.I,
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def resolve(ref: str, items: list[Item], shown: tuple[str, ...], last: tuple[str, ...]) -> Match:
    """Resolve a reference. `shown` and `last` are the ids of the tasks shown last and mentioned last."""
    ref = ref.strip().strip(".!?,;:\"'")
    existing = {item.id for item in items}
    if (match := _RANGE.fullmatch(ref)) is not None:
        first, end = int(match[1]), int(match[2])
        ids = tuple(item.id for item in items if first <= int(item.id) <= end)
        return Match(ids, bool(ids))
    if _NUMBERS.fullmatch(ref) is not None:
        ids = tuple(dict.fromkeys(str(int(number)) for number in re.findall(r"\d+", ref)))
        missing = tuple(id for id in ids if id not in existing)
        return Match(missing=missing) if missing else Match(ids, True)
    if (match := _PLACE.fullmatch(ref)) is not None:
        listed = [id for id in shown if id in existing] or [item.id for item in items]
        place = ORDINALS.get(match["place"].lower(), len(listed))
        return Match((listed[place - 1],), True) if 0 < place <= len(listed) else NO_MATCH
    if set(ref.lower().removeprefix("the ").split()) <= PRONOUNS and ref:
        ids = tuple(id for id in last if id in existing)
        return Match(ids, bool(ids))
    if (by_kind := _match_kind(ref, items)) is not None:
        return by_kind
    return match_words(ref, items)


def _match_kind(ref: str, items: list[Item]) -> Match | None:
    match = _ALL.fullmatch(ref)
    if match is None:
        return None
    status = match["status"] or match["are"]
    if not status:
        if not re.match(r"all|every|each|the whole|(?:my|the|our) (?:tasks|to-?dos|items|things)", ref, re.I):
            return None
        return Match(tuple(item.id for item in items), bool(items), True)
    if (
        match["status"]
        and not match["list"]
        and not re.match(r"all|every", ref, re.I)
        and not ref.lower().endswith(("tasks", "ones"))
    ):
        return None
    target = status_of(status)
    ids = tuple(item.id for item in items if target in (item.status, _filter_status(item.status)))
    return Match(ids, bool(ids), status="" if ids else target)


_STATUS_WORDS = {"in_progress": RUNNING, "completed": DONE, "pending": OPEN, "failed": FAILED, "blocked": BLOCKED}


def status_of(word: str) -> str:
    if not word:
        return "all"
    for status, words in _STATUS_WORDS.items():
        if re.fullmatch(words, word, re.I):
            return status
    return "all"


def _filter_status(status: str) -> str:
    """Return the filter that includes tasks with this status. Any status other than completed counts as pending."""
    return "completed" if status == "completed" else "pending"


def match_words(ref: str, items: list[Item]) -> Match:
    exact = tuple(item.id for item in items if item.title.casefold() == ref.casefold())
    if len(exact) == 1:
        return Match(exact, True)
    stems = _stem_words(ref)
    if not 0 < len(stems) <= _MAX_WORDS:
        return NO_MATCH
    typos = len(items) <= _MAX_TASKS_FOR_TYPOS
    min_score = MIN_SCORE_ONE_WORD if len(stems) == 1 else MIN_SCORE
    scores = [(*_score_title(stems, _stem_words(item.title), typos=typos), item.id) for item in items]
    ranked = sorted((entry for entry in scores if entry[0] >= min_score), key=lambda entry: -entry[0])
    best = [entry for entry in ranked if entry[0] > ranked[0][0] - MIN_LEAD]
    return Match(tuple(id for _, _, id in best), len(best) == 1 and best[0][1] >= _SLIP_SCORE)


def has_same_words(title: str, text: str) -> bool:
    """Return whether a title and another text contain the same words, in any order and form."""
    pairs = ((_stem_words(title), _stem_words(text)), (_stem_words(text), _stem_words(title)))
    return all(left and all(any(_is_same(word, other) for other in right) for word in left) for left, right in pairs)


@lru_cache(4096)
def _stem_words(text: str) -> tuple[str, ...]:
    stems = [_stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]
    return tuple(stems[: _MAX_WORDS + 1])


def _stem(word: str) -> str:
    word = IRREGULAR.get(word, word).removesuffix("'s")
    for ending, cut in (("ing", _CUT), ("ed", _CUT), ("es", _CUT), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + cut
    return word


def _score_title(stems: tuple[str, ...], title: tuple[str, ...], *, typos: bool) -> tuple[float, float]:
    """Return the average and the worst score of the reference's words in a title, each from 0 to 1.

    Words of the title that are missing from the reference lower the average slightly.
    """
    if not title:
        return 0.0, 0.0
    scores = [max([_score_word(word, other, typos) for other in title]) for word in stems]
    average = sum(scores) / len(stems)
    return average - 0.04 * (1 - min(1.0, len(stems) / len(title))), min(scores)


def _is_same(word: str, other: str) -> bool:
    """Return whether two stems belong to the same word, such as "settl~" and "settle", or "plann~" and "plan"."""
    for cut, whole in ((word, other), (other, word)):
        root = cut.removesuffix(_CUT)
        if root != cut and whole in (root, f"{root}e", root[:-1] if root[-1:] == root[-2:-1] else root):
            return True
    return word == other


@lru_cache(16_384)
def _score_word(word: str, other: str, typos: bool) -> float:
    if _is_same(word, other):
        return 1.0
    if min(len(word), len(other)) < _MIN_TYPO_LENGTH or word[0] != other[0] or not typos:
        return 0.0
    if _has_slip(word, other):
        return _SLIP_SCORE
    common = sum(min(word.count(letter), other.count(letter)) for letter in set(word))
    if 2 * common / (len(word) + len(other)) < _MIN_SIMILARITY:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return min(ratio, _SLIP_SCORE - 0.01) if ratio >= _MIN_SIMILARITY else 0.0


def _has_slip(word: str, other: str) -> bool:
    """Return whether two long words differ only by a missing letter or two swapped letters."""
    short, long = sorted((word, other), key=len)
    if len(short) < _MIN_SLIP_LENGTH:
        return False
    if len(short) == len(long):
        first, *more = [index for index in range(len(long)) if short[index] != long[index]]
        return more == [first + 1] and short[first : first + 2] == long[first : first + 2][::-1]
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))
