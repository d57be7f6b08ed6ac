"""Renders a dialect's instructions for the tools that are offered, under their offered names.

A guide consists of lines of text. `{add_task}` stands for the name of that tool. `[first|second]` is replaced by the
first alternative whose tools are all offered, or removed. `<first|second>` works the same way, except that the whole
line is dropped if no alternative fits. A line that names a tool that isn't offered is dropped too.
"""

import re
from collections.abc import Iterator, Mapping

_PIECES = re.compile(r"([\[<])([^\[\]<>]*)[\]>]")
_TOOL = re.compile(r"\{(\w+)\}")


def render_guide(guide: str, names: Mapping[str, str]) -> str:
    """Return the text of a guide. `names` maps original names of offered tools to those that the model calls."""
    return "\n".join(_render_lines(guide, names))


def find_tools(guide: str) -> set[str]:
    return set(_TOOL.findall(guide))


def _render_lines(guide: str, names: Mapping[str, str]) -> Iterator[str]:
    def choose(match: re.Match[str]) -> str:
        # A line that still contains {} is dropped below.
        default = "" if match[1] == "[" else "{}"
        return next((text for text in match[2].split("|") if find_tools(text) <= names.keys()), default)

    for line in guide.splitlines():
        text = _PIECES.sub(choose, line)
        if "{}" not in text and find_tools(text) <= names.keys():
            yield _TOOL.sub(lambda match: names[match[1]], text)
