"""The project file `.punchlist.toml`: its format, and functions that safely read files which may come from others.

Only regular files of this user or root are read, without following links, up to `MAX_BYTES`. Imports little, because
shell prompts load this module.
"""

import os
import stat

NAME = ".punchlist.toml"
MAX_BYTES = 65_536
LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_ID_CHARACTERS = LETTERS | frozenset("._:-")
_MAX_ID = 128
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a named pipe must not block


class DirectoryError(Exception):
    """The list of a directory can't be determined.

    Attributes:
        advice: What the user can do.
    """

    def __init__(self, message: str, advice: str = "name a list instead: punch -c NAME") -> None:
        super().__init__(message)
        self.advice = advice


def exists(path: str) -> bool:
    """Return whether a project file exists at this path.

    Raises:
        DirectoryError: The file is not a regular file of this user.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode):
        raise DirectoryError(f"{path} is a link, and links are not followed", "replace it with a file of your own")
    _check_file(path, status)
    return True


def read(path: str) -> str:
    """Return the conversation that a project file names.

    Raises:
        DirectoryError: The file names no conversation, is not TOML, or must not be read; the message has its path.
    """
    try:
        text = read_small_file(path).decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise _invalid(path, getattr(error, "strerror", None) or "not UTF-8") from error
    if not text.strip():
        raise _invalid(path, "the file is empty")
    name = _parse_simple(text)
    if name is None:
        name = _parse_toml(path, text)
    if not is_conversation_id(name):
        raise _invalid(path, 'expected conversation = "…", 1 to 128 of A-Z a-z 0-9 . _ : -')
    return str(name)


def format_text(name: str) -> str:
    """Return the content of a project file for a conversation."""
    return f'# The punchlist task list of this project; written by `punch init`.\nconversation = "{name}"\n'


def is_conversation_id(name: object) -> bool:
    """Return whether this is a valid id of a conversation."""
    return isinstance(name, str) and 0 < len(name) <= _MAX_ID and name[0] in LETTERS and _ID_CHARACTERS.issuperset(name)


def read_small_file(path: str) -> bytes:
    """Return the first `MAX_BYTES` of a regular file of this user.

    Raises:
        OSError: The file can't be read.
        DirectoryError: The file is not a regular file, or belongs to another user.
    """
    descriptor = os.open(path, _OPEN)
    try:
        _check_file(path, os.fstat(descriptor))
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def check_owner(path: str, status: os.stat_result) -> None:
    """Reject a file that belongs to another user. Root's files are accepted, because root can access everything anyway.

    Raises:
        DirectoryError: The file belongs to another user.
    """
    if status.st_uid not in (os.getuid(), 0):
        raise DirectoryError(f"{path} belongs to another user (uid {status.st_uid}), who can't choose your list")


def _check_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DirectoryError(f"{path} is not a file", "move it away")
    check_owner(path, status)


def _parse_simple(text: str) -> "str | None":
    """Return the name in a file written by `punch init`, without importing a TOML parser."""
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if len(lines) != 1:
        return None
    key, equals, value = lines[0].partition("=")
    name = value.strip()[1:-1]
    if key.strip() == "conversation" and equals and value.strip() == f'"{name}"' and is_conversation_id(name):
        return name
    return None


def _parse_toml(path: str, text: str) -> object:
    import tomllib  # noqa: PLC0415 - not needed for files of `punch init`

    try:
        return tomllib.loads(text).get("conversation")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _invalid(path, f"not TOML: {error}") from error


def _invalid(path: str, reason: str) -> DirectoryError:
    return DirectoryError(
        f"{path}: {reason}", "correct the file, or remove it and run punch init; or name a list: punch -c NAME"
    )
