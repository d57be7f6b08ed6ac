"""A repository's list is shown and accepted as `website`."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def website(punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a repository's list with one task. The working directory is in that repository."""
    return create_repository(punch, tmp_path / "website", monkeypatch)


def create_repository(punch: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    monkeypatch.chdir(path)
    punch("add", "build")
    return next(row["conversation"] for row in punch("list", "all", "--json").json["conversations"])


def test_every_heading_shows_the_short_name(punch: Any, website: str) -> None:
    assert website.startswith("website-")
    for words in (("list",), ("ls", "--all"), ("list", "--at", "1"), (), ("list", "--line")):
        assert punch(*words).lines[0].startswith("website  "), words
    assert "  website" in punch("list", "all").out
    assert punch("complete", "list").out == "website\t\n"
    assert punch("agent", "prime").out.startswith('Task list "website" (punchlist)')


def test_the_short_name_is_accepted(punch: Any, website: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "build" in punch("list", "-c", "website").out
    punch("add", "test", "-c", "website")
    assert [row["conversation"] for row in punch("list", "all", "--json").json["conversations"]] == [website]
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "website")
    assert "test" in punch("list").out
    assert punch("log").lines[-1].endswith("root") or "test" in punch("log").out


def test_repositories_of_one_name_are_distinguished(
    punch: Any, website: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = create_repository(punch, tmp_path / "other" / "website", monkeypatch)
    assert punch("list").lines[0].startswith(f"{other}  ")
    for words in (("list",), ("add", "test"), ("next",), ("done", "1")):
        outcome = punch(*words, "-c", "website")
        assert outcome.code == 1, words
        assert "2 lists are named website" in outcome.err, words
        assert f"-c {website}" in outcome.err and f"-c {other}" in outcome.err, words
    near = punch("list", "-c", "websit").err
    assert website in near and other in near
    assert len(punch("list", "all", "--json").json["conversations"]) == 2


def test_a_clones_file_cannot_reserve_a_repositorys_name(
    punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".punchlist.toml").write_text('conversation = "website"\n')
    monkeypatch.chdir(clone)
    assert punch("list").code == 0, "the list is unused"
    create_repository(punch, tmp_path / "website", monkeypatch)
    monkeypatch.chdir(clone)
    outcome = punch("list")
    assert (outcome.code, "build" in outcome.out) == (78, False)
    assert "was not made for this project" in outcome.err


def test_a_clones_list_stays_its_own(punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".punchlist.toml").write_text('conversation = "plans"\n')
    monkeypatch.chdir(clone)
    for title in "ab":
        assert punch("add", title).code == 0
    assert len(json.loads(punch("list", "--json").out)["tasks"]) == 2
