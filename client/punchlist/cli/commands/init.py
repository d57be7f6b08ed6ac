"""`punch init`: write the project file that names this project's list."""

import os
import secrets

from punchlist import project
from punchlist.cli.context import Context
from punchlist.cli.exits import REFUSED
from punchlist.cli.failure import UsageError, tell

_MAX_STEM = 60


def run_init(context: Context) -> int:
    """Write `.punchlist.toml` into the working directory; one that is there already is never changed."""
    wanted = context.args.name or context.args.conversation
    path = os.path.join(os.getcwd(), project.NAME)
    name = wanted or _fresh_name(os.path.dirname(path))
    if not project.is_conversation_id(name):
        raise UsageError(f"{name!r} can't be a conversation's id: 1 to 128 of A-Z a-z 0-9 . _ : -")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(project.text_for(name))
    except FileExistsError:
        present = project.read(path)
        if wanted in (None, present):
            return _answer(context, path, present, f"{path} names {present} already")
        tell("exists", f"{path} names {present}", "edit it, or remove it first")
        return REFUSED
    return _answer(context, path, name, f"wrote {path}: this project's list is {name}")


def _answer(context: Context, path: str, name: str, line: str) -> int:
    return context.answer({"file": path, "conversation": name}, [line])


def _fresh_name(directory: str) -> str:
    """A name that tells of the directory and yet is nobody else's."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in _base(directory))
    stem = kept[:_MAX_STEM].strip("._-") or "project"
    return f"{stem}-{secrets.token_hex(3)}"


def _base(directory: str) -> str:
    return os.path.basename(directory.rstrip("/"))
