"""Event streams: contents, resuming, limits, and the cost of an unread stream."""

import os
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from punchlist_apps.web.feed import MAX_STREAMS
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.web import Event, Stream, Web, served

PLAN = "/api/v1/conversations/plan"
CUTS = int(os.environ.get("CUTS", "30"))


class Rows:
    """The rows of a list, built from pushes as in docs/protocol.md."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        self.incoming = self.rows
        self.version = 0
        self.id = ""

    def take(self, event: Event) -> None:
        if event.event != "rows":
            return
        push = event.data
        if push.get("reset"):
            self.incoming = {}
        for name in push.get("gone", ()):
            self.incoming.pop(name, None)
        self.incoming.update({row["id"]: row for row in push["rows"]})
        if not push.get("more"):
            self.rows, self.version, self.id = self.incoming, push["version"], event.id

    async def read_until(self, stream: Stream, version: int) -> list[Any]:
        while self.version < version:
            self.take(await stream.next())
        return sorted(self.rows.values(), key=lambda row: (row["rank"], row["id"]))


async def test_feed_sends_current_state_then_changes(web: Web) -> None:
    await web.ask("PUT", PLAN, {"title": "Plan"})
    await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": "one"}, {"title": "two"}]})
    stream = await web.stream("/api/v1/feed?board=1&rows=plan")
    first = await stream.next()
    assert (first.event, [card["title"] for card in first.data["conversations"]]) == ("cards", ["Plan"])
    assert [row["title"] for row in await Rows().read_until(stream, 2 + 1)] == ["one", "two"]
    await web.ask("POST", f"{PLAN}/tasks/1/status", {"status": "in_progress"})
    events = [await stream.next(), await stream.next()]
    by_name = {event.event: event.data for event in events}
    assert [row["status"] for row in by_name["rows"]["rows"]] == ["in_progress"]
    assert by_name["board"]["card"]["running"][0]["title"] == "one"
    epoch, board, rows = events[-1].id.split(".")
    assert (len(epoch), board, rows) == (16, "4", "4")


async def test_resumed_feed_neither_loses_nor_repeats_rows(web: Web) -> None:
    """Set CUTS=1000 for a longer run. The reader keeps complete pushes and resumes after the last id."""
    random = Random(seed := int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4)))
    print("seed", seed)
    await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": str(number)} for number in range(20)]})
    rows, version, received = Rows(), 21, list[tuple[str, int]]()
    changed = {(str(number), number + 1) for number in range(1, 21)}

    def take(event: Event) -> None:
        rows.take(event)
        received.extend((row["id"], row["version"]) for row in event.data["rows"])

    async def change() -> None:
        nonlocal version
        task = str(random.randrange(1, 21))
        answer = await web.ask("PATCH", f"{PLAN}/tasks/{task}", {"title": f"{version}"})
        version = answer.value["version"]
        changed.add((task, version))

    for _ in range(CUTS):
        stream = await web.stream("/api/v1/feed?rows=plan", **({"Last_Event_ID": rows.id} if rows.id else {}))
        for _ in range(random.randrange(3)):
            await change()
            if random.random() < 0.7:
                while rows.version < version:
                    take(await stream.next())
        if random.random() < 0.3:  # in the middle of a push
            await change()
            await stream.stream.receive(random.randrange(1, 400))
        await stream.stream.aclose()
    stream = await web.stream("/api/v1/feed?rows=plan", Last_Event_ID=rows.id)
    while rows.version < version:
        take(await stream.next())
    assert len(received) == len(set(received)), "received again"
    assert set(received) <= changed
    newest = dict(sorted(changed, key=lambda change: change[1]))
    assert {name: row["version"] for name, row in rows.rows.items()} == newest, "lost"


async def test_resumed_events_arrive_once_in_order(web: Web) -> None:
    position, seqs = "0", list[int]()
    for _ in range(5):
        await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": "a"}, {"title": "b"}]})
        stream = await web.stream("/api/v1/events", Last_Event_ID=position)
        event = await stream.next()
        assert event.event == "change"
        position = event.id
        seqs += [event["seq"] for event in event.data["events"]]
        await stream.stream.aclose()
    stream = await web.stream(f"{PLAN}/events/stream?after=0")
    assert [event["seq"] for event in (await stream.next()).data["events"]] == seqs == list(range(1, 12))


async def test_feed_says_what_happened_in_all_lists(web: Web) -> None:
    stream = await web.stream("/api/v1/feed?happened=1")
    await web.ask("PUT", PLAN, {"title": "Plan"})
    await web.ask("POST", f"{PLAN}/tasks", {"title": "one \u202e"})
    first, second = await stream.next(), await stream.next()
    assert (first.event, second.event) == ("change", "change")
    assert second.data["events"][0]["about"] == {"title": "one \u202e", "list": "Plan"}
    assert second.id.split(".")[1:] == ["-", "-", "2"]
    await stream.stream.aclose()
    await web.ask("DELETE", f"{PLAN}/tasks/1")
    resumed = await web.stream("/api/v1/feed?board=1&happened=1", Last_Event_ID=second.id)
    events = [await resumed.next() for _ in range(2)]
    (missed,) = (event for event in events if event.event == "change")
    assert [event["about"]["title"] for event in missed.data["events"]] == ["one \u202e"]
    assert missed.id.split(".")[3] == "3"


async def test_feed_of_a_token_for_one_list_is_about_that_list(web: Web) -> None:
    for name in ("plan", "secret"):
        await web.ask("POST", f"/api/v1/conversations/{name}/tasks", {"title": f"in {name}"})
    token = {"Authorization": f"Bearer {web.session(list='plan')}"}
    stream = await web.stream("/api/v1/feed?happened=1&after=0", **token)
    assert {event["conversation"] for event in (await stream.next()).data["events"]} == {"plan"}
    recent = await web.ask("GET", "/api/v1/events/recent", **token)
    assert [event["about"].get("title") for event in recent.value["events"]] == [None, "in plan"]


async def test_newest_events_come_in_pages(web: Web) -> None:
    await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": f"t{number}"} for number in range(5)]})
    page = (await web.ask("GET", "/api/v1/events/recent?limit=2")).value
    assert [event["about"]["title"] for event in page["events"]] == ["t3", "t4"]
    older = (await web.ask("GET", f"/api/v1/events/recent?limit=60&before={page['next']}")).value
    assert ([event["seq"] for event in older["events"]], older["next"]) == ([1, 2, 3, 4], 0)
    assert (await web.ask("GET", "/api/v1/events/recent?before=99")).value["kind"] == "wrong_epoch"
    assert (await web.ask("GET", "/api/v1/events/recent?limit=0")).status == 422


WRONG: list[tuple[str, dict[str, str], int, str]] = [
    ("/api/v1/feed", {}, 422, "invalid_params"),
    ("/api/v1/feed?board=2", {}, 422, "invalid_params"),
    ("/api/v1/feed?rows=a&rows=b", {}, 422, "invalid_params"),
    ("/api/v1/feed?board=1&presence=1", {}, 422, "invalid_params"),
    ("/api/v1/feed?rows=plan&x=1", {}, 422, "invalid_params"),
    ("/api/v1/feed?rows=a%20b", {}, 422, "invalid_params"),
    ("/api/v1/feed?rows=plan", {"Last_Event_ID": "zzz"}, 422, "invalid_params"),
    ("/api/v1/feed?rows=plan", {"Last_Event_ID": "0123456789abcdef.-.1"}, 410, "wrong_epoch"),
    ("/api/v1/feed?rows=plan&after=99999", {}, 410, "wrong_epoch"),
]


async def test_stream_that_cannot_start_returns_a_problem(web: Web) -> None:
    await web.ask("PUT", PLAN, {})
    for path, headers, status, kind in WRONG:
        refused = await web.ask("GET", path, **headers)
        assert (refused.status, refused.value["kind"]) == (status, kind), (path, refused)
    only = web.session(list="plan")
    for path in ("/api/v1/feed?board=1", "/api/v1/feed?rows=other", "/api/v1/events", "/api/v1/events?conversation=x"):
        refused = await web.ask("GET", path, Authorization=f"Bearer {only}")
        assert (refused.status, refused.value["kind"]) == (403, "out_of_scope"), path
    assert (await web.stream(f"{PLAN}/events/stream", Authorization=f"Bearer {only}")) is not None


async def test_feed_with_once_ends_after_current_state(web: Web) -> None:
    await web.ask("POST", f"{PLAN}/tasks", {"title": "x"})
    answer = await web.ask("GET", "/api/v1/feed?board=1&rows=plan&once=1")
    events = [line for line in answer.body.decode().splitlines() if line.startswith("event:")]
    assert events == ["event: cards", "event: rows", "event: bye"]


async def test_at_most_64_of_500_streams_are_open(web: Web) -> None:
    streams = [await web.stream("/api/v1/feed?board=1") for _ in range(MAX_STREAMS)]
    for _ in range(500 - MAX_STREAMS):
        refused = await web.ask("GET", "/api/v1/feed?board=1")
        assert (refused.status, refused.value["kind"]) == (429, "too_many_streams")
    for stream in streams:
        await stream.stream.aclose()
    with anyio.fail_after(30):
        while len((await web.ask("GET", "/api/v1/status")).value["clients"]) > 1:
            pass
    assert (await web.ask("GET", "/api/v1/feed?board=1&once=1")).status == 200


async def test_token_with_most_streams_loses_one(web: Web) -> None:
    many, few = web.session(), f"Bearer {web.session()}"
    streams = [await web.stream("/api/v1/feed?board=1", Authorization=f"Bearer {many}") for _ in range(MAX_STREAMS)]
    for newest in streams[: MAX_STREAMS // 2 - 1 : -1]:
        await web.stream("/api/v1/feed?board=1", Authorization=few)
        assert b"event: end\ndata: " in (rest := await newest.to_end()) and b"too_many_streams" in rest
    refused = await web.ask("GET", "/api/v1/feed?board=1", Authorization=few)
    assert (refused.status, refused.value["kind"]) == (429, "too_many_streams"), "each token has half of them"
    await web.ask("PUT", PLAN, {})
    for oldest in streams[: MAX_STREAMS // 2]:
        while (await oldest.next()).event != "board":
            pass


async def test_shutdown_ends_streams_with_bye(web: Web) -> None:
    streams = [await web.stream("/api/v1/feed?board=1") for _ in range(10)]
    for stream in streams:
        assert (await stream.next()).event == "cards"
    web.server.end()
    for stream in streams:
        assert (await stream.next()).event == "bye"


async def test_idle_stream_sends_comments(tmp_path: Path) -> None:
    async with served(tmp_path, keepalive_s=0.01) as web:
        stream = await web.stream("/api/v1/feed?board=1")
        assert (await stream.next()).event == "cards"
        with anyio.fail_after(30):
            while b":\n\n" not in stream.rest:
                await stream.more()


async def test_stalled_stream_later_receives_all_events(web: Web) -> None:
    await web.ask("PUT", PLAN, {})
    stuck = await web.stream("/api/v1/events")
    text = "x" * 60_000
    for _ in range(40):
        await web.ask("POST", f"{PLAN}/tasks", {"title": "x", "description": text})
    seqs = list[int]()
    while len(seqs) < 40:
        seqs += [event["seq"] for event in (await stuck.next()).data["events"]]
    assert seqs == list(range(2, 42))


async def test_killed_daemon_loses_no_rows(tmp_path: Path) -> None:
    rows = Rows()
    with spawned_daemon(tmp_path) as daemon:
        async with served(tmp_path, daemon=daemon) as web:
            await web.ask("PUT", PLAN, {})
            for round in range(3):
                headers = {"Last_Event_ID": rows.id} if rows.id else {}
                stream = await web.stream("/api/v1/feed?rows=plan", **headers)
                added = await web.ask("POST", f"{PLAN}/tasks", {"title": f"round {round}"})
                await rows.read_until(stream, added.value["version"])
                daemon.kill()
                with pytest.raises(EOFError):
                    await stream.next()
                daemon.start()
            assert (await web.ask("POST", f"{PLAN}/tasks", {"title": "the last"})).status == 201
            shown = await rows.read_until(await web.stream("/api/v1/feed?rows=plan", Last_Event_ID=rows.id), 5)
            assert [row["title"] for row in shown] == ["round 0", "round 1", "round 2", "the last"]


async def test_feed_sends_presence_on_request(web: Web) -> None:
    await web.ask("PUT", PLAN, {})
    watching = await web.stream("/api/v1/feed?rows=plan&presence=1")
    first = {event.event: event for event in (await watching.next(), await watching.next())}
    ((name, connections),) = [(client["actor"], client["connections"]) for client in first["presence"].data["present"]]
    assert connections == 1
    assert first["presence"].id == "", "the stream resumes from its rows"
    other = await web.stream("/api/v1/feed?rows=plan")
    assert [(client["actor"], client["connections"]) for client in (await watching.next()).data["present"]] == [
        (name, 2)
    ]
    await other.stream.aclose()
    assert (await watching.next()).data["present"][0]["connections"] == 1
