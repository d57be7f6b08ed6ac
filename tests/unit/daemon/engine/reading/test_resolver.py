import os
from pathlib import Path

from punchlist_schemas import project_file
from punchlist_testing.engine import Engine, Peer
from punchlist_testing.repositories import repository, worktree


async def test_directory_resolves_like_in_clients(peer: Peer, tmp_path: Path) -> None:
    website = repository(tmp_path / "website")
    found = await peer.result("conversation.resolve", path=str(worktree(website, tmp_path / "fix") / "page.html"))
    assert found["conversation"].startswith("website-")
    expected = {"source": "repository", "root": str(tmp_path / "fix"), "file": None, "exists": False, "allowed": True}
    assert found == {"conversation": found["conversation"], **expected}
    await peer.result("task.add", conversation=found["conversation"], title="a")
    assert (await peer.result("conversation.resolve", path=str(website)))["exists"]
    nothing = await peer.result("conversation.resolve", path="/")
    expected = {"source": "none", "root": None, "file": None, "exists": False, "allowed": True}
    assert nothing == {"conversation": None, **expected}


async def test_project_file_permission_is_reported(peer: Peer, tmp_path: Path) -> None:
    file = tmp_path / project_file.NAME
    for name, exists, allowed in (("used", True, False), ("unused", False, True), ("default", False, False)):
        file.write_text(project_file.format_text(name))
        await peer.result("task.add", conversation="used", title="a")
        found = await peer.result("conversation.resolve", path=str(tmp_path))
        assert (found["file"], found["source"], found["exists"], found["allowed"]) == (
            *(str(file), "project_file"),
            *(exists, allowed),
        )


async def test_bound_connection_resolves_to_its_private_list(running: Engine, tmp_path: Path) -> None:
    (tmp_path / project_file.NAME).write_text(project_file.format_text("bobs"))
    bob, alice = await running.connect(user="bob"), await running.connect(user="alice")
    unused = await alice.result("conversation.resolve", path=str(tmp_path))
    assert (unused["conversation"], unused["exists"]) == ("my:bobs", False)
    await bob.result("task.add", conversation=unused["conversation"], title="a")
    assert (await bob.result("conversation.resolve", path=str(tmp_path)))["exists"]
    await (await running.connect()).result("task.add", conversation="bobs", title="a")
    assert await alice.result("conversation.resolve", path=str(tmp_path)) == unused


async def test_unusable_directory_is_rejected_with_advice(peer: Peer, tmp_path: Path) -> None:
    (tmp_path / project_file.NAME).symlink_to("/etc/passwd")
    refused = (await peer.call("conversation.resolve", path=str(tmp_path)))["error"]
    assert refused["data"] == {"kind": "invalid_params", "field": "path"}
    assert "links are not followed" in refused["message"]
    for path in ("relative", "", "/nowhere/at/all", "/a\0b"):
        assert (await peer.call("conversation.resolve", path=path))["error"]["data"]["field"] == "path"


async def test_undecodable_path_is_shown_escaped(peer: Peer, tmp_path: Path) -> None:
    named = tmp_path / os.fsdecode(b"\xff")
    repository(named)
    (tmp_path / "link").symlink_to(named)
    found = await peer.result("conversation.resolve", path=str(tmp_path / "link"))
    assert found["root"] == f"{tmp_path}/\\xff"
