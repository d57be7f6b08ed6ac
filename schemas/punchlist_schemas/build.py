"""Which sources a daemon or a client runs: a stamp by which the two compare."""

import binascii
import os
import sys

_PACKAGES = ("punchlistd", "punchlist_schemas")
_DIGITS = 8
_HEXADECIMAL = frozenset("0123456789abcdef")


def build_stamp(version: str) -> str:
    """The version and a digest of the installed daemon's sources: `0.2.0+1f0c8a2b`; without them the version alone.

    The digest is of names and lengths, which takes about a millisecond: other code is told from this one, except for
    edits that keep every file's length. Two installations of the same files have the same stamp.
    """
    digest = 0
    for package in _PACKAGES:
        root = next((path for place in sys.path if place and os.path.isdir(path := f"{place}/{package}")), None)
        if root is None:
            return version
        waiting = [root]
        for folder in waiting:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.name.endswith(".py"):
                        text = f"{entry.path[len(root) :]} {entry.stat().st_size}\n"
                        digest = binascii.crc32(text.encode(), digest)
                    elif entry.name != "__pycache__" and entry.is_dir():
                        waiting.append(entry.path)
    return f"{version}+{digest:0{_DIGITS}x}"


def is_same_code(build: str, other: str) -> bool:
    """Return whether two stamps stand for the same files of the daemon.

    Those of one version with one digest do, whatever commits they were made from: most leave the daemon's files alone.
    The digest alone doesn't tell two versions apart, since it is of lengths.
    """
    version, _, rest = build.partition("+")
    digest = rest.rpartition("+")[2]
    is_digest = len(digest) == _DIGITS and set(digest) <= _HEXADECIMAL  # a commit begins with a g
    its_version, _, its_rest = other.partition("+")
    return build == other or (is_digest and version == its_version and digest == its_rest.rpartition("+")[2])
