from pathlib import Path
from typing import Any

import pytest

from punchlist import Gate
from punchlist_apps.files.mirror.inbound import ORIGIN, Inbound
from punchlist_testing.claude_home import ClaudeHome
from punchlist_testing.mirrors import Place

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"
OTHER = "8a1b2c3d-5a41-4a7e-9f57-0c2f4e7d1b66"


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeHome:
    """Claude Code's files, with two sessions in a project whose list is `web`."""
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "project" / ".punchlist.toml").write_text('conversation = "web"\n')
    home = ClaudeHome(tmp_path / ".claude")
    home.session(SESSION, tmp_path / "project" / "deep")
    home.session(OTHER, tmp_path / "project")
    return home


async def sync(place: Place, claude: ClaudeHome, folder: str = SESSION) -> None:
    """Sync once in a new process. The mirror must not write to the folder."""
    before = claude.everything()
    await Inbound(place.client, str(claude.tasks), folder, place.daemon.data_dir, place.report).sync()
    assert claude.everything() == before


async def shown(place: Place, conversation: str = "web") -> list[tuple[str, str, str]]:
    return [(task.id, task.title, task.status) for task in await place.client.conversation(conversation).list()]


async def test_a_sessions_tasks_are_in_its_projects_list(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "Parse", description="all of it", blocks=["2"])
    claude.task(SESSION, 2, "Test", blockedBy=["1"], metadata={"by": "hand"})
    claude.task(SESSION, 3, "Hidden", metadata={"_internal": True})
    await sync(place, claude)
    one, two = await place.list.list()
    assert (one.title, one.description, one.active_form) == ("Parse", "all of it", "Parseing")
    assert (two.blocked_by, two.metadata) == (("1",), {"by": "hand", ORIGIN: f"{SESSION}/2"})
    assert {change.actor for change in await place.client.read(0, "web")} == {"claude-code/7f3c"}


async def test_changes_are_imported_once(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "Parse")
    claude.task(SESSION, 2, "Test", blockedBy=["1"])
    await sync(place, claude)
    claude.task(SESSION, 1, "Parse", status="in_progress")
    await sync(place, claude)
    assert (await place.list.get("1")).owner == "claude-code/7f3c"
    claude.task(SESSION, 1, "Parse it", status="completed")
    claude.task(SESSION, 2, "Test", status="in_progress")
    await sync(place, claude)
    assert await shown(place) == [("1", "Parse it", "completed"), ("2", "Test", "in_progress")]
    assert (await place.list.get("2")).blocked_by == ()
    version = (await place.list.list()).version
    await sync(place, claude)
    assert (await place.list.list()).version == version


async def test_missing_files_of_resumed_session_delete_nothing(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "Parse", status="completed")
    claude.task(SESSION, 2, "Test")
    await sync(place, claude)
    claude.reset(SESSION)
    await sync(place, claude)
    claude.task(OTHER, 1, "Ship")
    await sync(place, claude, OTHER)
    assert await shown(place) == [("1", "Parse", "completed"), ("2", "Test", "pending"), ("3", "Ship", "pending")]
    claude.task(SESSION, 1, "Another one under an old number")
    await sync(place, claude)
    assert (await shown(place))[3] == ("4", "Another one under an old number", "pending")


async def test_list_changes_stay_until_file_changes(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "Parse")
    claude.task(SESSION, 2, "Test")
    await sync(place, claude)
    await place.list.complete("1")
    await place.list.delete("2")
    claude.task(SESSION, 1, "Parse", description="more")
    claude.task(SESSION, 2, "Test", status="completed")
    await sync(place, claude)
    await sync(place, claude)
    assert await shown(place) == [("1", "Parse", "completed")]
    assert (await place.list.get("1")).description == "more"
    assert place.problems == []


async def test_file_that_returns_is_the_same_task(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "Parse", status="in_progress")
    await sync(place, claude)
    await place.list.complete("1")
    claude.reset(SESSION)
    await sync(place, claude)
    claude.task(SESSION, 1, "Parse", status="in_progress")
    await sync(place, claude)
    assert await shown(place) == [("1", "Parse", "completed")], "changes made in the list stay"
    claude.task(SESSION, 1, "Parse it", status="in_progress")
    await sync(place, claude)
    assert await shown(place) == [("1", "Parse it", "completed")], "the task is back, and a new title is an edit"


