from pathlib import Path

import pytest

from punchlist_apps.files.mirror.sessions import own_list, project_of, session_of
from punchlist_testing.claude_home import ClaudeHome

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"


def test_a_folder_is_known_by_its_transcript_its_team_or_the_first_digits_of_its_session(tmp_path: Path) -> None:
    home = ClaudeHome(tmp_path)
    assert session_of(str(tmp_path), SESSION) == (SESSION, None)
    home.session(SESSION, Path("/work/site"))
    assert session_of(str(tmp_path), SESSION) == (SESSION, "/work/site")
    assert session_of(str(tmp_path), "session-7f3c2d10") == (SESSION, "/work/site")
    home.team("crew", SESSION, Path("/elsewhere"))
    assert session_of(str(tmp_path), "crew") == (SESSION, "/work/site")
    home.team("strangers", "gone", Path("/elsewhere"))
    assert session_of(str(tmp_path), "strangers") == ("strangers", "/elsewhere")
    home.session(SESSION.replace("66", "77"), Path("/work/other"))
    assert session_of(str(tmp_path), "session-7f3c2d10") == ("session-7f3c2d10", None)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"cwd": 3}\n[1]\nnull\n', "\xff\n" + "[" * 2000])
def test_a_transcript_that_says_nothing_names_no_directory(tmp_path: Path, text: str) -> None:
    home = ClaudeHome(tmp_path)
    home.session(SESSION, Path("/p"))
    (tmp_path / "projects" / "-p" / f"{SESSION}.jsonl").write_text(text)
    assert session_of(str(tmp_path), SESSION).cwd is None


def test_a_directory_that_was_removed_means_what_is_above_it(tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text('conversation = "web"\n')
    found = project_of(str(tmp_path / "worktrees" / "gone"))
    assert found is not None
    assert found.conversation == "web"
    for nothing in (None, "", "relative", "/no/such/place"):
        assert project_of(nothing) is None


def test_a_name_that_no_list_may_have_gets_a_prefix() -> None:
    assert [own_list(name) for name in ("a-1", "default", "-x", "_y")] == [
        "a-1",
        "claude-default",
        "claude--x",
        "claude-_y",
    ]
    assert len(own_list("x" * 300)) == 128
