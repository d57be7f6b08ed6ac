"""`punch find`, sorting, and saved filters."""

from pathlib import Path
from typing import Any

import pytest


def test_find_searches_one_list_or_all(punch: Any) -> None:
    punch("add", "Write the lexer", "-d", "first \x1b[2J tokens")
    punch("add", "-c", "other", "Renew the lexer certificate")
    assert [line.strip() for line in punch("find", "lexer").lines] == ["☐ #1 Write the lexer"]
    everywhere = punch("find", "--all", "lexer").out
    assert "other" in everywhere
    assert "Renew the lexer" in everywhere
    outcome = punch("find", "tokens")
    assert "\x1b" not in outcome.out
    assert "first" in outcome.out
    assert punch("find", "the lexer", "-s", "completed").lines == [
        "nothing found in this list; to search all lists: punch find --all WORD"
    ]
    assert punch("find", "--all", "nonesuch").lines == ["nothing found"]
    assert punch("find", "--all", "--json", "the lexer").json["total"] == 2
    assert punch("find", "--all", "-n", "1", "lexer").lines[-1] == "  1 more: --limit"


def test_find_filters_and_sorts_without_words(punch: Any) -> None:
    punch("add", "zebra", "--label", "ops", "--owner", "ann")
    punch("add", "ant", "--label", "ops")
    punch("add", "-c", "other", "lion", "--label", "ops", "--owner", "ann")

    def titles(*options: str) -> list[str]:
        return [hit["task"]["title"] for hit in punch("find", "--json", *options).json["hits"]]

    assert titles("--label", "ops", "--sort", "title") == ["ant", "zebra"]
    assert titles("--all", "--owner", "ann") == ["lion", "zebra"]
    assert titles("--owner", "#1") == ["zebra"]
    assert titles("--ready", "--sort", "title") == ["ant", "zebra"]
    assert titles("#2") == ["ant"]
    outcome = punch("find")
    assert (outcome.code, "no word given" in outcome.err) == (2, True)


def test_saved_filters_sort_and_filter(punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "late", "--due", "2030-02-01", "--label", "ops")
    punch("add", "never", "--label", "ops")
    punch("add", "soon", "--due", "2030-01-01", "--label", "ops", "--parent", "1")
    punch("add", "else", "--due", "2029-01-01", "-p", "urgent")

    def order(*options: str) -> list[str]:
        return [task["title"] for task in punch("list", "--json", *options).json["tasks"]]

    assert order("--sort", "due") == ["else", "soon", "late", "never"]
    assert order("--sort", "priority")[0] == "else"
    assert order("--sort", "title") == ["else", "late", "never", "soon"]
    assert [line.split()[2] for line in punch("list", "--sort", "due").lines[1:]] == ["‼", "soon", "late", "never"]
    (tmp_path / ".punchlist.toml").write_text(
        'conversation = "default"\n[filters.soon]\nlabel = "ops"\ndue = "2031-01-01"\nsort = "due"\n'
        '[filters.bad]\nstatus = ["done"]\n[filters.worse]\ncommand = "rm"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert order("-c", "default", "--filter", "soon") == ["soon", "late"]
    assert order("-c", "default", "--filter", "soon", "--sort", "title") == ["late", "soon"]
    for name, message in (
        ("none", "has no filter 'none'; choose from soon, bad, worse"),
        ("bad", "expected some of"),
        ("worse", "unknown member; choose from status"),
    ):
        outcome = punch("list", "-c", "default", "--filter", name)
        assert outcome.code == 2
        assert message in outcome.err
    monkeypatch.chdir("/")
    assert punch("list", "-c", "default", "--filter", "soon").code == 2
