from pathlib import Path
from typing import Any

from punchlist_testing.engine import engine

C = "c"


def add(title: str) -> dict[str, Any]:
    return {"conversation": C, "title": title}


async def test_pushes_wait_for_the_answer_of_a_batch_however_slow_its_other_calls_are(tmp_path: Path) -> None:
    async with engine(tmp_path, batch_calls=2) as running:
        peer = await running.connect()
        await peer.result("event.subscribe", conversation=C)
        writes = [{"jsonrpc": "2.0", "id": id, "method": "task.add", "params": add(str(id))} for id in range(5)]
        waits = {"conversation": "quiet", "after": 0, "timeout_ms": 30}
        subscribe = {"jsonrpc": "2.0", "id": 6, "method": "event.subscribe", "params": {"after": 0}}
        peer.write(
            peer.frame([*writes, subscribe, {"jsonrpc": "2.0", "id": 7, "method": "event.wait", "params": waits}])
        )
        assert len(await peer.receive()) == 7
        events: dict[str, list[int]] = {"1": [], "2": []}
        while any(seqs[-1:] != [6] for seqs in events.values()):
            params = (await peer.push())["params"]
            events[params["subscription"]] += [event["seq"] for event in params["events"]]
        assert events == {"1": [1, 2, 3, 4, 5, 6], "2": [1, 2, 3, 4, 5, 6]}
        await peer.result("task.add", **add("after"))
        await peer.events(2)


async def test_a_peer_that_sent_nothing_yet_is_pushed_lines_and_ids_are_never_given_twice(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect()
        first = await peer.result("event.subscribe", conversation=C)
        await peer.result("event.unsubscribe", subscription=first["subscription"])
        second = await peer.result("event.subscribe", conversation=C)
        assert first["subscription"] != second["subscription"]
        (session,) = running.server.sessions
        assert session.framing == "lines" and session.framed(b"{}") == b"{}\n" and list(session.subscriptions) == ["2"]
