"""The project file `.punchlist.toml`: the one way in which a working directory names a list.

`punch init` writes it. It is looked for from the working directory upwards, nothing but this file counts, and one that
can't be understood is an error, never a reason to fall back to another list. Files of other users are passed over:
nobody else decides which list we work on. Light on purpose: shell prompts come through here.

The whole order, for the command line and for tools: the argument or option, an attached session's id given in its place
(the daemon finds the list), the library's scope, PUNCHLIST_CONVERSATION, the project file, and for the command line
`default`. The library alone never looks at the working directory.
"""

import os
import stat

NAME = ".punchlist.toml"
_MAX_BYTES = 65_536
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_ID_CHARACTERS = _LETTERS | frozenset("._:-")
_MAX_ID = 128


class ProjectFileError(Exception):
    """A project file that can't be understood."""


def find(directory: "str | None" = None) -> "str | None":
    """The path of the nearest project file of ours, from `directory` (the working directory) upwards."""
    try:
        place = os.path.abspath(directory) if directory else os.getcwd()
    except OSError:
        return None
    while True:
        path = os.path.join(place, NAME)
        try:
            found = os.stat(path)
        except OSError:
            pass
        else:
            if stat.S_ISREG(found.st_mode) and found.st_uid in (os.getuid(), 0):
                return path
        parent = os.path.dirname(place)
        if parent == place:
            return None
        place = parent


def conversation(directory: "str | None" = None) -> "str | None":
    """The conversation that the nearest project file names, or None where there is no such file.

    Raises:
        ProjectFileError: There is one and it names none.
    """
    path = find(directory)
    return None if path is None else read(path)


def read(path: str) -> str:
    """The conversation that a project file names.

    Raises:
        ProjectFileError: It names none, or is not readable as TOML; tells the place.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise ProjectFileError(f"{path}: {error}") from error
    name = _plain(text)
    if name is None:
        name = _parsed(path, text)
    if not is_conversation_id(name):
        raise ProjectFileError(f'{path}: expected conversation = "…", 1 to 128 of A-Z a-z 0-9 . _ : -')
    return str(name)


def text_for(name: str) -> str:
    """The content of a project file that names a conversation."""
    return f'# The punchlist task list of this project; written by `punch init`.\nconversation = "{name}"\n'


def is_conversation_id(name: object) -> bool:
    """Whether this can be a conversation's id."""
    return (
        isinstance(name, str) and 0 < len(name) <= _MAX_ID and name[0] in _LETTERS and _ID_CHARACTERS.issuperset(name)
    )


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
    import tomllib

    try:
        return tomllib.loads(text).get("conversation")
    except tomllib.TOMLDecodeError as error:
        raise ProjectFileError(f"{path}: not TOML: {error}") from error
