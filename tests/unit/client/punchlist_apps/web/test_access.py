"""Access of each kind of token, over real requests."""

import time
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect_async
from punchlist_apps.common.http.codes import Codes
from punchlist_apps.common.http.keys import EVERYTHING, Scope
from punchlist_testing.web import Web, served


async def test_list_link_cannot_open_lists_by_session_id(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/secret/tasks", {"title": "canary"})
    await web.ask("PUT", "/api/v1/conversations/secret/sessions/agent-1", {})
    only = {"Authorization": f"Bearer {web.session(list='agent-1')}"}
    for verb, path, body in (
        ("GET", "/api/v1/conversations/agent-1/tasks", None),
        ("POST", "/api/v1/conversations/agent-1/tasks", {"title": "x"}),
        ("GET", "/api/v1/feed?rows=agent-1&once=1", None),
        ("GET", "/api/agent/tasks", None),
        ("GET", "/api/v1/chats", None),
    ):
        answer = await web.ask(verb, path, body, **only)
        assert (answer.status, answer.value["kind"]) == (403, "out_of_scope"), path
    await web.ask("DELETE", "/api/v1/conversations/secret/sessions/agent-1")
    assert (await web.ask("POST", "/api/v1/conversations/agent-1/tasks", {"title": "x"}, **only)).status == 201


async def list_agents(web: Web, **scope: Any) -> Any:
    answer = await web.ask("GET", "/api/v1/agents", Authorization=f"Bearer {web.session(**scope)}")
    assert answer.status == 200, answer
    return answer.value


async def test_list_link_shows_only_its_agents(web: Web) -> None:
    async with connect_async(socket=web.daemon.socket, autostart=False, name="host") as client:
        for name in ("both", "elsewhere", "gone"):
            entered = {"agent": name, "host": "codex", "directory": f"/srv/secret-{name}", "branch": "secret-branch"}
            await client.call("agent.enter", entered)
        for name, place, title in (
            ("both", "plan", "mine"),
            ("both", "secret-list", "secret title"),
            ("elsewhere", "secret-list", "secret other title"),
            ("gone", "plan", "left behind"),
        ):
            task = await client.conversation(place, actor=name).add(title)
            await client.conversation(place, actor=name).take(name, task.id, keep=True)
        await client.call("agent.leave", {"agent": "gone"})
        roster = {agent["name"]: agent for agent in (await list_agents(web))["agents"]}
        assert roster["both"]["facts"][-2:] == ["/srv/secret-both (secret-branch)", "codex"]
        assert [task["title"] for task in roster["both"]["tasks"]] == ["mine", "secret title"]
        assert roster["gone"]["facts"][0].startswith("left ")
        assert roster["gone"]["tasks"][0]["lease_expires_at"]
        for mode in ("rw", "ro"):
            seen = await list_agents(web, list="plan", mode=mode)
            shown = {agent["name"]: agent for agent in seen["agents"]}
            assert [task["title"] for task in shown["both"]["tasks"]] == ["mine"]
            assert [task["title"] for task in shown["gone"]["tasks"]] == ["left behind"]
            assert "elsewhere" not in shown
            assert "secret" not in str(seen)
        assert (await list_agents(web, user="ann"))["agents"] == []
        task = await client.conversation("site-012345678901", actor="both").add("short")
        await client.conversation("site-012345678901", actor="both").take("both", task.id, keep=True)
        (seen,) = [agent for agent in (await list_agents(web, list="site"))["agents"] if agent["name"] == "both"]
        assert [(task["conversation"], task["title"]) for task in seen["tasks"]] == [("site", "short")]


async def test_named_link_acts_only_under_its_name(web: Web) -> None:
    ann = {"Authorization": f"Bearer {web.session(list='plan', name='ann')}"}
    for body, headers in (({"title": "x"}, {"X-Punchlist-Actor": "root"}), ({"title": "y", "actor": "root"}, {})):
        assert (await web.ask("POST", "/api/v1/conversations/plan/tasks", body, **ann, **headers)).status == 201
    events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
    assert {event["actor"] for event in events} == {"ann"}


async def test_list_link_cannot_attach_sessions(web: Web) -> None:
    await web.ask("PUT", "/api/v1/conversations/open", {})
    await web.ask("PUT", "/api/v1/conversations/secret/sessions/agent-1", {})
    only = {"Authorization": f"Bearer {web.session(list='open')}"}
    for session in ("agent-1", "default"):  # a session of another list, and an unused list name
        refused = await web.ask("PUT", f"/api/v1/conversations/open/sessions/{session}", {}, **only)
        assert (refused.status, refused.value["kind"]) == (403, "out_of_scope")
        await web.ask("POST", f"/api/v1/conversations/{session}/tasks", {"title": "launch code 1234"})
    assert (await web.ask("GET", "/api/v1/conversations/open/tasks", **only)).value["tasks"] == []


async def test_data_requires_a_token(web: Web) -> None:
    token, ticket = web.token, web.keys.issue_ticket()
    for credentials in (
        None,
        "",
        "Bearer",
        "Bearer x",
        f"Basic {token}",
        f"Bearer {token}x",
        token,
        f"Bearer {ticket}",
    ):
        for path in ("/api/v1/conversations", "/api/v1/feed?board=1", "/api/agent/tasks", "/api/v1/events"):
            refused = await web.ask("GET", path, Authorization=credentials)
            assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer"), (credentials, path)
    assert (await web.ask("GET", "/api/v1/openapi.json", Authorization=None)).value["openapi"] == "3.1.0"


async def test_ticket_works_once(web: Web) -> None:
    ticket = web.keys.issue_ticket()
    session = await web.ask("POST", "/api/session", {"ticket": ticket}, Authorization=None)
    assert (session.status, session.value["scope"]["mode"]) == (200, "rw")
    listed = await web.ask("GET", "/api/v1/conversations", Authorization=f"Bearer {session.value['token']}")
    assert listed.status == 200
    assert session.value["person"] == ""
    for body, kind in (({"ticket": ticket}, "ticket_used"), ({"ticket": "x"}, "ticket_unknown")):
        refused = await web.ask("POST", "/api/session", body, Authorization=None)
        assert (refused.status, refused.value["kind"]) == (401, kind)
    for body in ({}, {"ticket": 1}, {"code": 123456}, {"ticket": "x", "more": 1}, {"ticket": "x", "code": "1"}):
        assert (await web.ask("POST", "/api/session", body, Authorization=None)).status == 422
    assert (await web.ask("GET", "/api/session", Authorization=None)).status == 405
    web.secret.rotate()
    late = await web.ask("GET", "/api/v1/conversations", Authorization=f"Bearer {session.value['token']}")
    assert late.status == 401


async def test_code_signs_in_once_and_failures_look_alike(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Codes(web.keys)
    code = codes.issue(Scope("ro", "plan"))
    session = await web.ask("POST", "/api/session", {"code": code}, Authorization=None)
    assert (session.status, session.value["scope"]["list"]) == (200, "plan")
    used = await web.ask("POST", "/api/session", {"code": code}, Authorization=None)
    late_code, now = codes.issue(Scope()), time.time()
    with monkeypatch.context() as patch:
        patch.setattr("punchlist_apps.common.http.keys.time.time", lambda: now + 61)
        late = await web.ask("POST", "/api/session", {"code": late_code}, Authorization=None)
    wrong = await web.ask("POST", "/api/session", {"code": "none"}, Authorization=None)
    assert used.status == 401 and used.value["kind"] == "code_wrong"
    assert used.value == late.value == wrong.value


async def test_other_host_names_must_be_allowed(tmp_path: Path) -> None:
    async with served(tmp_path, names=("box.example",)) as web:
        assert (await web.ask("GET", "/api/v1/conversations", Host="box.example:80")).status == 200
        assert (await web.ask("GET", "/api/v1/conversations", Host="box.example.evil")).status == 421
        preflight = await web.ask("OPTIONS", "/api/v1/conversations", Origin="http://evil.example")
        assert (preflight.status, preflight.value["kind"]) == (403, "origin")


async def test_only_the_servers_person_finishes_their_own_tasks(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, person="ann") as web:
        paths = [f"/api/v1/conversations/plan/tasks/{id}/status" for id in ("1", "2")]
        paths.append("/api/agent/tasks/3/complete?conversation=plan")
        for number, _ in enumerate(paths, start=1):
            await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": f"task {number}"})
            async with connect_async(socket=web.daemon.socket, autostart=False) as client:
                await client.conversation("plan", actor="ann").take("ann", str(number), keep=True)
        guest = f"Bearer {web.session(list='plan')}"
        for path in paths:
            body = {"status": "completed"} if path.endswith("status") else {}
            refused = await web.ask("POST", path, body, Authorization=guest)
            assert refused.status == 409, (path, refused)
            assert (await web.ask("POST", path, body)).status == 200, path
        events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
        assert {event["actor"] for event in events} == {"ann"}
        await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "x"}, Authorization=guest)
        events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
        assert events[-1]["actor"] == "punch web"
        assert (await web.ask("POST", "/api/v1/conversations/plan/undo", {})).value["undone"] == ['removed #4 "x"']


