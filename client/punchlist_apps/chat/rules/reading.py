"""From a sentence and what was said before to an intent. Pure: no clock, no list but the one that is given.

Whatever is not sure changes nothing: it becomes `clarify` (which task, which title), `talk`, or an intent that is
`doubtful`, about which the person is asked.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.phrases import PHRASES, Phrase
from punchlist_apps.chat.rules.references import Item, Meant, by_words, refer, says_just, status_of

MOST = 2_000
"""Longest message that the rules read, in characters."""

MOST_REQUESTS = 50
"""Upper limit for the requests in one message."""


class Intent(msgspec.Struct, frozen=True):
    """What somebody wants: `name`, and what goes with it.

    `name` is create, get, list, update, priority, complete, reopen, start, approve, assign (to `title`), delete,
    undo, redo, help, talk, clarify, or multi (`parts`). Of `clarify`, `need` says what is missing: title, task or
    which, to do `goal`, or why nothing is done: it was a question, it is too long (`long`), it makes too many requests
    (`many`), it corrects (`instead`) without a request that is understood. `missing` and `status` say why there is no
    such task.
    `confirmed` are the words by which the same message agrees to what would be asked; `doubtful` is asked about, since
    its words may mean something else.
    """

    name: str
    ids: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    title: str = ""
    status: str = ""
    priority: str = ""
    need: str = ""
    goal: str = ""
    confirmed: str = ""
    all: bool = False
    doubtful: bool = False
    missing: tuple[str, ...] = ()
    parts: tuple["Intent", ...] = ()


class Context(msgspec.Struct, frozen=True):
    """What was said before: ids shown last in their order, and ids spoken of last."""

    shown: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


NO_CONTEXT = Context()
TALK = Intent("talk")
CHANGING = frozenset({"create", "update", "priority", "complete", "reopen", "start", "approve", "assign", "delete"})
ASKING = frozenset({"update", "delete"})
"""Intents that are asked about before they are done."""

_STRONG = re.compile(
    r"(?:please |then )*(?:add|create|show|list|display|complete|finish|check off|tick|mark|delete|remove|rename|change"
    r"|reopen|start|approve|assign|done with|remind me|undo|revert)\b",
    re.I,
)
_JOINT = re.compile(
    r"\s?(?:(?:;|(?P<ended>[.!])\s|\n)(?:\s?(?:and )?then\b,?)?|,?\sand then\s|,\s?then\s|\sthen\s|,?\sand\s|,)"
    r"\s?(?=\w)",
    re.I,
)
_BULLET = re.compile(r"^\s*(?:(?:[-*•·–]|\d{1,2}[.)])\s+|add\s+(?=\S))", re.I)
_QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*'(?!\w))""")
_PAST = re.compile(r"(?P<who>(?:i|we)(?:'ve| have)?(?: just| already| also)? )?(?P<past>\w+) (?P<what>.+)", re.I)
_PASSIVE = re.compile(
    r"(?P<what>.+?)(?P<is> is| are| was| were| has been| have been)?(?: now| already)? (?P<past>\w+)", re.I
)


def interpret(text: str, items: list[Item], said: Context = NO_CONTEXT) -> Intent:
    """What a message asks for."""
    if len(text) > MOST:
        return Intent("clarify", need="long")
    return _read(plain(text), items, said, {})


def _read(text: str, items: list[Item], said: Context, rests: "dict[str, Intent]") -> Intent:
    return _several(text, items, said, rests) or _one(text, items, said)


def plain(text: str) -> str:
    """A message without politeness around it. A question mark that is left belongs to a question."""
    text = text.translate(_MARKS).strip()
    text = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
    before = ""
    while before != text:
        before = text
        found = _pattern(rf"^(?:{words.POLITE})(?=.*\w)").match(text)
        if found is not None:
            text = text[found.end() :]
            text = text.rstrip("?") or text if re.match(words.ASKS_NICELY, found[0], re.I) else text
        text = _pattern(rf"{words.THANKS}$").sub("", text, count=1) or text
    return text


_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "\t": " "})


