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


def test_in_a_repository_a_person_sees_the_list_of_its_agents(
    punch: Any, home: Path, website: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "Outside", "-c", "default")
    assert punch("list").lines[0] == "website  0/0  not used yet"
    punch("add", "Here")
    monkeypatch.chdir(worktree(website, home / "fix"))
    assert punch("list").lines[1:] == ["  ☐ #1 Here"]
    monkeypatch.chdir(home)
    assert punch("list").lines == ["default  0/1", "  ☐ #1 Outside"]


def test_the_list_of_a_repository_is_told_once_a_day(punch: Any, home: Path, website: Path) -> None:
    told = punch("add", "Here").err
    assert told.startswith("punch: using this repository's list, website-")
    assert punch("list").err == punch("log").err == ""
    (marker,) = (home / "data" / "told").iterdir()
    yesterday = marker.stat().st_mtime - 86_401
    os.utime(marker, (yesterday, yesterday))
    assert punch("list").err == told
    assert punch("list").err == ""


READS = [
    *("list", "list --json", "show 1", "watch", "log", "why 1", "export", "wait", "next", "edit 1 -t x", "resume 1"),
    *("queue claim", "list clear --yes", "run true"),
]


def test_a_name_that_no_list_has_is_refused_by_what_reads_with_the_nearest_ones(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    message, advice = "no list named web-site", "did you mean website? see all lists: punch list all"
    for words in READS:
        refused = punch(*words.split(), "-c", "web-site")
        assert (refused.code, refused.out) == (1, ""), words
        if "--json" in words:
            told = json.loads(refused.err)["error"]
            assert told == {"kind": "not_found", "message": message, "advice": advice}
        else:
            assert refused.err == f"error: {message}\n  {advice}\n", words


@pytest.mark.parametrize("name", ["wbsite", "website-3f9a"])
def test_a_repositorys_list_is_found_by_its_directorys_name(punch: Any, name: str) -> None:
    punch("add", "a", "-c", "website-3f9a2c41d07e")
    punch("add", "a", "-c", "nothing-alike")
    assert "  did you mean website-3f9a2c41d07e? see all lists" in punch("list", "-c", name).err


def test_a_list_that_is_empty_is_a_list(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    punch("list", "clear", "--yes", "-c", "website")
    assert punch("list", "-c", "website").lines == ["website  0/0", "  no tasks"]


def test_a_new_list_is_told_on_a_terminal(punch: Any) -> None:
    for expected in (True, False):
        with terminal("add", "a", "-c", "typo") as shown:
            assert shown.finish() == 0
            assert ("new list typo" in shown.shown) is expected


def test_a_person_is_asked_once_about_a_cloned_file_that_names_a_list_of_his(
    punch: Any, home: Path, website: Path
) -> None:
    punch("add", "Private", "-c", "default")
    (website / ".punchlist.toml").write_text('conversation = "default"\n')
    refused = punch("list")
    assert (refused.code, refused.out) == (78, "")
    assert "punch init --trust" in refused.err
    assert punch("list", "--line").out == punch("complete", "task").out == ""
    with terminal("list") as shown:
        shown.wait_for("[y/N] ")
        shown.type("n\n")
        assert shown.finish() == 78
        assert "Private" not in shown.shown
    with terminal("list") as shown:
        shown.wait_for("[y/N] ")
        shown.type("y\n")
        assert shown.finish() == 0
        assert "Private" in shown.shown
    assert punch("list").lines[1:] == ["  ☐ #1 Private"]
    assert punch("list", "--line").out == "default  0/1\n"


def test_a_file_that_init_wrote_or_that_names_an_unused_list_asks_nothing(
    punch: Any, home: Path, website: Path
) -> None:
    punch("add", "Shared", "-c", "team")
    assert punch("init", "team").code == 0
    assert punch("list").lines[1:] == ["  ☐ #1 Shared"]
    (website / ".punchlist.toml").write_text('conversation = "fresh"\n')
    for _ in range(2):
        assert punch("add", "New").code == 0


def test_a_repository_that_can_not_be_used_stops_a_command_but_not_one_with_a_name(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "broken" / ".git").mkdir(parents=True)
    monkeypatch.chdir(home / "broken")
    refused = punch("add", "x")
    assert refused.code == 78
    assert "is no git directory" in refused.err
    assert punch("add", "x", "-c", "named").code == 0
