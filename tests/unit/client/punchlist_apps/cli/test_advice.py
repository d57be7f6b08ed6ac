"""Commands named in messages and pages exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist_apps.cli.parsing.index import ALIASES, COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parents[5]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SOURCES = sorted(path for folder in ("client", "daemon", "schemas") for path in (ROOT / folder).rglob("*.py"))

_NAMED = re.compile(r"\bpunch (daemon|queue|space|agent) ([a-z]+)\b")


def find_unknown(text: str) -> list[str]:
    """Return the group commands in a text that don't exist."""
    names = (f"{group} {word}" for group, word in _NAMED.findall(text))
    return [name for name in names if name not in COMMANDS and name not in ALIASES]


def find_literals(path: Path) -> Iterator[str]:
    """Yield all string constants of a module that names group commands; f-strings are yielded in parts."""
    source = path.read_text("utf-8")
    if not _NAMED.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_group_commands_in_docs_exist(page: Path) -> None:
    assert find_unknown(page.read_text("utf-8")) == []


def test_group_commands_in_messages_exist() -> None:
    assert set(GROUPS) - {"list"} == {"daemon", "queue", "space", "agent"}
    texts = [(path.relative_to(ROOT), text) for path in SOURCES for text in find_literals(path)]
    assert [(str(path), wrong) for path, text in texts for wrong in find_unknown(text)] == []
    assert sum(len(_NAMED.findall(text)) for _, text in texts) > 50