def _several(text: str, items: list[Item], said: Context, rests: "dict[str, Intent]") -> Intent | None:
    """Return two or more requests in one message; a joint inside quotes or inside a title is none.

    Args:
        rests: How the rests of the message behind its joints were read. Without it, time doubles with each joint.
    """
    hidden = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    joints = [joint for joint in _JOINT.finditer(hidden) if is_command(text[joint.end() :].strip())]
    if len(joints) >= MOST_REQUESTS:
        return Intent("clarify", need="many")
    for joint in joints:
        left, right = text[: joint.start()].strip(), plain(text[joint.end() :])
        if not left:
            continue
        if right not in rests:
            rests[right] = _read(right, items, Context(said.shown, said.last), rests)
        second = rests[right]
        if second.name in ("talk", "clarify", "help", "undo", "redo"):
            continue
        first = _one(left, items, said)
        if first.name in ("talk", "clarify", "help", "undo", "redo"):
            continue
        if first.name == second.name == "create" and not joint["ended"]:
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
        before = text[: sure.start()]
        intent = _row(before, items, said)
        if intent.name in ASKING:
            is_asked = intent.doubtful or before.endswith("?")
            return intent if is_asked else msgspec.structs.replace(intent, confirmed=sure[0].strip(" ,.;!-"))
        whole = _row(text, items, said)
        return intent if intent.need and whole.need else whole
    return _row(text, items, said)


def _row(text: str, items: list[Item], said: Context) -> Intent:
    """The first row of the table that fits decides; a question changes nothing."""
    bare = text.rstrip(" ?!.,") or text
    found = ((phrase, _pattern(phrase.pattern).fullmatch(bare)) for phrase in PHRASES)
    read = (_of(phrase, match.groupdict(), items, said) for phrase, match in found if match is not None)
    intent = next((one for one in read if one is not None), None) or _in_the_past(bare, items) or TALK
    if text.endswith("?") and (intent.name in _AT_ONCE or (intent.name == "create" and not is_command(text))):
        return Intent("get", intent.ids) if len(intent.ids) == 1 else Intent("clarify", need="question")
    return intent


def is_command(text: str) -> bool:
    return _STRONG.match(text) is not None


_AT_ONCE = CHANGING - ASKING - {"create"}
"""Intents that change a task without asking."""


def _of(phrase: Phrase, slots: dict[str, str | None], items: list[Item], said: Context) -> Intent | None:
    given = {name: value for name, value in slots.items() if value} | dict(phrase.said)
    make = _MAKERS.get(phrase.intent)
    if make is not None:
        return make(given, items, said)
    if "ref" not in given:
        return Intent("clarify", need="task", goal=phrase.intent)
    meant = refer(given["ref"], items, said.shown, said.last)
    by_number = meant.sure and re.search(r"\d", given["ref"]) is not None
    if phrase.strict and not (by_number and meant.ids):
        return None
    if phrase.intent == "complete" and len(meant.ids) > 1 and not re.search(r"\d", given["ref"]):
        open_ = {item.id for item in items if item.status not in ("completed", "failed")}
        ids = tuple(one for one in meant.ids if one in open_)
        meant = meant._replace(ids=ids, all=False, status="" if ids else "pending")
    intent = done_to(meant, phrase.intent, title_of(given.get("title", "")), given.get("priority", ""))
    if phrase.doubtful and not by_number and not intent.need:
        return msgspec.structs.replace(intent, doubtful=True)
    return intent


def done_to(meant: Meant, name: str, title: str = "", priority: str = "") -> Intent:
    """What is to be done with the tasks that are meant: doubtful where they are not sure."""
    priority = words.PRIORITIES.get(priority.lower(), priority.lower())
    known = Intent(name, meant.ids, title=title, priority=priority, doubtful=not meant.sure and name != "get")
    if not meant.ids or (len(meant.ids) > 1 and (not meant.sure or name in ("update", "get"))):
        need = "which" if len(meant.ids) > 1 else "task"
        return msgspec.structs.replace(
            known, name="clarify", need=need, goal=name, doubtful=False, missing=meant.missing, status=meant.status
        )
    if name == "update" and not title:
        return Intent("clarify", meant.ids, need="title", goal=name)
    return msgspec.structs.replace(known, all=meant.all and name == "delete")


