"""The project file `.punchlist.toml`: what it looks like, and how files that others may have planted are read.

Daemon and clients read it by the same rule. Only a regular file of our own user (or root) counts, no link is followed,
and no more than `MAX_BYTES` are read. Light on purpose: shell prompts come through here.
"""

import os
import stat

NAME = ".punchlist.toml"
MAX_BYTES = 65_536
LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_ID_CHARACTERS = LETTERS | frozenset("._:-")
_MAX_ID = 128
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hang us


class DirectoryError(Exception):
    """Which list a directory means can't be told.

    Attributes:
        advice: What to do next.
    """

    def __init__(self, message: str, advice: str = "name a list instead: punch -c NAME") -> None:
        super().__init__(message)
        self.advice = advice


def exists(path: str) -> bool:
    """Whether there is a project file at this path.

    Raises:
        DirectoryError: Something is there that must not decide which list we work on.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise DirectoryError(f"{path} is a link, and links are not followed", "put a file of your own in its place")
    if not stat.S_ISREG(found.st_mode):
        raise DirectoryError(f"{path} is not a file", "move it away")
    if not is_own_file(found):
        raise of_another(path, found)
    return True


def read(path: str) -> str:
    """The conversation that a project file names.

    Raises:
        DirectoryError: It names none, is not TOML, or must not be read; the message has its path.
    """
    try:
        text = small_file(path).decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or "not UTF-8") from error
    if not text.strip():
        raise _unreadable(path, "the file is empty")
    name = _plain(text)
    if name is None:
        name = _parsed(path, text)
    if not is_conversation_id(name):
        raise _unreadable(path, 'expected conversation = "…", 1 to 128 of A-Z a-z 0-9 . _ : -')
    return str(name)


def text_for(name: str) -> str:
    """The content of a project file that names a conversation."""
    return f'# The punchlist task list of this project; written by `punch init`.\nconversation = "{name}"\n'


def is_conversation_id(name: object) -> bool:
    """Whether this can be a conversation's id."""
    return isinstance(name, str) and 0 < len(name) <= _MAX_ID and name[0] in LETTERS and _ID_CHARACTERS.issuperset(name)


def small_file(path: str) -> bytes:
    """The first `MAX_BYTES` of a regular file of ours.

    Raises:
        OSError: It can't be read.
        DirectoryError: It is no regular file, or another user's.
    """
    descriptor = os.open(path, _OPEN)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DirectoryError(f"{path} is not a file", "move it away")
        if not is_own_file(found):
            raise of_another(path, found)
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def is_own_file(found: os.stat_result) -> bool:
    """Whether a file belongs to our user, or to root, who could do anything anyway."""
    return found.st_uid in (os.getuid(), 0)


def of_another(path: str, found: os.stat_result) -> DirectoryError:
    """The refusal of another user's file."""
    return DirectoryError(f"{path} belongs to another user (uid {found.st_uid}), who can't choose your list")


def _plain(text: str) -> "str | None":
    """The name in a file as `punch init` writes it, without the cost of a TOML reader."""
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if len(lines) != 1:
        return None
    key, equals, value = lines[0].partition("=")
    name = value.strip()[1:-1]
    if key.strip() == "conversation" and equals and value.strip() == f'"{name}"' and is_conversation_id(name):
        return name
    return None


def _parsed(path: str, text: str) -> object:
    import tomllib  # noqa: PLC0415 - a file as `punch init` writes it needs none

    try:
        return tomllib.loads(text).get("conversation")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unreadable(path, f"not TOML: {error}") from error


def _unreadable(path: str, reason: str) -> DirectoryError:
    return DirectoryError(
        f"{path}: {reason}", "correct the file, or remove it and run punch init; without it: punch -c NAME"
    )