async def test_session_names_the_person_of_the_server(tmp_path: Path) -> None:
    async with served(tmp_path, person="ann") as web:
        for scope, person in (
            (EVERYTHING, "ann"),
            (Scope(list="plan"), ""),
            (Scope(user="bob"), ""),
            (Scope(name="x"), ""),
        ):
            ticket = {"ticket": web.keys.issue_ticket(scope)}
            assert (await web.ask("POST", "/api/session", ticket, Authorization=None)).value["person"] == person


async def test_named_link_undoes_only_its_changes(tmp_path: Path) -> None:
    tasks, undo = "/api/v1/conversations/plan/tasks", "/api/v1/conversations/plan/undo"
    mine: dict[str, Any] = {"mine": True, "count": 1}
    async with served(tmp_path, person="root") as web:
        ann, bob = (f"Bearer {web.session(list='plan', name=name)}" for name in ("ann", "web/3f2a9c"))
        everything = f"Bearer {web.session(name='eve')}"
        for title, token in (("a", ann), ("b", bob), ("e", everything)):
            await web.ask("POST", tasks, {"title": title}, Authorization=token)
        events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
        assert [event["actor"] for event in events][-3:] == ["ann", "web/3f2a9c", "eve"]
        assert (await web.ask("POST", undo, mine)).value["undone"] == [], "the server's person has no changes"
        for line, token in (('removed #1 "a"', ann), ('removed #2 "b"', bob), ('removed #3 "e"', everything)):
            assert (await web.ask("POST", undo, mine, Authorization=token)).value["undone"] == [line]
            assert (await web.ask("POST", undo, mine, Authorization=token)).value["undone"] == []


