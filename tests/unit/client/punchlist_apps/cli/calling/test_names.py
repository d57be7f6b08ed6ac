"""Names as people write them: exact, a host, a prefix, or the owner of a task."""

from typing import Any

import pytest

from punchlist_apps.cli.calling import names
from punchlist_apps.cli.calling.names import match_names
from punchlist_apps.cli.printing.failure import UnknownName

A, B = "claude-code/59aa02", "claude-code/7f3c1a"
KNOWN = [A, B, f"{B}/reviewer", "codex/1a2b3c", "ann", "anna"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann", ["ann"]),
        ("claude-code", [A, B, f"{B}/reviewer"]),
        ("claude", [A, B, f"{B}/reviewer"]),
        ("codex", ["codex/1a2b3c"]),
        ("claude-code/59", [A]),
        (B, [B]),
        ("claude-code/7f", [B, f"{B}/reviewer"]),
        ("co", ["codex/1a2b3c"]),
    ],
)
def test_names_match(text: str, expected: list[str]) -> None:
    assert match_names(text, KNOWN) == expected


@pytest.mark.parametrize("text", ["c", "an", "claude-code/", "claude-code/0", "bob", "", "Ann"])
def test_an_ambiguous_name_is_an_error(text: str) -> None:
    with pytest.raises(UnknownName) as caught:
        match_names(text, KNOWN)
    assert caught.value.names, "the error has the names in the list"


def test_the_most_similar_name_is_first() -> None:
    with pytest.raises(UnknownName) as caught:
        match_names("codx", KNOWN)
    assert caught.value.names[0] == "codex/1a2b3c"


@pytest.fixture
def two(punch: Any) -> Any:
    """Runs the command line on a list in which two sessions of one host and a person own one task each."""
    for title in ("one", "two", "three"):
        punch("add", title, "--actor", "ann")
    for owner in (A, B):
        punch("queue", "claim", "-o", owner, "--actor", owner)
    punch("queue", "claim", "-o", "ann", "--actor", "ann")
    return punch


def list_ids(punch: Any, *args: str) -> list[str]:
    return [task["id"] for task in punch("list", "--json", *args).json["tasks"]]


def test_list_accepts_a_hosts_name_and_a_prefix(two: Any) -> None:
    assert list_ids(two, "-o", "claude-code") == ["1", "2"]
    assert list_ids(two, "-o", "claude-code/7f") == ["2"]
    assert list_ids(two, "-o", "#1") == ["1"]
    outcome = two("list", "-o", "claud-code/59")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines()[0] == "error: no agent or person named 'claud-code/59' in this list"
    assert outcome.err.splitlines()[1].startswith(f"  names in this list: {A}, {B}")


def test_log_and_undo_accept_a_hosts_name(two: Any) -> None:
    two("done", "1", "--force", "--actor", A)
    two("done", "2", "--force", "--actor", B)
    assert [line for line in two("log", "--actor", "claude-code").lines if "done" in line or "completed" in line]
    assert two("log", "--actor", "codex").code == 1
    preview = two("undo", "--of", "claude-code", "--preview")
    assert "#2" in preview.out and "#1" not in preview.out, "the newest call of all its sessions"
    assert "#1" in two("undo", "--of", "#1", "--preview").out
    nobody = two("undo", "--of", "claude-coder")
    assert (nobody.code, A in nobody.err) == (1, True)


def test_name_is_found_in_old_events(punch: Any) -> None:
    punch("add", "old", "--actor", "codex/1a2b3c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "RECENT", 1)
        punch("add", "new", "--actor", "ann")
        assert "old" in punch("undo", "--of", "codex", "--preview").out


def test_a_claim_is_released_by_a_hosts_name(two: Any) -> None:
    assert two("queue", "release", "2", "-o", "claude-code").out == "  ☐ #2 two\n"
    assert two("queue", "renew", "1", "-o", "claude-code/5").code == 0
    assert two("queue", "release", "1", "-o", "nobody").code == 1


def test_assign_notes_an_unknown_name(two: Any) -> None:
    two("add", "four")
    assert "the name cluade-code has not been used" in two("assign", "4", "cluade-code").err
    assert two("assign", "4", "claude-code").err == ""


def test_assign_reserves_for_a_session_by_its_task(two: Any) -> None:
    for title in ("four", "five"):
        two("add", title)
    assert two("assign", "4", "5", "#1").out == f"  ☐ #4 four  @{A}\n  ☐ #5 five  @{A}\n"
    assert two("queue", "claim", "-o", "bob").code == 1
    assert two("assign", "4", "claude-code").out == "  ☐ #4 four  @claude-code\n"
    assert two("queue", "claim", "-o", B).out == f"  ● #4 four  @{B}\n"
    assert two("assign", "5", "--nobody").out == "  ☐ #5 five\n"
    assert two("queue", "claim", "-o", "bob").out == "  ● #5 five  @bob\n"


def test_assign_accepts_new_names_and_rejects_ambiguous_ones(two: Any) -> None:
    two("add", "four")
    assert two("assign", "4", "carol").out == "  ☐ #4 four  @carol\n"
    assert two("edit", "4", "--owner", "claude-code/59").out == f"  ☐ #4 four  @{A}\n"
    assert two("edit", "4", "--owner", "").out == "  ☐ #4 four\n"
    unclear = two("assign", "4", "claude-code/")
    assert (unclear.code, "several names begin with" in unclear.err) == (1, True)
    assert two("assign", "4", "#4").code == 1, "task 4 has no owner"
    assert two("assign", "4").code == 2
    busy = two("assign", "1", "carol")
    assert (busy.code, "punch reopen 1" in busy.err) == (1, True)


def test_a_reserved_task_is_shown_as_reserved(punch: Any) -> None:
    punch("add", "build", "-o", "bob")
    assert "reserved for bob: punch assign 1 --nobody frees it for all" in punch("why", "1", "--actor", "ann").out
    assert punch("why", "1", "--actor", "bob").lines[1].endswith("it is ready, and the next one to be claimed")
    outcome = punch("start", "1", "--actor", "ann")
    assert (outcome.code, "punch assign 1 --nobody" in outcome.err) == (1, True)
    assert punch("next", "--actor", "ann").code == 1
    assert punch("next", "--actor", "bob").lines[0].endswith("#1 build  @bob")
    assert "punch why 1" in punch("--actor", "ann").out
    assert punch("start", "1", "--actor", "bob").code == 0
