"""Which list a command works on, and what there is to say about it to whoever is at the terminal."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

from punchlist import project
from punchlist.cli.failure import UnknownList
from punchlist.cli.safe import safe
from punchlist_schemas.directory import OUTSIDE, Meant

if TYPE_CHECKING:
    from punchlist.cli.context import Context

_PAGE = 10_000
_NEAR = 3


def conversation(context: "Context") -> str:
    """The list that is meant: the option, PUNCHLIST_CONVERSATION, what the directory means, or `default`.

    Raises:
        DirectoryError: The directory's project file or repository can't be used, or may not name this list.
    """
    if context.args.conversation is not None:
        return str(context.args.conversation)  # also "": a variable that is not set must not mean another list
    name, meant = project.of_directory(os.environ) or (OUTSIDE, None)
    if meant is not None:
        _allow(context, meant)
        _tell_once(context, meant)
    return name


def check(context: "Context", name: str) -> None:
    """See that somebody has used this list; `default` is always there.

    Raises:
        UnknownList: Nobody has.
    """
    if name == OUTSIDE or version_of(context, name):
        return
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = context.call("conversation.list", limit=_PAGE, cursor=cursor)
        names += [one["conversation"] for one in page["conversations"]]
        cursor = page.get("next_cursor")
        if not cursor:
            raise UnknownList(name, get_close_matches(name, names, n=_NEAR))


def version_of(context: "Context", name: str) -> int:
    """The version that a list is at; 0: nobody used it."""
    return int(context.call("conversation.get", conversation=name)["conversation"]["version"])


@contextmanager
def newness_told(context: "Context") -> Generator[None]:
    """Tells a person that a change has made a new list of the name after `-c`: it may be a slip."""
    name = context.args.conversation
    watched = bool(name) and sys.stderr.isatty() and not version_of(context, name)
    yield
    if watched and version_of(context, name):
        context.note(f"new list {safe(name)}")


def _allow(context: "Context", meant: Meant) -> None:
    data_dir = context.target.data_dir
    if meant.is_allowed(data_dir) or project.may_be_taken(meant, data_dir, version_of(context, meant.conversation)):
        return
    refusal = project.not_allowed(meant)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise refusal
    sys.stderr.write(f"{safe(str(refusal))}.\nWork on it from here? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise refusal
    meant.allow(data_dir)


def _tell_once(context: "Context", meant: Meant) -> None:
    """Once a day and list: nobody has named it, and `default` may be where somebody looks for his tasks."""
    data_dir, name = context.target.data_dir, meant.conversation
    if meant.file is None and not project.was_told(data_dir, name, time.time()):
        context.note(f"punch: this repository's list is {name}; the one outside of repositories: -c {OUTSIDE}")
        project.note_told(data_dir, name)