async def test_undo_mine_includes_the_persons_chats(tmp_path: Path) -> None:
    undo, thread = "/api/v1/conversations/plan/undo", "chat-6f9619ff-8b86-4d01-b42d-00c04fc964ff"
    async with served(tmp_path, person="ann") as web:
        async with connect_async(socket=web.daemon.socket, autostart=False, name="codex") as client:
            await client.conversation(thread).open(kind="chat", metadata={"list": "plan"})
            for actor in ("ann", "chat/6f9619ff", "codex"):
                await client.conversation("plan", actor=actor).add(actor)
        mine: dict[str, Any] = {"mine": True, "count": 1}
        for line in ('removed #2 "chat/6f9619ff"', 'removed #1 "ann"'):
            assert (await web.ask("POST", undo, mine)).value["undone"] == [line]
        assert (await web.ask("POST", undo, mine)).value["undone"] == []
        guest = f"Bearer {web.session(list='plan')}"
        assert (await web.ask("POST", undo, mine, Authorization=guest)).value["undone"] == []
        for name, value in (("of", "codex"), ("also", ["codex"]), ("call", 1), ("to_version", 1), ("mine", "no")):
            refused = await web.ask("POST", undo, {**mine, name: value})
            assert (refused.status, refused.value["field"]) == (422, name)
        events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
        assert events[-1]["actor"] == "ann"
        call = next(event["version"] for event in events if event["actor"] == "codex")
        assert (await web.ask("POST", undo, {"call": call})).value["undone"] == ['removed #3 "codex"']
        events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
        assert events[-1]["actor"] == "ann", "the undo is recorded under its actor"
