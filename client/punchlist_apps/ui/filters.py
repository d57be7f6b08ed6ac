"""Filters for tasks and lists: words such as `is:blocked @ann p:high +web parser`. A leading `-` negates a word."""

import time
from collections.abc import Callable, Container
from typing import Any

from punchlist.base.dates import is_late
from punchlist_schemas.things import FINISHED, Conversation, Task, is_heading

Test = Callable[[Any], bool]


def is_deferred(task: Task) -> bool:
    """Return whether an unfinished task is deferred to a later time."""
    return task.status not in FINISHED and (task.not_before or 0) > time.time() * 1000


def is_overdue(task: Task) -> bool:
    return task.status not in FINISHED and is_late(task.due, task.due_day, round(time.time() * 1000))


def label_word(label: str) -> str:
    """Return the filter word for a label. Dots replace spaces, since a space would end the word."""
    return "+" + ".".join(label.casefold().split())


STATES: dict[str, Callable[[Task], bool]] = {
    "open": lambda task: task.status not in FINISHED,
    "ready": lambda task: task.status == "pending" and not task.open_blockers and not is_deferred(task),
    "blocked": lambda task: task.status not in FINISHED and bool(task.open_blockers),
    "running": lambda task: task.status == "in_progress",
    "paused": lambda task: task.status == "paused" and task.waits_for != "yes",
    "asks": lambda task: task.waits_for == "yes",
    "failed": lambda task: task.status == "failed",
    "done": lambda task: task.status == "completed",
    "deferred": is_deferred,
    "late": is_overdue,
}
"""States for `is:`, in the order that Tab cycles through."""


def build_task_test(words: str, parents: Container[str | None] = ()) -> Test | None:
    """Build a predicate for tasks that match all words; None if there are no words.

    Args:
        parents: Ids of tasks with open subtasks. Agents don't work on these tasks, so they aren't ready.
    """

    def parse(word: str) -> Test:
        test = _parse_task_word(word)
        if not word.startswith("is:r") or not "is:ready".startswith(word):
            return test
        return lambda task: (
            test(task) and (task.status != "pending" or (task.id not in parents and not is_heading(task.metadata)))
        )

    return _combine([_parse_word(word, parse) for word in words.casefold().split()])


def build_list_test(words: str) -> Test | None:
    """Build a predicate for lists, by id and title; None if there are no words."""
    return _combine([_parse_word(word, _parse_list_word) for word in words.casefold().split()])


def _combine(tests: list[Test]) -> Test | None:
    return (lambda thing: all(test(thing) for test in tests)) if tests else None


def _parse_word(word: str, parse: Callable[[str], Test]) -> Test:
    if len(word) > 1 and word[0] == "-":
        negated = parse(word[1:])
        return lambda thing: not negated(thing)
    return parse(word)


def _parse_task_word(word: str) -> Test:
    head, _, rest = word.partition(":")
    if head == "is" and rest:
        states = [test for name, test in STATES.items() if name.startswith(rest)]
        return lambda task: any(test(task) for test in states)
    if head == "p" and rest:
        return lambda task: task.priority.startswith(rest)
    if word[0] == "+" and len(word) > 1:
        return lambda task: any(label_word(label).startswith(word) for label in task.labels)
    if word[0] == "@" and len(word) > 1:
        return lambda task: word[1:] in task.owner.casefold()
    if word[0] == "#" and len(word) > 1:
        return lambda task: task.id == word[1:]
    return lambda task: word in task.title.casefold()


def _parse_list_word(word: str) -> Test:
    def test(card: Conversation) -> bool:
        return word in card.conversation.casefold() or word in card.title.casefold()

    return test
