"""What messages and pages tell a person to type is a command that exists."""

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


def unknown(text: str) -> list[str]:
    """The commands of a group that a text names and that do not exist."""
    names = (f"{group} {word}" for group, word in _NAMED.findall(text))
    return [name for name in names if name not in COMMANDS and name not in ALIASES]


def literals(path: Path) -> Iterator[str]:
    """The texts of a module that names such a command, f-strings in their constant parts."""
    source = path.read_text("utf-8")
    if not _NAMED.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_command_of_a_group_that_a_page_names_exists(page: Path) -> None:
    assert unknown(page.read_text("utf-8")) == []


def test_every_command_of_a_group_that_a_message_names_exists() -> None:
    assert set(GROUPS) - {"list"} == {"daemon", "queue", "space", "agent"}
    texts = [(path.relative_to(ROOT), text) for path in SOURCES for text in literals(path)]
    assert [(str(path), wrong) for path, text in texts for wrong in unknown(text)] == []
    assert sum(len(_NAMED.findall(text)) for _, text in texts) > 50
