"""Interprets a message as an intent, with rules. Pure: it uses no clock and only the list passed in.

An uncertain message doesn't change anything. It becomes `clarify` (asking for the task or title), `talk`, or a
`doubtful` intent, which the person must confirm.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.phrases import PHRASES, Phrase
from punchlist_apps.chat.rules.references import Item, Match, has_same_words, match_words, resolve, status_of

MAX_CHARS = 2_000
"""Maximum length of a message for the rules, in characters."""

MAX_REQUESTS = 50
"""Maximum number of requests in one message."""


class Intent(msgspec.Struct, frozen=True):
    """A request.

    Attributes:
        name: create, get, list, update, priority, complete, reopen, start, approve, assign (to `title`), delete, undo,
            redo, help, talk, clarify, or multi (`parts`).
        need: For `clarify`, the detail that `goal` lacks (`title`, `task`, `which`), or the reason for doing nothing.
            The message may be a `question`, be too long (`long`), have too many requests (`many`), or be a correction
            without a request (`instead`).
        goal: For `clarify`, the name of the intent that lacks the detail.
        confirmed: Words in the same message that confirm the request in advance.
        all: Whether the request is to delete the whole list.
        doubtful: Whether the words may mean something else, in which case the person must confirm the request.
        missing: For `clarify`, numbers that don't belong to a task.
        title: The new title, the new owner, or the name of the list to show; empty for the list of the thread.
        status: The status of the tasks to list; for `clarify`, a status that no task has.
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
    """The ids of the tasks shown last, in the order shown, and of those mentioned last."""

    shown: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


NO_CONTEXT = Context()
TALK = Intent("talk")
CHANGING = frozenset({"create", "update", "priority", "complete", "reopen", "start", "approve", "assign", "delete"})
INTENTS_TO_CONFIRM = frozenset({"update", "delete"})
"""Intents that need the person's confirmation."""

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


def interpret(text: str, items: list[Item], context: Context = NO_CONTEXT) -> Intent:
    if len(text) > MAX_CHARS:
        return Intent("clarify", need="long")
    return _read(strip_politeness(text), items, context, {})


def _read(text: str, items: list[Item], context: Context, rests: "dict[str, Intent]") -> Intent:
    return _split_requests(text, items, context, rests) or _read_request(text, items, context)


def strip_politeness(text: str) -> str:
    """Strip polite phrases from a message, and the question mark from a polite request such as "can you add milk?"."""
    text = text.translate(_MARKS).strip()
    text = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
    before = ""
    while before != text:
        before = text
        match = _pattern(rf"^(?:{words.POLITE})(?=.*\w)").match(text)
        if match is not None:
            text = text[match.end() :]
            text = text.rstrip("?") or text if re.match(words.POLITE_QUESTION, match[0], re.I) else text
        text = _pattern(rf"{words.THANKS}$").sub("", text, count=1) or text
    return text


_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "\t": " "})


def _split_requests(text: str, items: list[Item], context: Context, rests: "dict[str, Intent]") -> Intent | None:
    """Return two or more requests in one message, or None. Separators inside quotes or a title don't split the message.

    Args:
        rests: Cache of the intents of the text after each separator. Without the cache, each separator doubles the
            time.
    """
    masked = _QUOTED.sub(lambda match: "x" * len(match[0]), text)
    joints = [joint for joint in _JOINT.finditer(masked) if is_command(text[joint.end() :].strip())]
    if len(joints) >= MAX_REQUESTS:
        return Intent("clarify", need="many")
    for joint in joints:
        left, right = text[: joint.start()].strip(), strip_politeness(text[joint.end() :])
        if not left:
            continue
        if right not in rests:
            rests[right] = _read(right, items, Context(context.shown, context.last), rests)
        second = rests[right]
        if second.name in ("talk", "clarify", "help", "undo", "redo"):
            continue
        first = _read_request(left, items, context)
        if first.name in ("talk", "clarify", "help", "undo", "redo"):
            continue
        if first.name == second.name == "create" and not joint["ended"]:
            continue
        return Intent("multi", parts=(first, *(second.parts if second.name == "multi" else (second,))))
    return None


