from pathlib import Path
from typing import Any

import pytest

from punchlist import project


@pytest.fixture(autouse=True)
def _place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "my project" / "src").mkdir(parents=True)
    monkeypatch.chdir(home / "my project")


def test_a_project_file_decides_which_list_the_command_line_means(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert punch("init", "website").code == 0
    monkeypatch.chdir(home / "my project" / "src")
    punch("add", "here")
    assert punch("list").lines == ["website  0/1", "  ☐ #1 here"]
    assert punch("list", "--json", "-c", "other").json["tasks"] == []
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "elsewhere")
    assert punch("list", "--json").json["tasks"] == []


def test_a_fresh_name_tells_of_the_directory_and_is_drawn_once(run: Any, home: Path) -> None:
    first = run("init", "--json").json
    assert first["conversation"].startswith("my-project-")
    assert run("init", "--json").json == first
    assert project.read(str(home / "my project" / project.NAME)) == first["conversation"]


def test_a_file_that_is_there_is_never_changed(run: Any) -> None:
    run("init", "one")
    assert run("init", "one").code == 0
    refused = run("init", "two")
    assert refused.code == 1
    assert "names one" in refused.err
    assert project.conversation() == "one"


def test_a_name_that_no_list_can_have_is_refused(run: Any) -> None:
    assert run("init", "../x").code == 2
    assert project.conversation() is None


@pytest.mark.parametrize("words", [("list",), ("add", "x"), ("init",)])
def test_a_broken_project_file_stops_a_command_instead_of_another_list_being_taken(
    punch: Any, home: Path, words: tuple[str, ...]
) -> None:
    (home / "my project" / project.NAME).write_text("conversation = [")
    refused = punch(*words)
    assert refused.code == 78
    assert ".punchlist.toml" in refused.err
    assert punch("conversations", "--json").json["conversations"] == []
