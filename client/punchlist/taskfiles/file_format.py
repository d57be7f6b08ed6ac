"""Code shared by the mirror file formats: the recorded origin, digests, and parsing helpers. No I/O."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import msgspec

from punchlist.base.text import one_line
from punchlist_schemas.things import Task

Fields = Mapping[str, Any]
"""Members of a task in a file format. Values are compared with `==`; sets are frozensets."""

FOREIGN_ID = "mirror_id"
"""Metadata key for the id under which another program added the task to a file."""

MEMBER = "punchlist"
"""Name of the member of written files that contains their origin. Other programs ignore it."""

_MAX_DEPTH = 64


class Unreadable(Exception):
    """A file does not follow its format."""


class Origin(msgspec.Struct, frozen=True):
    """The origin of a written file.

    Attributes:
        conversation: The conversation that the file was written for.
        epoch: Epoch of the log.
        version: Version of the conversation in the file.
        digest: Digest of the written contents.
    """

    conversation: str
    epoch: str
    version: int
    digest: str = ""


class Document(msgspec.Struct, frozen=True):
    """A parsed file.

    Attributes:
        tasks: Its tasks by their ids in the file. Ids generated for tasks without an id start with a space.
        origin: Its recorded origin; None if it has no valid one.
        digest: Digest of its current contents.
        deleted: Ids of tasks marked as deleted.
        is_whole: Whether the file contains the whole list, so that a missing task may have been deleted.
    """

    tasks: dict[str, Fields]
    origin: Origin | None
    digest: str
    deleted: frozenset[str] = frozenset()
    is_whole: bool = False

    @property
    def is_untouched(self) -> bool:
        """Whether the contents are unchanged since the mirror wrote the file."""
        return self.origin is not None and self.origin.digest == self.digest


class Form(Protocol):
    """A format of mirror files."""

    name: str
    is_single: bool
    """Whether a conversation has one file, `STEM.json`, instead of one for each task."""

    def stems(self, conversation: str) -> tuple[str, ...]:
        """Return possible names of a conversation's file or folder, best first. Only the last one is certain to be
        unique."""
        ...

    def conversation(self, stem: str) -> str | None: ...

    def folder(self, stem: str) -> tuple[str, ...]:
        """Return the parts of the path of a conversation's folder, relative to the mirror's directory."""
        ...

    def is_document(self, name: str, stem: str) -> bool:
        """Return whether a file with this name in the folder belongs to the conversation."""
        ...

    def render(self, origin: Origin, tasks: Iterable[Task], stem: str) -> dict[str, bytes]: ...

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        """Return the content to write, including members that other programs have added to the existing file."""
        ...

    def parse(self, name: str, data: bytes) -> Document:
        """Parse a file.

        Raises:
            Unreadable: The file does not follow this format.
        """
        ...

    def fields(self, task: Task) -> Fields: ...


def digest_of(value: Any) -> str:
    """Return a short digest of a JSON value, independent of key order and formatting."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_object(data: bytes) -> dict[str, Any]:
    """Parse the JSON object in a file, which may start with a byte order mark.

    Raises:
        Unreadable: The file is not a JSON object.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable("expected an object")
    return cast("dict[str, Any]", value)


def origin_in(value: Mapping[str, Any]) -> Origin | None:
    """Return the recorded origin of a file; None if it is missing or invalid."""
    try:
        return msgspec.convert(value.get(MEMBER), Origin)
    except msgspec.ValidationError:
        return None


def text_in(value: Mapping[str, Any], member: str) -> str:
    """Return a member that contains text; "" if it is null or missing.

    Raises:
        Unreadable: The member is not a string, or contains a lone surrogate.
    """
    text = value.get(member)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Unreadable(f"{member}: expected a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"{member}: contains a lone surrogate") from error
    return text


def title_in(value: Mapping[str, Any], member: str) -> str:
    """Return a title as one line, without surrounding white space."""
    text = text_in(value, member)
    return one_line(text) if len(text.splitlines()) > 1 else text.strip()


def id_in(value: Mapping[str, Any]) -> str:
    id = value.get("id")
    return str(id) if isinstance(id, str | int) and not isinstance(id, bool) else ""


def write(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
