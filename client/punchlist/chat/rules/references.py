"""Which tasks somebody means: by numbers, places in what was shown, "it", all of a kind, or words of the title.

Never a guess between two: where several fit equally, all of them are told.
"""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from punchlist.chat.rules.words import DONE, IRREGULAR, LIST, OPEN, ORDINALS, RUNNING, SAID_BEFORE, SMALL


class Item(NamedTuple):
    """A task as the rules see it."""

    id: str
    title: str
    status: str


class Meant(NamedTuple):
    """The tasks that are meant: `ids` if `sure`, else those between which nothing decides; `all` of the list.

    Where there is none, `missing` are the numbers that no task has, or `status` is the one that no task has.
    """

    ids: tuple[str, ...] = ()
    sure: bool = False
    all: bool = False
    missing: tuple[str, ...] = ()
    status: str = ""


NOBODY = Meant()
FLOOR, FLOOR_ONE = 0.7, 0.74
"""How well the words of a reference have to fit a title: several words, and a single one."""
MARGIN = 0.08
"""How much better than the next one the best title has to fit."""
SURE_OF_PAST = 0.9
_SIMILAR = 0.6
_MOST_WORDS = 24
_MANY = 200
"""In longer lists misspelt words are not looked for."""
_BEGINNING, _TYPED = 3, 4
"""So many letters a word needs to count as the beginning of another, or as a misspelt one."""

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


def refer(ref: str, items: list[Item], shown: tuple[str, ...], last: tuple[str, ...]) -> Meant:
    """The tasks that a reference means.

    Args:
        ref: What was said of them.
        items: The list.
        shown: The ids of what was shown last, in its order.
        last: The ids of what was spoken of last.
    """
    ref = ref.strip().strip(".!?,;:\"'")
    there = {item.id for item in items}
    if (found := _RANGE.fullmatch(ref)) is not None:
        first, end = int(found[1]), int(found[2])
        ids = tuple(item.id for item in items if first <= int(item.id) <= end)
        return Meant(ids, bool(ids))
    if _NUMBERS.fullmatch(ref) is not None:
        ids = tuple(dict.fromkeys(str(int(one)) for one in re.findall(r"\d+", ref)))
        missing = tuple(one for one in ids if one not in there)
        return Meant(missing=missing) if missing else Meant(ids, True)
    if (found := _PLACE.fullmatch(ref)) is not None:
        places = [one for one in shown if one in there] or [item.id for item in items]
        at = ORDINALS.get(found["place"].lower(), len(places))
        return Meant((places[at - 1],), True) if 0 < at <= len(places) else NOBODY
    if set(ref.lower().removeprefix("the ").split()) <= SAID_BEFORE and ref:
        ids = tuple(one for one in last if one in there)
        return Meant(ids, bool(ids))
    if (kind := _of_kind(ref, items)) is not None:
        return kind
    return by_words(ref, items)


def _of_kind(ref: str, items: list[Item]) -> Meant | None:
    found = _ALL.fullmatch(ref)
    if found is None:
        return None
    status = found["status"] or found["are"]
    if not status:
        if not re.match(r"all|every|each|the whole|(?:my|the|our) (?:tasks|to-?dos|items|things)", ref, re.I):
            return None
        return Meant(tuple(item.id for item in items), bool(items), True)
    if (
        found["status"]
        and not found["list"]
        and not re.match(r"all|every", ref, re.I)
        and not ref.lower().endswith(("tasks", "ones"))
    ):
        return None
    wanted = status_of(status)
    ids = tuple(item.id for item in items if wanted in (item.status, shown_status(item.status)))
    return Meant(ids, bool(ids), status="" if ids else wanted)


def status_of(word: str) -> str:
    """The status that a word asks for: `pending`, `completed`, `in_progress`, or `all` if there is none."""
    if not word:
        return "all"
    for status, words in (("in_progress", RUNNING), ("completed", DONE), ("pending", OPEN)):
        if re.fullmatch(words, word, re.I):
            return status
    return "all"


def shown_status(status: str) -> str:
    """The status of a task as filters see it: all that is not completed is pending."""
    return "completed" if status == "completed" else "pending"


def by_words(ref: str, items: list[Item], *, floor: float = 0.0) -> Meant:
    """The tasks whose titles fit these words best."""
    exact = tuple(item.id for item in items if item.title.casefold() == ref.casefold())
    if len(exact) == 1:
        return Meant(exact, True)
    asked = _words(ref)
    if not asked:
        return NOBODY
    near = len(items) <= _MANY
    floor = floor or (FLOOR_ONE if len(asked) == 1 else FLOOR)
    scored = sorted(
        ((score, item.id) for item in items if (score := _likeness(asked, _words(item.title), near=near)) >= floor),
        key=lambda one: -one[0],
    )
    best = tuple(name for score, name in scored if score > scored[0][0] - MARGIN)
    return Meant(best, len(best) == 1)


@lru_cache(4096)
def _words(text: str) -> tuple[str, ...]:
    words = [_stem(word) for word in _WORD.findall(text.casefold()) if word not in SMALL]
    return tuple(words[:_MOST_WORDS])


def _stem(word: str) -> str:
    word = IRREGULAR.get(word, word).removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word


def _likeness(asked: tuple[str, ...], title: tuple[str, ...], *, near: bool) -> float:
    """How well each asked word is found in a title: 1 if all are. Words of the title that nobody said count little."""
    if not title:
        return 0.0
    total = sum(max([_alike(word, other, near) for other in title]) for word in asked) / len(asked)
    return total - 0.04 * (1 - min(1.0, len(asked) / len(title))) if total else 0.0


@lru_cache(16_384)
def _alike(word: str, other: str, near: bool) -> float:
    if word == other:
        return 1.0
    short, long = sorted((word, other), key=len)
    if len(short) >= _BEGINNING and long.startswith(short):
        return 0.95
    if len(short) < _TYPED or word[0] != other[0] or not near:
        return 0.0
    common = sum(min(word.count(letter), other.count(letter)) for letter in set(word))
    if 2 * common / (len(word) + len(other)) < _SIMILAR:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return ratio if ratio >= _SIMILAR else 0.0
