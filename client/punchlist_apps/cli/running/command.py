"""The command of `punch run`: replaces its placeholders with the text of a task.

The words aren't passed to a shell, but the command itself may interpret a word as an option or a program. Authors of
tasks must not be able to choose the command's options or the program that it runs. Therefore a word can't begin with
text that starts with a dash, and a word that is run as a program can't contain placeholders.
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
"""A placeholder. Doubled braces escape it: `{{title}}` becomes the text `{title}`."""


_INTERPRETERS = re.compile(r"(ba|da|a|z|k|mk|c|tc|fi)?sh|su|python[0-9.]*|perl|ruby|node|php")
"""Programs that run the argument of an option as a program."""

_PROGRAM_OPTION = re.compile(r"-[A-Za-z]*[ceEr]|--(command|eval|run|print)")
"""These options."""

_SHELL_CALLERS = frozenset({"ssh", "watch", "eval", "xargs", "parallel"})
"""Programs that pass all their arguments to a shell, or build commands from their arguments."""

_SELF_PROGRAMMABLE = frozenset(
    "make gmake just ninja rake awk gawk mawk sed dc ed ex vi vim nvim view less more "
    "sqlite3 psql mysql lua tclsh expect gdb tmux screen at batch npx".split()
)
"""Programs whose arguments may be settings or commands that run a program: `make 'X:=$(shell …)'`, `vim +!…`."""

_WRAPPERS = frozenset(
    "env sudo doas nice nohup setsid timeout time stdbuf exec chroot unshare nsenter flock script strace ltrace "
    "systemd-run runuser command ionice taskset chrt".split()
)
"""Programs that run their first argument that is neither an option nor a setting."""


class UnusableText(Exception):
    """The text of a task can't be passed as this argument."""


class Command:
    """A command to run for tasks.

    Args:
        words: The program and its arguments; `{title}`, `{description}`, `{prompt}` and `{id}` are placeholders.

    Raises:
        UsageError: The program isn't found, or a placeholder is unknown or part of a word that is run as a program.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        for word in self.words:
            for match in _PLACEHOLDER.finditer(word):
                if match[2] is not None and match[2] not in PLACEHOLDERS:
                    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
                    raise UsageError(
                        f"{match[0]} is not a placeholder: use {known}, or {{{match[0]}}} for the text itself"
                    )
        for index, word in enumerate(self.words):
            text = next((match[0] for match in _PLACEHOLDER.finditer(word) if match[2] not in (None, "id")), None)
            if text is not None and (runner := self._find_runner(index)) is not None:
                raise UsageError(
                    f"{runner} would run the text of a task as a program: write $PUNCHLIST_TITLE or "
                    f"$PUNCHLIST_DESCRIPTION, in double quotes, in place of {text}; no task was touched"
                )
        if not _PLACEHOLDER.search(self.words[0]) and shutil.which(self.words[0]) is None:
            raise StateError(f"command not found: {self.words[0]!r}; no task was touched")

    def _find_runner(self, index: int) -> str | None:
        """Return the program that would run the word at an index as code or as a program; None if none would."""
        if index == 0:
            return "punch run"
        before = [os.path.basename(word) for word in self.words[:index]]
        if not _SHELL_CALLERS.isdisjoint(before):
            return next(name for name in before if name in _SHELL_CALLERS)
        programs = before if before[0] in _WRAPPERS else before[:1]
        if not _SELF_PROGRAMMABLE.isdisjoint(programs):
            return next(name for name in programs if name in _SELF_PROGRAMMABLE)
        if before[-1] in _WRAPPERS or (before[0] in _WRAPPERS and not any(map(shutil.which, self.words[1:index]))):
            return before[-1] if before[-1] in _WRAPPERS else before[0]
        interpreter = next((at for at, name in enumerate(before) if _INTERPRETERS.fullmatch(name)), None)
        if interpreter is None:
            return None
        is_file = all(word.startswith("-") for word in before[interpreter + 1 :])
        return before[interpreter] if is_file or _PROGRAM_OPTION.fullmatch(before[-1]) else None

    def build_words(self, task: Task) -> list[str]:
        """Return the words with the task's text in place of the placeholders. Placeholders in the task's text are kept.

        Raises:
            UnusableText: A word would be empty, or begin with a dash from the task's text.
        """
        texts = {
            "title": task.title,
            "description": task.description,
            "prompt": joined_text(task.title, task.description, "\n\n").rstrip(),
            "id": task.id,
        }
        return [self._fill(word, texts) for word in self.words]

    def _fill(self, word: str, texts: dict[str, str]) -> str:
        filled = _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else texts[match[2]], word)
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
