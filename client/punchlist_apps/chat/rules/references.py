"""Which tasks a reference means: by numbers, places in what was shown, "it", all of a kind, or words of the title.

Never a guess: where several titles fit equally all of them are returned, and one that only resembles is not `sure`.
"""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from punchlist_apps.chat.rules.words import DONE, IRREGULAR, LIST, OPEN, ORDINALS, RUNNING, SAID_BEFORE, SMALL


class Item(NamedTuple):
    """A task as the rules see it."""

    id: str
    title: str
    status: str


class Meant(NamedTuple):
    """The tasks that are meant: `ids` if `sure`; `all` of the list.

    Without `sure`, several ids are those between which nothing decides, and a single one is the task whose title only
    resembles the words. Without ids, `missing` are the numbers that no task has, or `status` is the one that no task
    has.
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
_SLIP = 0.95
"""How well a word fits that is surely another one misspelt: from here on a reference leaves no doubt."""
_SIMILAR = 0.6
_MOST_WORDS = 24
"""Longest reference, and how much of a title is compared, in words."""
_MANY = 200
"""In longer lists misspelt words are not looked for."""
_TYPED, _SURELY_TYPED = 4, 6
"""Fewest letters of a word that may be another one misspelt, and that surely is if it only has a slip."""
_CUT = "~"
"""Ends a stem that lost its ending: "settled" and "settle" have the same one."""

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
    """Return the tasks that a reference means. `shown` and `last` are the ids that were shown and spoken of last."""
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
    if not word:
        return "all"
    for status, words in (("in_progress", RUNNING), ("completed", DONE), ("pending", OPEN)):
        if re.fullmatch(words, word, re.I):
            return status
    return "all"


def shown_status(status: str) -> str:
    """The status of a task as filters see it: all that is not completed is pending."""
    return "completed" if status == "completed" else "pending"


def by_words(ref: str, items: list[Item]) -> Meant:
    exact = tuple(item.id for item in items if item.title.casefold() == ref.casefold())
    if len(exact) == 1:
        return Meant(exact, True)
    asked = _words(ref)
    if not 0 < len(asked) <= _MOST_WORDS:
        return NOBODY
    near = len(items) <= _MANY
    floor = FLOOR_ONE if len(asked) == 1 else FLOOR
    fits = [(*_likeness(asked, _words(item.title), near=near), item.id) for item in items]
    scored = sorted((one for one in fits if one[0] >= floor), key=lambda one: -one[0])
    best = [one for one in scored if one[0] > scored[0][0] - MARGIN]
    return Meant(tuple(name for _, _, name in best), len(best) == 1 and best[0][1] >= _SLIP)


def says_just(title: str, text: str) -> bool:
    """Whether a title and a text have the same words, in any order and form."""
    pairs = ((_words(title), _words(text)), (_words(text), _words(title)))
    return all(one and all(any(_is_same(word, other) for other in two) for word in one) for one, two in pairs)


@lru_cache(4096)
def _words(text: str) -> tuple[str, ...]:
    words = [_stem(word) for word in _WORD.findall(text.casefold()) if word not in SMALL]
    return tuple(words[: _MOST_WORDS + 1])


def _stem(word: str) -> str:
    word = IRREGULAR.get(word, word).removesuffix("'s")
    for ending, cut in (("ing", _CUT), ("ed", _CUT), ("es", _CUT), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + cut
    return word


def _likeness(asked: tuple[str, ...], title: tuple[str, ...], *, near: bool) -> tuple[float, float]:
    """How well the asked words are found in a title, on the average and the worst of them: 1 if all are.

    Words of the title that nobody said count little.
    """
    if not title:
        return 0.0, 0.0
    found = [max([_alike(word, other, near) for other in title]) for word in asked]
    total = sum(found) / len(asked)
    return total - 0.04 * (1 - min(1.0, len(asked) / len(title))), min(found)


def _is_same(word: str, other: str) -> bool:
    """Whether two stems are of one word: "settl~" of "settled" is "settle", and "plann~" is "plan"."""
    for cut, whole in ((word, other), (other, word)):
        root = cut.removesuffix(_CUT)
        if root != cut and whole in (root, f"{root}e", root[:-1] if root[-1:] == root[-2:-1] else root):
            return True
    return word == other


@lru_cache(16_384)
def _alike(word: str, other: str, near: bool) -> float:
    if _is_same(word, other):
        return 1.0
    if min(len(word), len(other)) < _TYPED or word[0] != other[0] or not near:
        return 0.0
    if _has_slip(word, other):
        return _SLIP
    common = sum(min(word.count(letter), other.count(letter)) for letter in set(word))
    if 2 * common / (len(word) + len(other)) < _SIMILAR:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return min(ratio, _SLIP - 0.01) if ratio >= _SIMILAR else 0.0


def _has_slip(word: str, other: str) -> bool:
    """Whether one long word is the other with a letter left out or two letters swapped."""
    short, long = sorted((word, other), key=len)
    if len(short) < _SURELY_TYPED:
        return False
    if len(short) == len(long):
        first, *more = [at for at in range(len(long)) if short[at] != long[at]]
        return more == [first + 1] and short[first : first + 2] == long[first : first + 2][::-1]
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
