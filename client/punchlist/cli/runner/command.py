"""The command of `punch run`: its words, with a task's text filled into the placeholders.

No shell reads the words, but the command itself may read options out of them. So a text that begins with a dash is
rejected where it would begin a word: whoever may add a task must not choose the options of your command.
"""

import re
import shutil
from collections.abc import Sequence

from punchlist.cli.failure import UsageError
from punchlist_schemas.things import Task

PLACEHOLDERS = ("title", "description", "prompt", "id")

_ANY = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
"""A doubled brace stands for itself: `{{title}}` becomes the text `{title}`."""


class Unfit(Exception):
    """The text of a task can't be passed as this argument."""


class Command:
    """A command for tasks.

    Args:
        words: The program and its arguments; `{title}`, `{description}`, `{prompt}` and `{id}` are placeholders.

    Raises:
        UsageError: There is no such program, or a placeholder has another name.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        for word in self.words:
            for found in _ANY.finditer(word):
                if found[2] is not None and found[2] not in PLACEHOLDERS:
                    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                    raise UsageError(
                        f"{found[0]} is not a placeholder: use {known}, or {{{found[0]}}} for the text itself"
                    )
        if not _ANY.search(self.words[0]) and shutil.which(self.words[0]) is None:
            raise UsageError(f"there is no command {self.words[0]!r}; no task was touched")

    def for_task(self, task: Task) -> list[str]:
        """The words with the task's text in place of the placeholders; text that is filled in is not searched again.

        Raises:
            Unfit: An argument would begin with a dash that comes from the task, or be empty.
        """
        texts = {
            "title": task.title,
            "description": task.description,
            "prompt": f"{task.title}\n\n{task.description}".rstrip(),
            "id": task.id,
        }
        return [self._filled(word, texts) for word in self.words]

    def _filled(self, word: str, texts: dict[str, str]) -> str:
        filled = _ANY.sub(lambda found: f"{{{found[1]}}}" if found[1] else texts[found[2]], word)
        first = _ANY.match(word)
        if first is None or first[2] is None:
            return filled
        if filled.startswith("-"):
            raise Unfit(
                f"{first[0]} begins with a dash, and {self.words[0]} could read it as an option: "
                "let the command read its standard input, or PUNCHLIST_TITLE and PUNCHLIST_DESCRIPTION"
            )
        if not filled:
            raise Unfit(f"{first[0]} is empty: {{prompt}} is the title with the description")
        return filled
