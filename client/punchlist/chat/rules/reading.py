"""From a sentence and what was said before to an intent. Pure: no clock, no list but the one that is given.

Whatever is not sure changes nothing: it becomes `clarify` (which task, which title) or `talk`.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from punchlist.chat.rules import words
from punchlist.chat.rules.phrases import PHRASES, Phrase
from punchlist.chat.rules.references import SURE_OF_PAST, Item, Meant, by_words, refer, status_of

MOST = 2_000
"""So many characters of a message are read."""


class Intent(msgspec.Struct, frozen=True):
    """What somebody wants: `name`, and what goes with it.

    `name` is create, get, list, update, priority, complete, reopen, start, delete, undo, help, talk, clarify (`need`
    says what is missing: title, task, which; `missing` and `status` say why there is no such task), multi (`parts`), or
    yes, no, unsure: the answer to an open question.
    `confirmed` are the words by which the same message agrees to what would be asked.
    """

    name: str
    ids: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    title: str = ""
    status: str = ""
    priority: str = ""
    need: str = ""
    confirmed: str = ""
    all: bool = False
    missing: tuple[str, ...] = ()
    parts: tuple["Intent", ...] = ()


class Context(msgspec.Struct, frozen=True):
    """What was said before: ids shown last in their order, ids spoken of last, and the open question's intent."""

    shown: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    pending: Intent | None = None


NO_CONTEXT = Context()
TALK = Intent("talk")
CHANGING = frozenset({"create", "update", "priority", "complete", "reopen", "start", "delete"})
ASKING = frozenset({"update", "delete"})
"""Intents that are asked about before they are done."""

_STRONG = re.compile(
    r"(?:please |then )*(?:add|create|show|list|display|complete|finish|check|tick|mark|delete|remove|rename|change"
    r"|reopen"
    r"|start|done with|remind me)\b",
    re.I,
)
_JOINT = re.compile(r"\s?(?:;|,?\s(?:and )?then\s|,then\s|,?\sand\s|,|\.\s|\n)\s?(?=\w)", re.I)
_BULLET = re.compile(r"^\s*(?:(?:[-*•·–]|\d{1,2}[.)])\s+|add\s+(?=\S))", re.I)
_QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*'(?!\w))""")
_PAST = re.compile(r"(?:(?:i|we)(?:'ve| have)?(?: just| already| also)? )?(?P<past>\w+)(?P<rest> .+)", re.I)


def interpret(text: str, items: list[Item], said: Context = NO_CONTEXT) -> Intent:
    """What a message asks for.

    Args:
        text: The message; only its first `MOST` characters count.
        items: The list in its order.
        said: What was said before.
    """
    text = _plain(text)
    if said.pending is not None and (answer := _answer(text, items, said)) is not None:
        return answer
    intent = _several(text, items, said) or _one(text, items, said)
    if said.pending is not None and intent.name in ("talk", "clarify"):
        return Intent("unsure")
    return intent


def _plain(text: str) -> str:
    text = text[:MOST].translate(_MARKS).strip()
    text = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
    before = ""
    while before != text:
        before = text
        text = _polite().sub("", text, count=1)
        text = _thanks().sub("", text, count=1) or text
    return text


_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "\t": " "})


@lru_cache(1)
def _polite() -> re.Pattern[str]:
    return re.compile(rf"^(?:{words.POLITE})(?=.*\w)", re.I | re.S)


@lru_cache(1)
def _thanks() -> re.Pattern[str]:
    return re.compile(rf"{words.THANKS}$", re.I)


def _answer(text: str, items: list[Item], said: Context) -> Intent | None:
    """Yes or no to the open question, as far as the words say nothing else."""
    bare = text.lower()
    if re.fullmatch(words.NEITHER, bare):
        return Intent("unsure")
    if re.fullmatch(words.YES, bare):
        return Intent("yes")
    if re.fullmatch(words.NO, bare):
        return Intent("no")
    found = re.match(r"(?:yes|yep|yeah|sure|ok)[ ,.!]+(?P<rest>.+)", bare)
    if found is not None and said.pending is not None:  # "yes, delete task 3", if that is what was asked
        again = _one(found["rest"], items, Context(said.shown, said.last))
        if (again.name, set(again.ids)) == (said.pending.name, set(said.pending.ids)) and again.title in (
            "",
            said.pending.title.lower(),
        ):
            return Intent("yes")
        return Intent("unsure")
    return None


def _several(text: str, items: list[Item], said: Context) -> Intent | None:
    """Two or more requests in one message; a joint inside quotes or inside a title is none."""
    hidden = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    for joint in _JOINT.finditer(hidden):
        left, right = text[: joint.start()].strip(), text[joint.end() :].strip()
        if not left or not _STRONG.match(right):
            continue
        second = interpret(right, items, Context(said.shown, said.last))
        if second.name in ("talk", "clarify", "help", "undo"):
            continue
        first = _one(left, items, said)
        if first.name in ("talk", "clarify", "help", "undo") or (first.name == second.name == "create"):
            continue
        return Intent("multi", parts=(first, *(second.parts if second.name == "multi" else (second,))))
    return None


@lru_cache(512)
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.I | re.S)


def _one(text: str, items: list[Item], said: Context) -> Intent:
    """One request. Words of agreement at its end belong to it only where there is something to agree to."""
    sure = _pattern(words.SURE + "$").search(text)
    if sure is not None and sure.start():
        intent = _row(text[: sure.start()], items, said)
        if intent.name in ASKING:
            return msgspec.structs.replace(intent, confirmed=sure[0].strip(" ,.;!-"))
        whole = _row(text, items, said)
        return intent if intent.need and whole.need else whole
    return _row(text, items, said)


