"""The command of `punch run`: its words, with a task's text filled into the placeholders.

We give the words to no shell, but the command itself may read options or a program out of them. So a text that begins
with a dash is rejected where it would begin a word, and a placeholder where a word is a program: whoever may add a task
must choose neither the options of your command nor what it runs.
"""

import os
import re
import shutil
from collections.abc import Sequence

from punchlist.base.text import joined_text
from punchlist_apps.cli.printing.failure import StateError, UsageError
from punchlist_schemas.things import Task

PLACEHOLDERS = ("title", "description", "prompt", "id")

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
"""A doubled brace stands for itself: `{{title}}` becomes the text `{title}`."""


_INTERPRETERS = re.compile(r"(ba|da|a|z|k|mk|c|tc|fi)?sh|su|python[0-9.]*|perl|ruby|node|php")
"""Programs that run a word as a program, if an option says so."""

_PROGRAM_OPTION = re.compile(r"-[A-Za-z]*[ceEr]|--(command|eval|run|print)")
"""The options that say so."""

_SHELL_CALLERS = frozenset({"ssh", "watch", "eval", "xargs", "parallel"})
"""Programs that hand all their words to a shell, or make commands of them."""

_SELF_PROGRAMMABLE = frozenset(
    "make gmake just ninja rake awk gawk mawk sed dc ed ex vi vim nvim view less more "
    "sqlite3 psql mysql lua tclsh expect gdb tmux screen at batch npx".split()
)
"""Programs whose words may be settings or commands that run something: `make 'X:=$(shell …)'`, `vim +!…`."""

_WRAPPERS = frozenset(
    "env sudo doas nice nohup setsid timeout time stdbuf exec chroot unshare nsenter flock script strace ltrace "
    "systemd-run runuser command ionice taskset chrt".split()
)
"""Programs that run the first word that is neither option nor setting."""


class UnusableText(Exception):
    """The text of a task can't be passed as this argument."""


class Command:
    """A command for tasks.

    Args:
        words: The program and its arguments; `{title}`, `{description}`, `{prompt}` and `{id}` are placeholders.

    Raises:
        UsageError: There is no such program, a placeholder has another name, or it stands in a word that is run.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        for word in self.words:
            for found in _PLACEHOLDER.finditer(word):
                if found[2] is not None and found[2] not in PLACEHOLDERS:
                    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                    raise UsageError(
                        f"{found[0]} is not a placeholder: use {known}, or {{{found[0]}}} for the text itself"
                    )
        for place, word in enumerate(self.words):
            text = next((found[0] for found in _PLACEHOLDER.finditer(word) if found[2] not in (None, "id")), None)
            if text is not None and (runner := self._find_runner(place)) is not None:
                raise UsageError(
                    f"{runner} would run the text of a task as a program: write $PUNCHLIST_TITLE or "
                    f"$PUNCHLIST_DESCRIPTION, in double quotes, in place of {text}; no task was touched"
                )
        if not _PLACEHOLDER.search(self.words[0]) and shutil.which(self.words[0]) is None:
            raise StateError(f"there is no command {self.words[0]!r}; no task was touched")

    def _find_runner(self, place: int) -> str | None:
        """What would run the word at a place as a program, or take it for the name of one; None: nothing known."""
        if place == 0:
            return "punch run"
        before = [os.path.basename(word) for word in self.words[:place]]
        if not _SHELL_CALLERS.isdisjoint(before):
            return next(name for name in before if name in _SHELL_CALLERS)
        programs = before if before[0] in _WRAPPERS else before[:1]
        if not _SELF_PROGRAMMABLE.isdisjoint(programs):
            return next(name for name in programs if name in _SELF_PROGRAMMABLE)
        if before[-1] in _WRAPPERS or (before[0] in _WRAPPERS and not any(map(shutil.which, self.words[1:place]))):
            return before[-1] if before[-1] in _WRAPPERS else before[0]
        interpreter = next((at for at, name in enumerate(before) if _INTERPRETERS.fullmatch(name)), None)
        if interpreter is None:
            return None
        is_file = all(word.startswith("-") for word in before[interpreter + 1 :])
        return before[interpreter] if is_file or _PROGRAM_OPTION.fullmatch(before[-1]) else None

    def build_words(self, task: Task) -> list[str]:
        """The words with the task's text in place of the placeholders; text that is filled in is not searched again.

        Raises:
            Unfit: An argument would begin with a dash that comes from the task, or be empty.
        """
        texts = {
            "title": task.title,
            "description": task.description,
            "prompt": joined_text(task.title, task.description, "\n\n").rstrip(),
            "id": task.id,
        }
        return [self._fill(word, texts) for word in self.words]

    def _fill(self, word: str, texts: dict[str, str]) -> str:
        filled = _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else texts[found[2]], word)
        first = _PLACEHOLDER.match(word)
        if first is None or first[2] is None:
            return filled
        if filled.startswith("-"):
            raise UnusableText(
                f"{first[0]} begins with a dash, and {self.words[0]} could read it as an option: "
                "let the command read its standard input, or PUNCHLIST_TITLE and PUNCHLIST_DESCRIPTION"
            )
        if not filled:
            raise UnusableText(f"{first[0]} is empty: {{prompt}} is the title with the description")
        return filled
