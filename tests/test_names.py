"""Public names use the words of the glossary in CONTRIBUTING.md: home-made ones do not come back."""

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

EXCEPTIONS = {
    "punchlist.cli.failure.tell",
    "punchlist.cli.failure.tell_any",
    "punchlist.cli.failure.tell_gap",
    "punchlist.cli.failure.tell_refusal",
    "punchlist.cli.render.told_once",
}
"""Names that have such a word all the same. One that goes is struck here; none is added."""

FIELD = ("high_water_mark", "HighWaterMark")
"""The field's own words that hold one of these."""

NEW_ROOMS = {"punchlist.ui": 10}
"""How many such names a room may have that is too new to name each. The number only falls."""


def words(name: str) -> set[str]:
    for term in FIELD:
        name = name.replace(term, "")
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def public_names(module: str, source: str) -> Iterator[str]:
    """The module itself, and the classes, functions and methods in it whose names begin with no underscore."""

    def inside(prefix: str, body: list[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith(
                "_"
            ):
                yield (name := f"{prefix}.{node.name}")
                if isinstance(node, ast.ClassDef):
                    yield from inside(name, node.body)

    yield module
    yield from inside(module, ast.parse(source).body)


def home_made(module: str, source: str) -> set[str]:
    return {name for name in public_names(module, source) if words(name.rpartition(".")[2]) & BANNED.keys()}


def test_a_public_name_has_no_home_made_word_but_for_the_exceptions() -> None:
    found: set[str] = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts).removesuffix(".__init__")
            found |= home_made(module, path.read_text("utf-8"))
    for room, limit in NEW_ROOMS.items():
        there = {name for name in found if name.startswith(room + ".")}
        assert len(there) <= limit, f"name them by the right side of BANNED: {there}"
        found -= there
    assert found - EXCEPTIONS == set(), "name it by the right side of BANNED"
    assert EXCEPTIONS - found == set(), "strike these exceptions: nothing has the name any more"


def test_in_the_daemon_private_names_have_none_either() -> None:
    found: set[str] = set()
    for path in (ROOT / "daemon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_named and words(node.name) & BANNED.keys():
                found.add(f"{path.stem}.{node.name}")
    assert found == set(), "name it by the right side of BANNED"


def test_the_exceptions_only_become_fewer() -> None:
    assert len(EXCEPTIONS) <= 5


@pytest.mark.parametrize(
    "source",
    ["def tell_all(): ...", "class NewsFeed: ...", "class A:\n    async def keep(self): ...", "def lead(): ..."],
)
def test_a_home_made_name_is_found(source: str) -> None:
    assert len(home_made("m", source)) == 1


@pytest.mark.parametrize("source", ["def _tell(): ...", "def keeper(): ...", "def f():\n    def tell(): ..."])
def test_other_names_are_none(source: str) -> None:
    assert home_made("m", source) == set()


def test_the_glossary_has_at_most_40_terms() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Words\n")[2].partition("\n## ")[0]
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)
    assert 20 <= len(terms) <= 40
    assert len(set(terms)) == len(terms)
