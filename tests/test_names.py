"""Names use the words of the glossary in CONTRIBUTING.md: home-made ones do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("client", "daemon", "schemas")

BANNED = {
    "doubt": "damage, or unknown outcome",
    "fanout": "subscriptions",
    "fit": "shorten, cut",
    "heed": "poll",
    "keep": "hold, save, add",
    "knock": "connect",
    "lead": "catch up",
    "led": "catch up",
    "look": "read, check, find",
    "looked": "read, check, find",
    "mark": "position, note",
    "mend": "repair",
    "news": "changes",
    "nudge": "wake",
    "ours": "own, in place",
    "said": "noted, written",
    "say": "note, write",
    "tail": "recent, rest",
    "tell": "show, write, report, deliver",
    "told": "shown, announced, delivered",
    "wear": "format",
}
"""A word that a public name may not have → what to say."""

FIELD = ("high_water_mark", "HighWaterMark", "do_mark")
"""The field's own words that hold one of these; file managers mark what one command then changes."""


def words(name: str) -> set[str]:
    for term in FIELD:
        name = name.replace(term, "")
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def names(module: str, source: str) -> Iterator[str]:
    """The module itself, and all classes, functions and methods in it, private ones too."""
    yield module
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{module}.{node.name}"


def home_made(module: str, source: str) -> set[str]:
    return {name for name in names(module, source) if words(name.rpartition(".")[2]) & BANNED.keys()}


def test_no_name_has_a_home_made_word() -> None:
    found: set[str] = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__")
            found |= home_made(module, path.read_text("utf-8"))
    assert found == set(), "name it by the right side of BANNED"


@pytest.mark.parametrize(
    "source",
    [
        "def tell_all(): ...",
        "class NewsFeed: ...",
        "class A:\n    async def _keep(self): ...",
        "def f():\n    def tell(): ...",
    ],
)
def test_a_home_made_name_is_found(source: str) -> None:
    assert len(home_made("m", source)) == 1


@pytest.mark.parametrize("source", ["def keeper(): ...", "def do_mark_all(): ...", "class HighWaterMark: ..."])
def test_other_names_are_none(source: str) -> None:
    assert home_made("m", source) == set()


def test_the_glossary_has_at_most_40_terms() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Words\n")[2].partition("\n## ")[0]
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)
    assert 20 <= len(terms) <= 40
    assert len(set(terms)) == len(terms)
