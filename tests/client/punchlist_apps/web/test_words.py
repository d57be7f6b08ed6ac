"""The file of words that the page shares with the command line is written and compared by one program."""

import runpy
import sys
from pathlib import Path

import pytest

from punchlist_apps.web import words


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["words", *arguments])
    words.main()


def test_the_file_is_written_and_then_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "WORDS", tmp_path / "words.js")
    with pytest.raises(SystemExit, match=r"words\.js is not up to date: make fmt"):
        run(monkeypatch, "--check")
    run(monkeypatch)
    run(monkeypatch, "--check")
    (tmp_path / "words.js").write_text("// another\n", "utf-8")
    with pytest.raises(SystemExit, match="make fmt"):
        run(monkeypatch, "--check")


def test_the_committed_file_is_what_the_program_would_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["words", "--check"])
    monkeypatch.delitem(sys.modules, "punchlist_apps.web.words")
    runpy.run_module("punchlist_apps.web.words", run_name="__main__")


def test_each_face_has_its_own_keys_and_no_empty_group() -> None:
    names = {face: {key["name"] for group in words.key_groups(face) for key in group["keys"]} for face in ("web", "ui")}
    assert names["web"] - names["ui"] and names["ui"] - names["web"]
    assert all(group["keys"] for group in words.key_groups("web"))
