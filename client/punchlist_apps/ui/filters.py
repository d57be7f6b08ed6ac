"""What of a list is shown: words such as `is:blocked @ann p:high +web parser`, `-` in front of one for all others."""

import time
from collections.abc import Callable, Container
from typing import Any

from punchlist.base.dates import is_late
from punchlist_schemas.things import FINISHED, Conversation, Task, is_heading

Test = Callable[[Any], bool]


def is_deferred(task: Task) -> bool:
    """Whether a task is put off until a time that has not come."""
    return task.status not in FINISHED and (task.not_before or 0) > time.time() * 1000


def is_overdue(task: Task) -> bool:
    return task.status not in FINISHED and is_late(task.due, task.due_day, round(time.time() * 1000))


def label_word(label: str) -> str:
    """The word that a label is filtered by: a blank would end it, so a dot stands for one."""
    return "+" + ".".join(label.casefold().split())


STATES: dict[str, Callable[[Task], bool]] = {
    "open": lambda task: task.status not in FINISHED,
    "ready": lambda task: task.status == "pending" and not task.open_blockers and not is_deferred(task),
    "blocked": lambda task: task.status not in FINISHED and bool(task.open_blockers),
    "running": lambda task: task.status == "in_progress",
    "paused": lambda task: task.status == "paused",
    "failed": lambda task: task.status == "failed",
    "done": lambda task: task.status == "completed",
    "deferred": is_deferred,
    "late": is_overdue,
}
"""The words behind `is:`; Tab goes through them."""


def of_tasks(words: str, holding: Container[str | None] = ()) -> Test | None:
    """A test for tasks that all words agree with; None: there are none, and every task is shown.

    `holding` are the tasks with open tasks below them: nobody works on those, so they are not ready.
    """

    def word_of(word: str) -> Test:
        test = _task_word(word)
        if not word.startswith("is:r") or not "is:ready".startswith(word):
            return test
        return lambda task: (
            test(task) and (task.status != "pending" or (task.id not in holding and not is_heading(task.metadata)))
        )

    return _all([_signed(word, word_of) for word in words.casefold().split()])


def of_lists(words: str) -> Test | None:
    """The same for lists, by id and title."""
    return _all([_signed(word, _list_word) for word in words.casefold().split()])


def _all(tests: list[Test]) -> Test | None:
    return (lambda thing: all(test(thing) for test in tests)) if tests else None


def _signed(word: str, test: Callable[[str], Test]) -> Test:
    if len(word) > 1 and word[0] == "-":
        unwanted = test(word[1:])
        return lambda thing: not unwanted(thing)
    return test(word)


def _task_word(word: str) -> Test:
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


def _list_word(word: str) -> Test:
    def test(card: Conversation) -> bool:
        return word in card.conversation.casefold() or word in card.title.casefold()

    return test
