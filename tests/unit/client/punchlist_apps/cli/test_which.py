import json
import os
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.repositories import repository, worktree
from punchlist_testing.terminal import terminal


@pytest.fixture
def website(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = repository(home / "website")
    monkeypatch.chdir(place)
    return place


def test_a_repositorys_list_is_shared_with_its_agents(
    punch: Any, home: Path, website: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "Outside", "-c", "default")
    assert punch("list").lines[0] == "website  0/0  not used yet"
    punch("add", "Here")
    monkeypatch.chdir(worktree(website, home / "fix"))
    assert punch("list").lines[1:] == ["  ☐ #1 Here"]
    monkeypatch.chdir(home)
    assert punch("list").lines == ["default  0/1", "  ☐ #1 Outside"]


def test_a_repositorys_list_is_noted_once_a_day(punch: Any, home: Path, website: Path) -> None:
    output = punch("add", "Here").err
    assert output.startswith("punch: using this repository's list, website-")
    assert punch("list").err == punch("log").err == ""
    (marker,) = (home / "data" / "told").iterdir()
    yesterday = marker.stat().st_mtime - 86_401
    os.utime(marker, (yesterday, yesterday))
    assert punch("list").err == output
    assert punch("list").err == ""


READS = [
    *("list", "list --json", "show 1", "watch", "log", "why 1", "export", "wait", "next", "edit 1 -t x", "resume 1"),
    *("queue claim", "list clear --yes", "run true"),
]


def test_reading_an_unknown_list_suggests_names(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    message, advice = "no list named web-site", "did you mean website? see all lists: punch list all"
    for words in READS:
        outcome = punch(*words.split(), "-c", "web-site")
        assert (outcome.code, outcome.out) == (1, ""), words
        if "--json" in words:
            error = json.loads(outcome.err)["error"]
            assert error == {"kind": "not_found", "message": message, "advice": advice}
        else:
            assert outcome.err == f"error: {message}\n  {advice}\n", words


@pytest.mark.parametrize("name", ["wbsite", "website-3f9a"])
def test_repository_list_is_found_by_directory_name(punch: Any, name: str) -> None:
    punch("add", "a", "-c", "website-3f9a2c41d07e")
    punch("add", "a", "-c", "nothing-alike")
    assert "  did you mean website-3f9a2c41d07e? see all lists" in punch("list", "-c", name).err


def test_an_empty_list_exists(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    punch("list", "clear", "--yes", "-c", "website")
    assert punch("list", "-c", "website").lines == ["website  0/0", "  no tasks"]


def test_a_new_list_is_noted_on_a_terminal(punch: Any) -> None:
    for expected in (True, False):
        with terminal("add", "a", "-c", "typo") as screen:
            assert screen.finish() == 0
            assert ("new list typo" in screen.shown) is expected


def test_a_cloned_project_file_is_confirmed_once(punch: Any, home: Path, website: Path) -> None:
    punch("add", "Private", "-c", "default")
    (website / ".punchlist.toml").write_text('conversation = "default"\n')
    outcome = punch("list")
    assert (outcome.code, outcome.out) == (78, "")
    assert "punch init --trust" in outcome.err
    assert punch("list", "--line").out == punch("complete", "task").out == ""
    with terminal("list") as screen:
        screen.wait_for("[y/N] ")
        screen.type("n\n")
        assert screen.finish() == 78
        assert "Private" not in screen.shown
    with terminal("list") as screen:
        screen.wait_for("[y/N] ")
        screen.type("y\n")
        assert screen.finish() == 0
        assert "Private" in screen.shown
    assert punch("list").lines[1:] == ["  ☐ #1 Private"]
    assert punch("list", "--line").out == "default  0/1\n"


def test_own_project_files_need_no_confirmation(punch: Any, home: Path, website: Path) -> None:
    punch("add", "Shared", "-c", "team")
    assert punch("init", "team").code == 0
    assert punch("list").lines[1:] == ["  ☐ #1 Shared"]
    (website / ".punchlist.toml").write_text('conversation = "fresh"\n')
    for _ in range(2):
        assert punch("add", "New").code == 0


def test_an_unusable_repository_needs_a_named_list(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "broken" / ".git").mkdir(parents=True)
    monkeypatch.chdir(home / "broken")
    outcome = punch("add", "x")
    assert outcome.code == 78
    assert "is not a git directory" in outcome.err
    assert punch("add", "x", "-c", "named").code == 0
