"""Markdown with one sentence a line: a change of a sentence is then a change of one line.

Run it with the pages to rewrite. Code, tables and headings stay as they are, and so does what a page renders to: lines
are only broken where a space stands, and only joined inside a paragraph or a list item.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_FENCE = re.compile(r"\s*(```|~~~)")
_ALONE = re.compile(r"\s*(\||#|<|>|\[[^\]]+\]: |(-\s*){3,}$|$)")
"""A line that is no prose: of a table, a heading, HTML, a quotation, an address, a rule, or empty."""
_ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s+")
_MARKUP = re.compile(r"([-*+]|\d+[.)]|#+|>|\||=+|-+)(\s|$)")
"""What would be markup if it began a line."""

_TOKEN = re.compile(r"(`+)(?:.*?)\1|\[|\]|\(|\)|[.!?](?=[*_\"')\]”’]*\s)|\s+")
_END = re.compile(r"[.!?][*_\"'”’)\]]*$")
_BEGIN = re.compile(r"[*_\"'(“\[]*([A-Z0-9`]|punchlist\b)")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|No|Mr|Dr)|(?:^|\s)[A-Z]|\.)\.$")


def sentences(prose: str) -> Iterator[str]:
    """The sentences of a paragraph. What stands in parentheses, brackets or backticks is never taken apart."""
    depth = begun = 0
    for token in _TOKEN.finditer(prose):
        if token[0] in ("(", "["):
            depth += 1
        elif token[0] in (")", "]"):
            depth -= 1
        elif token[0].isspace() and depth <= 0:
            before, after = prose[begun : token.start()], prose[token.end() :]
            ends = _END.search(before) and not _ABBREVIATION.search(before)
            if ends and _BEGIN.match(after) and not _MARKUP.match(after):
                yield before
                begun = token.end()
    yield prose[begun:]


def rewritten(page: str) -> str:
    """A page with one sentence a line."""
    done: list[str] = []
    prose: list[str] = []
    indent = prefix = ""

    def end() -> None:
        if prose:
            first, *others = sentences(re.sub(r"\s+", " ", " ".join(prose)).strip())
            done.append(prefix + first)
            done.extend(indent + other for other in others)
            prose.clear()

    is_code = False
    for line in page.splitlines():
        if is_code or _FENCE.match(line):
            end()
            is_code ^= bool(_FENCE.match(line))
            done.append(line)
        elif _ALONE.match(line):
            end()
            done.append(line)
        elif item := _ITEM.match(line):
            end()
            prefix, indent = item[0], " " * len(item[0])
            prose.append(line[item.end() :])
        else:
            if not prose:
                prefix = indent = line[: len(line) - len(line.lstrip())]
            prose.append(line)
    end()
    return "\n".join(done) + "\n"


def main(pages: Iterable[str]) -> None:
    """Rewrite pages in place."""
    for path in map(Path, pages):
        path.write_text(rewritten(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