@lru_cache(512)
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.I | re.S)


def _read_request(text: str, items: list[Item], context: Context) -> Intent:
    """Interpret one request. Confirming words at the end confirm it if it needs confirmation; otherwise they are part
    of it."""
    confirming = _pattern(words.CONFIRMING + "$").search(text)
    if confirming is not None and confirming.start():
        before = text[: confirming.start()]
        intent = _match_phrases(before, items, context)
        if intent.name in INTENTS_TO_CONFIRM:
            is_asked = intent.doubtful or before.endswith("?")
            return intent if is_asked else msgspec.structs.replace(intent, confirmed=confirming[0].strip(" ,.;!-"))
        whole = _match_phrases(text, items, context)
        return intent if intent.need and whole.need else whole
    return _match_phrases(text, items, context)


def _match_phrases(text: str, items: list[Item], context: Context) -> Intent:
    """Return the intent of the first phrase that matches. A question doesn't change anything."""
    bare = text.rstrip(" ?!.,") or text
    named = _pattern(rf"(?P<question>.+?){words.IN_LIST}").fullmatch(bare)
    if named is not None:
        question = _match_phrases(named["question"], items, context)
        if question.name == "list":
            return msgspec.structs.replace(question, title=named["place"])
    matches = ((phrase, _pattern(phrase.pattern).fullmatch(bare)) for phrase in PHRASES)
    read = (_read_phrase(phrase, match.groupdict(), items, context) for phrase, match in matches if match is not None)
    intent = next((intent for intent in read if intent is not None), None) or _read_past_tense(bare, items) or TALK
    if text.endswith("?") and (intent.name in _UNCONFIRMED or (intent.name == "create" and not is_command(text))):
        return Intent("get", intent.ids) if len(intent.ids) == 1 else Intent("clarify", need="question")
    return intent


def is_command(text: str) -> bool:
    return _STRONG.match(text) is not None


_UNCONFIRMED = CHANGING - INTENTS_TO_CONFIRM - {"create"}
"""Intents that change a task without confirmation."""


def _read_phrase(phrase: Phrase, slots: dict[str, str | None], items: list[Item], context: Context) -> Intent | None:
    values = {name: value for name, value in slots.items() if value} | dict(phrase.slots)
    read = _READERS.get(phrase.intent)
    if read is not None:
        return read(values, items, context)
    if "ref" not in values:
        return Intent("clarify", need="task", goal=phrase.intent)
    match = resolve(values["ref"], items, context.shown, context.last)
    by_number = match.sure and re.search(r"\d", values["ref"]) is not None
    if phrase.strict and not (by_number and match.ids):
        return None
    if phrase.intent == "complete" and len(match.ids) > 1 and not re.search(r"\d", values["ref"]):
        open_ids = {item.id for item in items if item.status not in ("completed", "failed")}
        ids = tuple(id for id in match.ids if id in open_ids)
        match = match._replace(ids=ids, all=False, status="" if ids else "pending")
    intent = build_intent(match, phrase.intent, title_of(values.get("title", "")), values.get("priority", ""))
    if phrase.doubtful and not by_number and not intent.need:
        return msgspec.structs.replace(intent, doubtful=True)
    return intent


def build_intent(match: Match, name: str, title: str = "", priority: str = "") -> Intent:
    """Build the intent for matched tasks: `doubtful` if the match isn't sure, `clarify` if it is ambiguous or empty."""
    priority = words.PRIORITIES.get(priority.lower(), priority.lower())
    intent = Intent(name, match.ids, title=title, priority=priority, doubtful=not match.sure and name != "get")
    if not match.ids or (len(match.ids) > 1 and (not match.sure or name in ("update", "get"))):
        need = "which" if len(match.ids) > 1 else "task"
        return msgspec.structs.replace(
            intent, name="clarify", need=need, goal=name, doubtful=False, missing=match.missing, status=match.status
        )
    if name == "update" and not title:
        return Intent("clarify", match.ids, need="title", goal=name)
    return msgspec.structs.replace(intent, all=match.all and name == "delete")


