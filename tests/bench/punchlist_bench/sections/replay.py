"""Speed of replaying stored events."""

import asyncio
import time
from collections import defaultdict
from pathlib import Path

from punchlist_bench import table
from punchlist_bench.biglog import EVENTS_EACH
from punchlist_bench.harness import Bench, middle
from punchlist_bench.table import Row
from punchlist_testing.domain import replay
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.history import fact_of
from punchlistd.store.port import Stored
from punchlistd.store.sqlite import SqliteLog

EVENTS = 100_000


def run(bench: Bench) -> list[Row]:
    """Measure events per second on one core, with and without decoding the log's lines."""
    table.progress(f"replay of {EVENTS:,} events")
    histories = asyncio.run(_histories(bench.big_log))
    facts = {name: [fact_of(stored) for stored in history] for name, history in histories.items()}
    total = sum(map(len, histories.values()))

    def apply() -> float:
        begin = time.process_time()
        for name, history in facts.items():
            replay(name, history)
        return total / (time.process_time() - begin)

    def decode_and_apply() -> float:
        begin = time.process_time()
        for name, history in histories.items():
            state = initial_state(name)
            for stored in history:
                fact = fact_of(stored)
                evolve(state, fact.event, fact.seq, fact.version, fact.at)
        return total / (time.process_time() - begin)

    taken = bench.in_turn({"apply": apply, "both": decode_and_apply})
    applied, both = middle(taken["apply"]), middle(taken["both"])
    return [
        table.value_row("replay through evolve, one core", f"{applied:,.0f} events/s", applied, "≥ 250,000 events/s"),
        Row("the same, decoding included", f"{both:,.0f} events/s"),
    ]


async def _histories(data: Path) -> dict[str, list[Stored]]:
    """Read whole conversations of a log with `EVENTS` events in total."""
    log = await SqliteLog.open(str(data / "log.db"))
    histories: dict[str, list[Stored]] = defaultdict(list)
    try:
        for number in range(EVENTS // EVENTS_EACH):
            name = f"c-{number}"
            histories[name] = await log.read(0, 1 << 30, conversation=name, max_bytes=1 << 30)
    finally:
        await log.close()
    return histories
