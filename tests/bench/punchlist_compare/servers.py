"""Start, memory, tokens and calls of MCP servers."""

import contextlib
import json
import time

from punchlist_bench import process
from punchlist_bench.table import progress
from punchlist_compare.comparison import Comparison
from punchlist_compare.peers import Peer
from punchlist_compare.place import Place, UnmeasuredError
from punchlist_compare.results import pick_calls_size
from punchlist_compare.session import Session

CALLS = 100
"""Number of adds that a session makes; it lists the tasks after each tenth."""

SESSIONS = 20


def time_starts(comparison: Comparison) -> None:
    """In each round, start a session while no process of the peer runs, and a further session."""
    progress("starts of MCP servers")
    with comparison.open_places(comparison.sizes[0], served=True) as places:
        rounds = {peer.name: comparison.rounds for peer, _ in places}
        for turn in range(comparison.rounds + 1):
            for peer, place in places:
                if turn <= rounds[peer.name] and not comparison.has_failed(peer, "mcp.first"):
                    with comparison.explaining(peer, "mcp."):
                        starts = _start_two(place)
                        if turn:
                            _add_starts(comparison, peer, starts)
                        else:
                            rounds[peer.name] = comparison.pick_rounds(peer, starts[0][0], "mcp.first", "mcp.further")


def _start_two(place: Place) -> list[tuple[float, float]]:
    """Return the duration and the processor time of each of the two starts, in seconds."""
    place.end_processes()
    starts: list[tuple[float, float]] = []
    with contextlib.ExitStack() as sessions:
        for _ in range(2):
            before = place.count_processor_s()
            session = sessions.enter_context(Session(place))
            starts.append((session.started_s, place.count_processor_s() - before))
    return starts


def _add_starts(comparison: Comparison, peer: Peer, starts: list[tuple[float, float]]) -> None:
    for key, (wall_s, processor_s) in zip(("mcp.first", "mcp.further"), starts, strict=True):
        comparison.results.add(key, peer.name, wall_s * 1e3)
        comparison.results.add(f"{key}.cpu", peer.name, processor_s * 1e3)


def measure_sessions(comparison: Comparison) -> None:
    """Measure the memory of 1 and of `SESSIONS` sessions, and the tokens of one."""
    with comparison.open_places(comparison.sizes[0], served=True) as places:
        for peer, place in places:
            if comparison.has_failed(peer, "mcp.first"):
                continue
            progress(f"{SESSIONS} sessions of {peer.name}")
            place.end_processes()
            with comparison.explaining(peer, "mcp.memory.", "tokens."), Session(place) as first:
                one_bytes = place.count_memory_bytes()
                comparison.results.add("mcp.memory.1", peer.name, one_bytes / 2**20)
                comparison.results.add("tokens.tools", peer.name, count_tokens(_shown_definitions(first)))
                if peer.tools:
                    with comparison.explaining(peer, "tokens.turn"):
                        comparison.results.add("tokens.turn", peer.name, count_tokens(_take_turn(peer, place, first)))
                        comparison.results.explain("tokens.turn", peer.name, peer.note)
                with comparison.explaining(peer, "mcp.memory.20"):
                    comparison.results.add("mcp.memory.20", peer.name, _open_further(place, one_bytes) / 2**20)


def _open_further(place: Place, one_bytes: int) -> int:
    """Open further sessions and return the memory of all; `one_bytes` is that of the one that is open."""
    if one_bytes * SESSIONS > process.available_bytes():
        raise UnmeasuredError(f"{SESSIONS} sessions need more memory than is free")
    with contextlib.ExitStack() as sessions:
        for _ in range(SESSIONS - 1):
            sessions.enter_context(Session(place))
        return place.count_memory_bytes()


def _shown_definitions(session: Session) -> str:
    """Return what a host shows the model of the tools: names, descriptions and parameters."""
    shown = [{name: tool.get(name) for name in ("name", "description", "inputSchema")} for tool in session.tools]
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _take_turn(peer: Peer, place: Place, session: Session) -> str:
    """Add a task and ask for the next one; return the text of calls and replies."""
    texts: list[str] = []
    for operation in ("add", "next"):
        tool, arguments = peer.tools[operation].fill(place, place.next_title())
        texts += [tool, json.dumps(arguments, separators=(",", ":")), session.call(tool, arguments)]
    return "".join(texts)


def count_tokens(text: str) -> float:
    """Estimate the number of tokens of a text as a quarter of its bytes."""
    return len(text.encode()) / 4


def time_calls(comparison: Comparison) -> None:
    """Time the calls of one session for each peer, all open together."""
    for size in (0, pick_calls_size(comparison.sizes)):
        progress(f"MCP calls, {size:,} tasks")
        with comparison.open_places(size, served=True) as places, contextlib.ExitStack() as opened:
            sessions: list[tuple[Peer, Place, Session]] = []
            for peer, place in places:
                if peer.tools and not comparison.has_failed(peer, "mcp.first"):
                    with comparison.explaining(peer, "call."):
                        sessions.append((peer, place, opened.enter_context(Session(place))))
            for number in range(1, CALLS + 1):
                for peer, place, session in sessions:
                    for operation in ("add", "list") if size and number % 10 == 0 else ("add",):
                        key = f"call.{operation}.{size}"
                        if not comparison.has_failed(peer, key):
                            with comparison.explaining(peer, key):
                                comparison.results.add(key, peer.name, _time_call(peer, place, session, operation))


def _time_call(peer: Peer, place: Place, session: Session, operation: str) -> float:
    """Call a tool, and return the duration in milliseconds."""
    tool, arguments = peer.tools[operation].fill(place, place.next_title())
    begin = time.perf_counter()
    session.call(tool, arguments)
    return (time.perf_counter() - begin) * 1e3
