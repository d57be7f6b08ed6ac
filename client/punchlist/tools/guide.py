"""What a dialect tells a model, for the tools that are offered and under the names that they have.

A guide is text in lines. `{add_task}` stands for the name of that tool. `[one|two]` is the first of these pieces whose
tools are all offered, or nothing. `<one|two>` is the same, but where none fits the whole line is left out. So is a line
that names a tool which is not offered.
"""

import re
from collections.abc import Iterator, Mapping

_PIECES = re.compile(r"([\[<])([^\[\]<>]*)[\]>]")
_TOOL = re.compile(r"\{(\w+)\}")


def rendered(guide: str, names: Mapping[str, str]) -> str:
    """The text of a guide."""
    return "\n".join(_lines(guide, names))


def tools_of(guide: str) -> set[str]:
    return set(_TOOL.findall(guide))


def _lines(guide: str, names: Mapping[str, str]) -> Iterator[str]:
    def piece(match: re.Match[str]) -> str:
        nothing = "" if match[1] == "[" else None
        found = next((one for one in match[2].split("|") if tools_of(one) <= names.keys()), nothing)
        return "{}" if found is None else found

    for line in guide.splitlines():
        text = _PIECES.sub(piece, line)
        if "{}" not in text and tools_of(text) <= names.keys():
            yield _TOOL.sub(lambda match: names[match[1]], text)
