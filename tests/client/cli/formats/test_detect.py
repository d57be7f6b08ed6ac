import json
from typing import Any

import pytest

from punchlist.cli.failure import FormatError
from punchlist.cli.formats.detect import FORMATS, detect, parse
from punchlist.cli.formats.document import Document


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("- [ ] a", "markdown"),
        ("[ ] a", "markdown"),
        ("\ufeff# Plan", "markdown"),
        ('{"todos": []}', "todowrite"),
        ("[]", "todowrite"),
        ('{"tasks": []}', "json"),
        ('\n{"subject": "a"}', "folder"),
    ],
)
def test_the_format_is_seen_from_the_content(text: str, name: str) -> None:
    assert detect(Document("f", text)) == name
    assert name in FORMATS


@pytest.mark.parametrize("text", ["{}", "{", '{"a": 1}'])
def test_json_of_no_known_kind_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        detect(Document("f", text))


def test_a_named_format_is_used_and_many_files_are_a_folder() -> None:
    assert parse([Document("f", "- a")], "markdown")[0] == "markdown"
    with pytest.raises(FormatError):
        parse([Document("f", "- a")], "json")
    with pytest.raises(FormatError):
        parse([Document("1.json", "- a"), Document("2.json", "- b")], "markdown")
    files: list[Any] = [Document(f"{n}.json", json.dumps({"id": n, "subject": "s"})) for n in (2, 1)]
    name, plan = parse(files)
    assert (name, [task["ref"] for task in plan]) == ("folder", ["1", "2"])


def test_lines_of_json_are_told_from_broken_json() -> None:
    with pytest.raises(FormatError, match="f: JSON lines are not read; punch export --format json"):
        detect(Document("f", '{"seq":1}\n{"seq":2}\n'))
    with pytest.raises(FormatError, match="f:2: not JSON"):
        detect(Document("f", '{"seq":1}\n{"seq":\n'))