async def test_folder_renamed_for_team_is_imported_once(place: Place, claude: ClaudeHome, tmp_path: Path) -> None:
    claude.task(SESSION, 1, "Parse")
    await sync(place, claude)
    claude.team("session-7f3c2d10", SESSION, tmp_path / "project")
    (claude.tasks / SESSION).rename(claude.tasks / "session-7f3c2d10")
    claude.task("session-7f3c2d10", 1, "Parse", status="in_progress")
    await sync(place, claude, "session-7f3c2d10")
    assert await shown(place) == [("1", "Parse", "in_progress")]
    claude.task(SESSION, 1, "Beside it")
    await sync(place, claude)
    await sync(place, claude, "session-7f3c2d10")
    assert await shown(place) == [("1", "Parse", "in_progress"), ("2", "Beside it", "pending")]


@pytest.mark.parametrize(("folder", "conversation"), [("my-board", "my-board"), ("default", "claude-default")])
async def test_custom_list_name_is_kept(place: Place, claude: ClaudeHome, folder: str, conversation: str) -> None:
    claude.task(folder, 1, "Shared")
    await sync(place, claude, folder)
    assert await shown(place, conversation) == [("1", "Shared", "pending")]


async def test_project_can_not_name_a_foreign_list(place: Place, claude: ClaudeHome) -> None:
    await place.list.add("Private")
    claude.task(SESSION, 1, "Parse")
    await sync(place, claude)
    assert [task.title for task in await place.list.list()] == ["Private"]
    assert await shown(place, SESSION) == [("1", "Parse", "pending")]


@pytest.mark.parametrize(
    "more", [{"status": "dreaming"}, {"blockedBy": "1"}, {"id": "7"}, {"metadata": ["x"]}, {"description": 3}]
)
async def test_unreadable_file_is_reported_and_others_imported(
    place: Place, claude: ClaudeHome, more: dict[str, Any]
) -> None:
    claude.task(SESSION, 1, "Bad", **more)
    claude.task(SESSION, 2, "Good")
    (claude.tasks / SESSION / "3.json").write_text('{"id": "3", "subj')
    await sync(place, claude)
    assert await shown(place) == [("1", "Good", "pending")]
    assert {Path(problem.file).name for problem in place.problems} == {"1.json", "3.json"}
    claude.task(SESSION, 1, "Bad no more")
    claude.task(SESSION, 3, "Whole")
    await sync(place, claude)
    assert [title for _, title, _ in await shown(place)] == ["Good", "Bad no more", "Whole"]


async def test_long_title_is_imported(place: Place, claude: ClaudeHome) -> None:
    claude.task(SESSION, 1, "long " * 200, description="below")
    claude.task(SESSION, 2, "", activeForm="")
    await sync(place, claude)
    one, two = await place.list.list()
    assert (len(one.title), one.description) == (500, ("long " * 200).strip() + "\n\nbelow")
    assert two.title == "task 2"


async def test_no_link_in_the_tasks_is_followed(place: Place, claude: ClaudeHome, tmp_path: Path) -> None:
    claude.task("elsewhere", 1, "Not ours")
    (claude.tasks / "elsewhere").rename(tmp_path / "outside")
    (claude.tasks / SESSION).symlink_to(tmp_path / "outside")
    await sync(place, claude)
    assert await shown(place) == []
    (claude.tasks / SESSION).unlink()
    claude.task(SESSION, 1, "Parse")
    (claude.tasks / SESSION / "2.json").symlink_to(tmp_path / "outside" / "1.json")
    (claude.tasks / SESSION / "3.json").mkdir()
    claude.task(SESSION, 4, "Print")
    await sync(place, claude)
    assert [title for _, title, _ in await shown(place)] == ["Parse", "Print"]
    assert place.kinds() == ["trouble"] * 3
    assert [Path(problem.file).name for problem in place.problems[1:]] == ["2.json", "3.json"]
    (claude.tasks / SESSION / "2.json").unlink()
    claude.task(SESSION, 2, "No link any more")
    await sync(place, claude)
    assert "No link any more" in [title for _, title, _ in await shown(place)]


@pytest.mark.parametrize("status", ["in_progress", "pending", "deleted"])
async def test_import_keeps_tasks_that_wait_for_approval(place: Place, claude: ClaudeHome, status: str) -> None:
    claude.task(SESSION, 1, "Deploy")
    await sync(place, claude)
    await place.list.edit("1", gate=Gate(yes=True))
    claude.task(SESSION, 1, "Deploy", status="completed")
    await sync(place, claude)
    assert (before := await place.list.get("1")).waits_for == "yes"
    claude.task(SESSION, 1, "Deploy", status=status)
    await sync(place, claude)
    assert await place.list.get("1") == before
    assert "waits for a person's yes: leave it" in place.problems[-1].text
    await place.list.approve("1")
    assert (await place.list.get("1")).status == "completed"
