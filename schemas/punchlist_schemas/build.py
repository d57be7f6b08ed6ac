"""Build stamps, which let a client and a daemon detect whether they run the same code."""

import binascii
import os
import sys

_PACKAGES = ("punchlistd", "punchlist_schemas")
_DIGITS = 8
_HEXADECIMAL = frozenset("0123456789abcdef")


def build_stamp(version: str) -> str:
    """Return the version and a digest of the daemon's sources: `0.2.0+1f0c8a2b`. Without sources, return the version.

    The digest covers only the names and lengths of the files, which takes about a millisecond. The digest misses edits
    that leave every file's length unchanged. Two installations of the same files have the same stamp.
    """
    digest = 0
    for package in _PACKAGES:
        root = next((path for place in sys.path if place and os.path.isdir(path := f"{place}/{package}")), None)
        if root is None:
            return version
        folders = [root]
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name.endswith(".py"):
                        text = f"{entry.path[len(root) :]} {entry.stat().st_size}\n"
                        digest = binascii.crc32(text.encode(), digest)
                    elif entry.name != "__pycache__" and entry.is_dir():
                        folders.append(entry.path)
    return f"{version}+{digest:0{_DIGITS}x}"


def is_same_code(build: str, other: str) -> bool:
    """Return whether two stamps have the same version and digest, so that the daemon's files are the same.

    Commits in the stamps are ignored, because most of them don't change the daemon's files. The version is compared
    because a digest of lengths can be the same for two versions.
    """
    version, _, rest = build.partition("+")
    digest = rest.rpartition("+")[2]
    is_digest = len(digest) == _DIGITS and set(digest) <= _HEXADECIMAL  # a commit begins with "g"
    other_version, _, other_rest = other.partition("+")
    return build == other or (is_digest and version == other_version and digest == other_rest.rpartition("+")[2])