def _row(text: str, items: list[Item], said: Context) -> Intent:
    """The first row of the table that fits decides."""
    bare = text.rstrip(" ?!.,") or text
    for phrase in PHRASES:
        found = _pattern(phrase.pattern).fullmatch(bare)
        if found is not None and (intent := _of(phrase, found.groupdict(), items, said)) is not None:
            return intent
    return _in_the_past(bare, items) or TALK


def _of(phrase: Phrase, slots: dict[str, str | None], items: list[Item], said: Context) -> Intent | None:
    given = {name: value for name, value in slots.items() if value} | dict(phrase.said)
    make = _MAKERS.get(phrase.intent)
    if make is not None:
        return make(given, items, said)
    if "ref" not in given:
        return Intent("clarify", need="task")
    meant = refer(given["ref"], items, said.shown, said.last)
    if phrase.strict and not (meant.sure and re.search(r"\d", given["ref"]) and meant.ids):
        return None
    if phrase.intent == "complete" and len(meant.ids) > 1 and not re.search(r"\d", given["ref"]):
        open_ = {item.id for item in items if item.status not in ("completed", "failed")}
        ids = tuple(one for one in meant.ids if one in open_)
        meant = meant._replace(ids=ids, all=False, status="" if ids else "pending")
    return _about(phrase.intent, meant, given)


def _about(name: str, meant: Meant, given: dict[str, str]) -> Intent:
    """What is to be done with the tasks that are meant, if that is sure."""
    if not meant.sure or not meant.ids:
        need = "which" if len(meant.ids) > 1 else "task"
        return Intent("clarify", ids=meant.ids, need=need, missing=meant.missing, status=meant.status)
    if name in ("update", "get") and len(meant.ids) > 1:
        return Intent("clarify", ids=meant.ids, need="which")
    if name == "update":
        title = _title(given.get("title", ""))
        return Intent("update", meant.ids, title=title) if title else Intent("clarify", meant.ids, need="title")
    if name == "priority":
        word = given["priority"].lower()
        return Intent("priority", meant.ids, priority=words.PRIORITIES.get(word, word))
    return Intent(name, meant.ids, all=meant.all and name == "delete")


def _created(given: dict[str, str], _items: list[Item], _said: Context) -> Intent:
    titles = _titles(given.get("title", ""))
    if not titles:
        return Intent("clarify", need="title")
    word = given.get("priority", "").lower()
    return Intent("create", titles=titles, priority=words.PRIORITIES.get(word, word))


def _wished(given: dict[str, str], items: list[Item], said: Context) -> Intent:
    """ "I need to …": a request of its own where it names a task by number or asks for the list, else a new task."""
    inner = _one(given["title"], items, said)
    if inner.name == "list" or (inner.ids and re.search(r"#?\d", given["title"]) and inner.name in CHANGING):
        return inner
    return _created(given, items, said)


def _listed(given: dict[str, str], _items: list[Item], _said: Context) -> Intent:
    status = given.get("status") or given.get("later") or ""
    return Intent("list", status=status if status in ("pending", "completed", "in_progress") else status_of(status))


_MAKERS: dict[str, Callable[[dict[str, str], list[Item], Context], Intent]] = {
    "create": _created,
    "wish": _wished,
    "list": _listed,
    "talk": lambda _given, _items, _said: TALK,
    "help": lambda _given, _items, _said: Intent("help"),
    "undo": lambda _given, _items, _said: Intent("undo"),
}
"""Intents that are about no task that is there."""


def _titles(text: str) -> tuple[str, ...]:
    """The titles in what is to be added: lines, parts between semicolons, or parts that begin with the same word."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 or ";" in _QUOTED.sub("", text):
        parts = [part for line in lines for part in (line.split(";") if '"' not in line else [line])]
        return tuple(title for part in parts if (title := _title(_BULLET.sub("", part))))
    if not _QUOTED.search(text):
        parts = [part.strip() for part in re.split(r",\s?(?:and\s)?|\sand\s", text) if part.strip()]
        firsts = {part.split()[0].lower() for part in parts}
        if len(parts) > 1 and len(firsts) == 1 and all(len(part.split()) > 1 for part in parts):
            return tuple(_title(part) for part in parts)
    title = _title(text)
    return (title,) if title else ()


def _title(text: str) -> str:
    """A title as it was meant: without quotes around it, and without "to my list"."""
    text = _pattern(rf"\s(?:to|on|onto|in|into) (?:{words.PLACE}|(?:my|the|our) (?:tasks|to-?dos))$").sub(
        "", text.strip()
    )
    quoted = re.fullmatch(r"""["'](?P<inside>.+)["'][.!]?""", text)
    text = quoted["inside"] if quoted is not None else text.removesuffix(".") if not text.endswith("..") else text
    return " ".join(text.split()) if any(char.isalnum() for char in text) else ""


def _in_the_past(text: str, items: list[Item]) -> Intent | None:
    """ "I bought milk" completes "Buy milk": only where an open title says just that."""
    found = _PAST.fullmatch(text)
    if found is None:
        return None
    past = found["past"].lower()
    if past not in words.IRREGULAR and not past.endswith("ed"):
        return None
    is_open = [item for item in items if item.status not in ("completed", "failed")]
    meant = by_words(f"{past}{found['rest']}", is_open, floor=SURE_OF_PAST)
    return Intent("complete", meant.ids) if meant.sure and len(meant.ids) == 1 else None
