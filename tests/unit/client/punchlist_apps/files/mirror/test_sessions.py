from pathlib import Path

import pytest

from punchlist_apps.files.mirror.sessions import build_list_name, find_project, find_session
from punchlist_testing.claude_home import ClaudeHome

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"


def test_session_is_found_by_transcript_team_or_prefix(tmp_path: Path) -> None:
    home = ClaudeHome(tmp_path)
    assert find_session(str(tmp_path), SESSION) == (SESSION, None)
    home.session(SESSION, Path("/work/site"))
    assert find_session(str(tmp_path), SESSION) == (SESSION, "/work/site")
    assert find_session(str(tmp_path), "session-7f3c2d10") == (SESSION, "/work/site")
    home.team("crew", SESSION, Path("/elsewhere"))
    assert find_session(str(tmp_path), "crew") == (SESSION, "/work/site")
    home.team("strangers", "gone", Path("/elsewhere"))
    assert find_session(str(tmp_path), "strangers") == ("strangers", "/elsewhere")
    home.session(SESSION.replace("66", "77"), Path("/work/other"))
    assert find_session(str(tmp_path), "session-7f3c2d10") == ("session-7f3c2d10", None)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"cwd": 3}\n[1]\nnull\n', "\xff\n" + "[" * 2000])
def test_transcript_without_cwd_gives_no_directory(tmp_path: Path, text: str) -> None:
    home = ClaudeHome(tmp_path)
    home.session(SESSION, Path("/p"))
    (tmp_path / "projects" / "-p" / f"{SESSION}.jsonl").write_text(text)
    assert find_session(str(tmp_path), SESSION).cwd is None


def test_removed_directory_maps_to_its_ancestor(tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text('conversation = "web"\n')
    found = find_project(str(tmp_path / "worktrees" / "gone"))
    assert found is not None
    assert found.conversation == "web"
    for nothing in (None, "", "relative", "/no/such/place"):
        assert find_project(nothing) is None


def test_invalid_list_name_gets_a_prefix() -> None:
    assert [build_list_name(name) for name in ("a-1", "default", "-x", "_y")] == [
        "a-1",
        "claude-default",
        "claude--x",
        "claude-_y",
    ]
    assert len(build_list_name("x" * 300)) == 128
