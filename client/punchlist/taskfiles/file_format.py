"""What both forms of mirror files share: where a file says it came from, and how files become lists. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from punchlist.base.text import one_line
from punchlist_schemas.things import Task

Fields = Mapping[str, Any]
"""Members of a task as a file form has them. Values are compared with `==`; sets are frozensets."""

FOREIGN_ID = "mirror_id"
"""Key of a task's metadata that holds the id which the program that added it in a file knows it by."""

MEMBER = "punchlist"
"""Member of our files that older readers ignore: where the file came from."""

_MAX_DEPTH = 64


class Unreadable(Exception):
    """A file that is not in its form."""


class Origin(msgspec.Struct, frozen=True):
    """Where a file came from: the version of a conversation in the log `epoch`, and a digest of what it then said."""

    conversation: str
    epoch: str
    version: int
    digest: str = ""


class Document(msgspec.Struct, frozen=True):
    """A file as read.

    Attributes:
        tasks: What it says, by the ids that it uses; a task without an id of its own has one that begins with a space.
        origin: Where it says it came from.
        digest: Of what it says.
        deleted: Ids that it says are deleted.
        is_whole: Whether it is the whole list, so that a task that is missing may have been deleted.
    """

    tasks: dict[str, Fields]
    origin: Origin | None
    digest: str
    deleted: frozenset[str] = frozenset()
    is_whole: bool = False

    @property
    def is_untouched(self) -> bool:
        """Whether it says just what we once wrote."""
        return self.origin is not None and self.origin.digest == self.digest


class Form(Protocol):
    """One form of mirror files."""

    name: str
    is_single: bool
    """Whether a conversation has one file, `STEM.json`, instead of one for each task."""

    def stems(self, conversation: str) -> tuple[str, ...]:
        """What a conversation's file or folder may be called, the best first; the last one is nobody else's."""
        ...

    def conversation(self, stem: str) -> str | None: ...

    def folder(self, stem: str) -> tuple[str, ...]:
        """The folders below the mirror's directory that hold a conversation's files."""
        ...

    def is_document(self, name: str, stem: str) -> bool:
        """Whether a file of this name in the folder is one of the conversation's."""
        ...

    def render(self, origin: Origin, tasks: Iterable[Task], stem: str) -> dict[str, bytes]: ...

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        """A file of ours, with what other programs keep in the one that stands there."""
        ...

    def parse(self, name: str, data: bytes) -> Document:
        """What a file says.

        Raises:
            Unreadable: It is not in this form.
        """
        ...

    def fields(self, task: Task) -> Fields: ...


def digest_of(value: Any) -> str:
    """A short digest of a JSON value, the same whatever way it is written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_object(data: bytes) -> dict[str, Any]:
    """The JSON object in a file; a byte order mark is tolerated.

    Raises:
        Unreadable: It is something else.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable("expected an object")
    return cast("dict[str, Any]", value)


def origin_in(value: Mapping[str, Any]) -> Origin | None:
    """Where a file says it came from; None if it does not say so, or not in our words."""
    try:
        return msgspec.convert(value.get(MEMBER), Origin)
    except msgspec.ValidationError:
        return None


def text_in(value: Mapping[str, Any], member: str) -> str:
    """A text member; null and nothing count as empty.

    Raises:
        Unreadable: It is something else, or holds contains half of a surrogate pair.
    """
    text = value.get(member)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Unreadable(f"{member}: expected a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"{member}: contains half of a surrogate pair") from error
    return text


def title_in(value: Mapping[str, Any], member: str) -> str:
    """A title: one line, without space around it."""
    text = text_in(value, member)
    return one_line(text) if len(text.splitlines()) > 1 else text.strip()


def id_in(value: Mapping[str, Any]) -> str:
    found = value.get("id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


def write(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
