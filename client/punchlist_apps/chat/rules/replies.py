"""What a reply does to an open question. Pure, as `reading` is.

A question waits for yes or no, for one of several tasks (`which`), or for a title. What is no answer to it is a message
as any other.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.reading import (
    ASKING,
    CHANGING,
    MOST,
    TALK,
    Context,
    Intent,
    done_to,
    interpret,
    is_command,
    parts_of,
    plain,
    title_of,
)
from punchlist_apps.chat.rules.references import Item, Meant, refer

Outcome = Literal["do", "drop", "ask", "fill", "new", "unclear"]
"""What comes of a reply: `do` what was asked about, `drop` it, `ask` again, `fill` in what was missing, or close the
question and read the reply as a `new` message. An `unclear` one is a new message for a model; the rules ask again."""


class Reply(NamedTuple):
    """What a reply does, and what it wants, if that is `fill` or `new`."""

    outcome: Outcome
    intent: Intent = TALK


_TABLE: dict[str, tuple[Outcome, Outcome, Outcome]] = {
    #             yes or no  which      title
    "agreement":  ("do",      "ask",     "ask"),
    "refusal":    ("drop",    "drop",    "drop"),
    "politeness": ("ask",     "ask",     "ask"),
    "answer":     ("new",     "fill",    "fill"),
    "correction": ("new",     "new",     "new"),
    "request":    ("new",     "new",     "new"),
    "greeting":   ("unclear", "unclear", "new"),
    "neither":    ("unclear", "unclear", "unclear"),
}  # fmt: skip
"""Kind of reply → what it does to each kind of question."""
_COLUMNS = {"": 0, "which": 1, "title": 2}


def read_reply(text: str, items: list[Item], said: Context, question: Intent | None) -> Reply:
    """Read a message as a reply to the open question, or as a request if no question is open.

    Args:
        question: What was asked: the name of what is wanted, its tasks, and in `need` what the question waits for. None
            if no question is open.
    """
    if question is None:
        return Reply("new", interpret(text if len(text) > MOST else _request_in(plain(text)), items, said))
    if len(text) > MOST:
        kind, intent = "request", interpret(text, items, said)
    else:
        kind, intent = _kind(plain(text), items, said, question)
    return Reply(_TABLE[kind][_COLUMNS[question.need]], intent)


def _request_in(text: str) -> str:
    """Return a message without the yes or no in front of it, which answers nothing if no question is open."""
    rest = request = text
    while (found := _ANSWERING.match(rest)) is not None:
        rest = rest[found.end() :]
        # Without punctuation, "no" may deny what follows it.
        if found["ended"] or is_command(rest):
            request = rest
    return request


def _kind(text: str, items: list[Item], said: Context, question: Intent) -> tuple[str, Intent]:
    if (whole := _whole(text, items, said, question)) is not None:
        return whole, TALK
    if (rest := _corrected(text, question)) is not None:
        intent = _instead(rest, items, said, question)
        # "No, memo is done" reports it, "no memo is done" does not.
        is_denied = intent.name in CHANGING - ASKING and not is_command(rest) and _DENYING.match(text)
        return "correction", Intent("clarify", need="instead") if is_denied else intent
    if (answer := _ANSWERS[question.need](text, items, said, question)) is not None:
        return "answer", answer
    intent = interpret(text, items, said)
    if question.need == "which" and _is_bare(intent, text):  # "5", which was not offered
        return "neither", TALK
    if intent.name not in ("talk", "clarify") or intent.goal:
        return "request", intent
    other = _other(_NOT.split(text)[0], items, question)  # "the dentist, not the milk"
    return ("neither", TALK) if other is None else ("correction", other)


def _whole(text: str, items: list[Item], said: Context, question: Intent) -> str | None:
    """The kind of a reply that is nothing but yes, no, or politeness."""
    patterns = {
        "politeness": words.NEITHER,
        "agreement": words.agreement(question.name),
        "refusal": words.NO,
        "greeting": words.GREETING,
    }
    for kind, pattern in patterns.items():
        if re.fullmatch(pattern, text, re.I):
            return kind
    found = _YES_AND.fullmatch(text)
    if found is None:
        return None
    return "agreement" if _asks_the_same(found["rest"], items, said, question) else "neither"


_YES_AND = re.compile(r"(?:yes|yep|yeah|sure|ok)[ ,.!]+(?P<rest>.+)", re.I | re.S)


def _asks_the_same(text: str, items: list[Item], said: Context, question: Intent) -> bool:
    """Whether "yes, delete task 3" or "yes, all of it" says what was asked about."""
    if len(question.ids) > 1 and re.fullmatch(words.all_of(len(question.ids)), text.rstrip(".! "), re.I):
        return True
    again = interpret(text, items, said)
    same = (again.name, set(again.ids)) == (question.name, set(question.ids))
    return same and again.title.lower() in ("", question.title.lower())


_ANSWERING = re.compile(words.ANSWERING, re.I)
_DENYING = re.compile(words.DENYING, re.I)
_CORRECTING = re.compile(rf"{words.CORRECTING}+(?P<rest>\S.*)", re.I | re.S)
_CORRECTING_LOOSELY = re.compile(rf"(?:{words.CORRECTING}|{words.CORRECTING_LOOSELY})+(?P<rest>\S.*)", re.I | re.S)
_NOT = re.compile(r",\s*(?:and )?not\b", re.I)
_INSTEAD = re.compile(rf"(?P<rest>.+?){words.INSTEAD}", re.I | re.S)


def _corrected(text: str, question: Intent) -> str | None:
    """What is wanted instead, if a reply says that something else is."""
    is_title = question.need == "title"
    found = (_CORRECTING if is_title else _CORRECTING_LOOSELY).fullmatch(text)
    if found is not None:
        rest = plain(found["rest"])
        last = _INSTEAD.fullmatch(rest)
        return rest if last is None else last["rest"]
    last = None if is_title else _INSTEAD.fullmatch(text)
    return None if last is None else last["rest"]


def _instead(text: str, items: list[Item], said: Context, question: Intent) -> Intent:
    if question.need == "title" and (answer := _titled(text, items, said, question)) is not None:
        return answer
    intent = interpret(text, items, Context(said.shown, question.ids or said.last))
    if _is_bare(intent, text):
        return _other(text, items, question) or intent
    if intent.name in ("talk", "clarify") and not intent.goal:
        return _other(text, items, question) or Intent("clarify", need="instead")
    return intent


def _is_bare(intent: Intent, text: str) -> bool:
    return intent.name == "get" and not is_command(text)


def _other(text: str, items: list[Item], question: Intent) -> Intent | None:
    if text.endswith("?") or not question.ids:
        return None
    meant = refer(text, items, (), ())
    if not meant.sure or set(meant.ids) == set(question.ids):
        return None
    return done_to(meant, question.name, question.title, question.priority)


def _chosen(text: str, items: list[Item], _said: Context, question: Intent) -> Intent | None:
    if text.endswith("?"):
        return None
    offered = [item for item in items if item.id in question.ids]
    if re.fullmatch(r"(?:both|all)(?: of (?:them|those))?", text, re.I):
        meant = Meant(tuple(item.id for item in offered), True)
    else:
        meant = refer(text, offered, question.ids, ())
    intent = done_to(meant, question.name, question.title, question.priority)
    return intent if intent.need in ("", "title") else None


def _titled(text: str, items: list[Item], said: Context, question: Intent) -> Intent | None:
    """The title that was asked for, unless it is a request: a command about the list or a number of a task."""
    intent = interpret(text, items, said)
    wanted = intent.goal or intent.name
    names_task = bool(intent.ids or intent.missing)
    is_request = is_command(text) and (
        wanted in ("create", "multi")
        or (wanted in ASKING and names_task)
        or (wanted in CHANGING | {"get"} and names_task and re.search(r"\d", text))
    )
    is_none = text.endswith("?") or re.fullmatch(words.NO_TITLE, text, re.I | re.S)
    if is_request or is_none or intent.name in ("list", "help", "undo", "redo"):
        return None
    text = re.sub(rf"^{words.NAMING}", "", text, count=1, flags=re.I)
    if question.name == "update":
        title = title_of(text)
        return Intent("update", question.ids, title=title) if title else None
    titles = tuple(title for part in parts_of(text) if (title := title_of(part)))
    return Intent("create", titles=titles, priority=question.priority) if titles else None


_ANSWERS: dict[str, Callable[[str, list[Item], Context, Intent], Intent | None]] = {
    "": lambda _text, _items, _said, _question: None,
    "which": _chosen,
    "title": _titled,
}
"""What a question waits for → the answer to it, if a reply is one."""
