"""Interprets a message as a reply to the open question. Pure, like `reading`.

A question waits for yes or no, for one of several tasks (`which`), or for a title. A message that doesn't answer the
question is interpreted as a request.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from punchlist_apps.chat.rules import words
from punchlist_apps.chat.rules.reading import (
    CHANGING,
    INTENTS_TO_CONFIRM,
    MAX_CHARS,
    TALK,
    Context,
    Intent,
    build_intent,
    interpret,
    is_command,
    split_titles,
    strip_politeness,
    title_of,
)
from punchlist_apps.chat.rules.references import Item, Match, resolve

Outcome = Literal["do", "drop", "ask", "fill", "new", "unclear"]
"""The effect of a reply: `do` the pending request, `drop` it, `ask` again, `fill` in the missing detail, or close the
question as a `new` request. A model handles an `unclear` reply as a new message, while the rules ask again."""


class Reply(NamedTuple):
    """The effect of a reply, and for `fill` and `new` its intent."""

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
"""Kind of reply → its effect for each kind of question."""
_COLUMNS = {"": 0, "which": 1, "title": 2}


def read_reply(text: str, items: list[Item], context: Context, question: Intent | None) -> Reply:
    """Interpret a message as a reply to the open question, or as a request if no question is open.

    Args:
        question: The pending intent, whose `need` is the detail that the question waits for; None if no question is
            open.
    """
    if question is None:
        return Reply(
            "new", interpret(text if len(text) > MAX_CHARS else _strip_answer(strip_politeness(text)), items, context)
        )
    if len(text) > MAX_CHARS:
        kind, intent = "request", interpret(text, items, context)
    else:
        kind, intent = _classify(strip_politeness(text), items, context, question)
    return Reply(_TABLE[kind][_COLUMNS[question.need]], intent)


def _strip_answer(text: str) -> str:
    """Return a message without a leading yes or no, which is meaningless if no question is open."""
    rest = request = text
    while (match := _ANSWERING.match(rest)) is not None:
        rest = rest[match.end() :]
        # Without punctuation after it, "no" may negate the following words.
        if match["ended"] or is_command(rest):
            request = rest
    return request


def _classify(text: str, items: list[Item], context: Context, question: Intent) -> tuple[str, Intent]:
    if (whole := _classify_whole(text, items, context, question)) is not None:
        return whole, TALK
    if (rest := _find_correction(text, question)) is not None:
        intent = _read_correction(rest, items, context, question)
        # "No, memo is done" reports a completed task, but "no memo is done" doesn't.
        is_denied = intent.name in CHANGING - INTENTS_TO_CONFIRM and not is_command(rest) and _DENYING.match(text)
        return "correction", Intent("clarify", need="instead") if is_denied else intent
    if (answer := _ANSWER_READERS[question.need](text, items, context, question)) is not None:
        return "answer", answer
    intent = interpret(text, items, context)
    if question.need == "which" and _is_bare(intent, text):  # The number wasn't among the choices.
        return "neither", TALK
    if intent.name not in ("talk", "clarify") or intent.goal:
        return "request", intent
    other = _read_other_tasks(_NOT.split(text)[0], items, question)  # "the dentist, not the milk"
    return ("neither", TALK) if other is None else ("correction", other)


def _classify_whole(text: str, items: list[Item], context: Context, question: Intent) -> str | None:
    """Return the kind of a reply that is just a yes, a no or a polite phrase; None for other replies."""
    patterns = {
        "politeness": words.NEITHER,
        "agreement": words.agreement(question.name),
        "refusal": words.NO,
        "greeting": words.GREETING,
    }
    for kind, pattern in patterns.items():
        if re.fullmatch(pattern, text, re.I):
            return kind
    match = _YES_AND.fullmatch(text)
    if match is None:
        return None
    return "agreement" if _repeats_question(match["rest"], items, context, question) else "neither"


_YES_AND = re.compile(r"(?:yes|yep|yeah|sure|ok)[ ,.!]+(?P<rest>.+)", re.I | re.S)


def _repeats_question(text: str, items: list[Item], context: Context, question: Intent) -> bool:
    """Return whether the rest of "yes, delete task 3" or "yes, all of it" matches the question."""
    if len(question.ids) > 1 and re.fullmatch(words.all_of(len(question.ids)), text.rstrip(".! "), re.I):
        return True
    intent = interpret(text, items, context)
    is_same = (intent.name, set(intent.ids)) == (question.name, set(question.ids))
    return is_same and intent.title.lower() in ("", question.title.lower())


_ANSWERING = re.compile(words.ANSWERING, re.I)
_DENYING = re.compile(words.DENYING, re.I)
_CORRECTING = re.compile(rf"{words.CORRECTING}+(?P<rest>\S.*)", re.I | re.S)
_CORRECTING_LOOSELY = re.compile(rf"(?:{words.CORRECTING}|{words.CORRECTING_LOOSELY})+(?P<rest>\S.*)", re.I | re.S)
_NOT = re.compile(r",\s*(?:and )?not\b", re.I)
_INSTEAD = re.compile(rf"(?P<rest>.+?){words.INSTEAD}", re.I | re.S)


def _find_correction(text: str, question: Intent) -> str | None:
    """Return the request in a correction such as "no, the dentist"; None for other replies."""
    is_title = question.need == "title"
    match = (_CORRECTING if is_title else _CORRECTING_LOOSELY).fullmatch(text)
    if match is not None:
        rest = strip_politeness(match["rest"])
        last = _INSTEAD.fullmatch(rest)
        return rest if last is None else last["rest"]
    last = None if is_title else _INSTEAD.fullmatch(text)
    return None if last is None else last["rest"]


def _read_correction(text: str, items: list[Item], context: Context, question: Intent) -> Intent:
    if question.need == "title" and (answer := _read_title(text, items, context, question)) is not None:
        return answer
    intent = interpret(text, items, Context(context.shown, question.ids or context.last))
    if _is_bare(intent, text):
        return _read_other_tasks(text, items, question) or intent
    if intent.name in ("talk", "clarify") and not intent.goal:
        return _read_other_tasks(text, items, question) or Intent("clarify", need="instead")
    return intent


def _is_bare(intent: Intent, text: str) -> bool:
    return intent.name == "get" and not is_command(text)


def _read_other_tasks(text: str, items: list[Item], question: Intent) -> Intent | None:
    if text.endswith("?") or not question.ids:
        return None
    match = resolve(text, items, (), ())
    if not match.sure or set(match.ids) == set(question.ids):
        return None
    return build_intent(match, question.name, question.title, question.priority)


def _read_choice(text: str, items: list[Item], _context: Context, question: Intent) -> Intent | None:
    if text.endswith("?"):
        return None
    offered = [item for item in items if item.id in question.ids]
    if re.fullmatch(r"(?:both|all)(?: of (?:them|those))?", text, re.I):
        match = Match(tuple(item.id for item in offered), True)
    else:
        match = resolve(text, offered, question.ids, ())
    intent = build_intent(match, question.name, question.title, question.priority)
    return intent if intent.need in ("", "title") else None


def _read_title(text: str, items: list[Item], context: Context, question: Intent) -> Intent | None:
    """Interpret a reply as the requested title, unless it is a command about the list or a task number."""
    intent = interpret(text, items, context)
    target = intent.goal or intent.name
    names_task = bool(intent.ids or intent.missing)
    is_request = is_command(text) and (
        target in ("create", "multi")
        or (target in INTENTS_TO_CONFIRM and names_task)
        or (target in CHANGING | {"get"} and names_task and re.search(r"\d", text))
    )
    is_no_title = text.endswith("?") or re.fullmatch(words.NO_TITLE, text, re.I | re.S)
    if is_request or is_no_title or intent.name in ("list", "help", "undo", "redo"):
        return None
    text = re.sub(rf"^{words.NAMING}", "", text, count=1, flags=re.I)
    if question.name == "update":
        title = title_of(text)
        return Intent("update", question.ids, title=title) if title else None
    titles = tuple(title for part in split_titles(text) if (title := title_of(part)))
    return Intent("create", titles=titles, priority=question.priority) if titles else None


_ANSWER_READERS: dict[str, Callable[[str, list[Item], Context, Intent], Intent | None]] = {
    "": lambda _text, _items, _context, _question: None,
    "which": _read_choice,
    "title": _read_title,
}
"""Detail that a question waits for → function that reads the answer and returns None for other replies."""