def _created(given: dict[str, str], _items: list[Item], _said: Context) -> Intent:
    titles = _titles(given.get("title", ""))
    word = given.get("priority", "").lower()
    known = Intent("create", titles=titles, priority=words.PRIORITIES.get(word, word))
    return known if titles else msgspec.structs.replace(known, name="clarify", need="title", goal="create")


def _wished(given: dict[str, str], items: list[Item], said: Context) -> Intent:
    """ "I need to …": a request of its own where it names a task by number or asks for the list, else a new task."""
    inner = _one(given["title"], items, said)
    if inner.name == "list" or (inner.ids and re.search(r"#?\d", given["title"]) and inner.name in CHANGING):
        return inner
    return TALK if _pattern(words.NO_WISH).fullmatch(given["title"]) else _created(given, items, said)


def _listed(given: dict[str, str], _items: list[Item], _said: Context) -> Intent:
    status = given.get("status") or given.get("later") or ""
    return Intent(
        "list", status=status if status in ("pending", "completed", "in_progress", "waiting") else status_of(status)
    )


_MAKERS: dict[str, Callable[[dict[str, str], list[Item], Context], Intent]] = {
    "create": _created,
    "wish": _wished,
    "list": _listed,
    "talk": lambda _given, _items, _said: TALK,
    "help": lambda _given, _items, _said: Intent("help"),
    "undo": lambda _given, _items, _said: Intent("undo"),
    "redo": lambda _given, _items, _said: Intent("redo"),
}
"""Intents that are about no task that is there."""


def _titles(text: str) -> tuple[str, ...]:
    titles: list[str] = []
    for part in parts_of(text):
        title = title_of(part)
        rest = set(title.lower().split()) - words.ARTICLES
        names_nothing = bool(rest) and rest <= words.PLACEHOLDERS
        if title and ('"' in part or not names_nothing):
            titles.append(title)
    return tuple(titles)


def parts_of(text: str) -> list[str]:
    """The parts of what is to be added: lines, parts between semicolons, or parts that begin with the same word."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 or ";" in _QUOTED.sub("", text):
        parts = [part for line in lines for part in (line.split(";") if '"' not in line else [line])]
        return [_BULLET.sub("", part) for part in parts]
    if not _QUOTED.search(text):
        parts = [part.strip() for part in re.split(r",\s?(?:and\s)?|\sand\s", text) if part.strip()]
        firsts = {part.split()[0].lower() for part in parts}
        if len(parts) > 1 and len(firsts) == 1 and all(len(part.split()) > 1 for part in parts):
            return parts
    return [text]


def title_of(text: str) -> str:
    """A title as it was meant: without quotes around it, and without "to my list"."""
    text = _pattern(rf"\s(?:to|on|onto|in|into) (?:{words.PLACE}|(?:my|the|our) (?:tasks|to-?dos))$").sub(
        "", text.strip()
    )
    quoted = re.fullmatch(r"""["'](?P<inside>.+)["'][.!]?""", text)
    text = quoted["inside"] if quoted is not None else text.removesuffix(".") if not text.endswith("..") else text
    return " ".join(text.split()) if any(char.isalnum() for char in text) else ""


def _in_the_past(text: str, items: list[Item]) -> Intent | None:
    """ "I bought milk" and "milk was bought" complete "Buy milk"; if the title says more, or the text less, with doubt.

    "Ann called" may be no call of the person's, and "read the book" is only the title.
    """
    for found, is_passive in ((_PAST.fullmatch(text), False), (_PASSIVE.fullmatch(text), True)):
        if found is None:
            continue
        given = {"who": None, "is": None} | found.groupdict()
        past = found["past"].lower()
        if past not in words.IRREGULAR and not past.endswith("ed"):
            continue
        titles = [
            item
            for item in items
            if item.status not in ("completed", "failed") and (given["who"] or past not in item.title.lower().split())
        ]
        what = f"{past} {found['what']}"
        same = tuple(item.id for item in titles if says_just(item.title, what))
        if len(same) == 1:
            return Intent("complete", same, doubtful=is_passive and not given["is"])
        meant = by_words(what, titles)
        if not is_passive and meant.sure and len(meant.ids) == 1:
            return Intent("complete", meant.ids, doubtful=True)
    return None