def _read_create(slots: dict[str, str], _items: list[Item], _context: Context) -> Intent:
    titles = _read_titles(slots.get("title", ""))
    word = slots.get("priority", "").lower()
    intent = Intent("create", titles=titles, priority=words.PRIORITIES.get(word, word))
    return intent if titles else msgspec.structs.replace(intent, name="clarify", need="title", goal="create")


def _read_wish(slots: dict[str, str], items: list[Item], context: Context) -> Intent:
    """Interpret "I need to …" as a request if it names a task by number or asks for the list; else as a new task."""
    inner = _read_request(slots["title"], items, context)
    if inner.name == "list" or (inner.ids and re.search(r"#?\d", slots["title"]) and inner.name in CHANGING):
        return inner
    return TALK if _pattern(words.NOT_A_TASK).fullmatch(slots["title"]) else _read_create(slots, items, context)


_LISTED = ("pending", "completed", "in_progress", "waiting", "failed", "blocked")
"""Statuses that can be listed; `waiting` and `blocked` are states of tasks that aren't statuses."""


def _read_list(slots: dict[str, str], _items: list[Item], _context: Context) -> Intent:
    status = slots.get("status") or slots.get("later") or ""
    return Intent("list", status=status if status in _LISTED else status_of(status))


_READERS: dict[str, Callable[[dict[str, str], list[Item], Context], Intent]] = {
    "create": _read_create,
    "wish": _read_wish,
    "list": _read_list,
    "talk": lambda _given, _items, _said: TALK,
    "help": lambda _given, _items, _said: Intent("help"),
    "undo": lambda _given, _items, _said: Intent("undo"),
    "redo": lambda _given, _items, _said: Intent("redo"),
}
"""Readers of intents that don't refer to an existing task."""


def _read_titles(text: str) -> tuple[str, ...]:
    titles: list[str] = []
    for part in split_titles(text):
        title = title_of(part)
        rest = set(title.lower().split()) - words.ARTICLES
        names_nothing = bool(rest) and rest <= words.PLACEHOLDERS
        if title and ('"' in part or not names_nothing):
            titles.append(title)
    return tuple(titles)


def split_titles(text: str) -> list[str]:
    """Split the text of new tasks at line breaks, at semicolons, or before parts that begin with the same word."""
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
    """Return a title without surrounding quotes and without "to my list"."""
    text = _pattern(rf"\s(?:to|on|onto|in|into) (?:{words.PLACE}|(?:my|the|our) (?:tasks|to-?dos))$").sub(
        "", text.strip()
    )
    quoted = re.fullmatch(r"""["'](?P<inside>.+)["'][.!]?""", text)
    text = quoted["inside"] if quoted is not None else text.removesuffix(".") if not text.endswith("..") else text
    return " ".join(text.split()) if any(char.isalnum() for char in text) else ""


def _read_past_tense(text: str, items: list[Item]) -> Intent | None:
    """Interpret "I bought milk" and "milk was bought" as completing "Buy milk".

    The intent is doubtful if the words only resemble the title, or if another person may have done it, as in "Ann
    called". "Read the book" only repeats the title, so it doesn't complete the task.
    """
    for match, is_passive in ((_PAST.fullmatch(text), False), (_PASSIVE.fullmatch(text), True)):
        if match is None:
            continue
        groups = {"who": None, "is": None} | match.groupdict()
        past = match["past"].lower()
        if past not in words.IRREGULAR and not past.endswith("ed"):
            continue
        candidates = [
            item
            for item in items
            if item.status not in ("completed", "failed") and (groups["who"] or past not in item.title.lower().split())
        ]
        what = f"{past} {match['what']}"
        same = tuple(item.id for item in candidates if has_same_words(item.title, what))
        if len(same) == 1:
            return Intent("complete", same, doubtful=is_passive and not groups["is"])
        tasks = match_words(what, candidates)
        if not is_passive and tasks.sure and len(tasks.ids) == 1:
            return Intent("complete", tasks.ids, doubtful=True)
    return None
