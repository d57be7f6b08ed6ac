"""Runs the daemon with injected faults, to show that the fault programs detect them.

`python -m punchlist_faults.launch PLANT… -- OPTIONS…`; the product itself has no such options.
"""

import asyncio
import importlib
import sys
from collections.abc import Callable
from typing import Any


def _normal() -> None:
    """Don't flush commits: set SQLite's `synchronous = NORMAL`."""
    schema: Any = importlib.import_module("punchlistd.store.file.schema")
    changed = tuple(("synchronous", "NORMAL", 1) if row[0] == "synchronous" else row for row in schema.SETTINGS)
    schema.apply_settings.__defaults__ = (changed,)


def _small_checkpoints() -> None:
    """Checkpoint and index the log every few commits."""
    importlib.import_module("punchlistd.store.file.operations").CHECKPOINT_PAGES = 12  # pyright: ignore[reportAttributeAccessIssue]


def _upgrade() -> None:
    """Add a schema version, so that a log of the current version is upgraded."""
    schema: Any = importlib.import_module("punchlistd.store.file.schema")
    planted = "CREATE TABLE planted(x INTEGER) STRICT"
    schema.TABLES = (*schema.TABLES, planted)
    schema.UPGRADES = (*schema.UPGRADES, (planted,))


def _lost_wakeup() -> None:
    """Run out of memory while the call "lost" wakes the writer, whose task then neither waits nor continues."""
    inbox: Any = importlib.import_module("punchlistd.engine.writing.inbox")
    importlib.import_module("punchlistd.process.guards").END_S = 0.5  # pyright: ignore[reportAttributeAccessIssue]
    futures: Any = importlib.import_module("asyncio.futures")
    submit, runs_out = inbox.Inbox.submit, False

    base: Any = futures._PyFuture
    schedule = base._Future__schedule_callbacks

    class Lost(base):  # behaves like the C implementation when call_soon() fails
        def _Future__schedule_callbacks(self) -> None:
            if runs_out:
                raise MemoryError
            schedule(self)

    async def take(self: Any) -> None:
        if self._given:
            self._given = False
            return
        self._waiters.append(waiter := Lost())
        await waiter

    def submit_or_lose(self: Any, item: Any) -> None:
        nonlocal runs_out
        runs_out = getattr(item.params, "title", "") == "lost"
        if runs_out and not self.work._waiters:
            # The writer is awake and would carry out the call without a wake-up. Submit it when the writer waits.
            asyncio.get_running_loop().call_soon(submit_or_lose, self, item)
            runs_out = False
            return
        submit(self, item)

    inbox.Signal.take, inbox.Inbox.submit = take, submit_or_lose


def _late_post() -> None:
    """Append posts of shared lists at the current end, instead of at the position for which they were decided."""
    for engine, name in (("nats", "NatsLog"), ("postgres", "PostgresLog")):
        log: Any = getattr(importlib.import_module(f"punchlistd.replication.adapters.{engine}.log"), name)

        async def post(self: Any, list: str, _expected: int, nonce: str, body: bytes, original: Any = log.post) -> int:
            return await original(self, list, await self.last(list), nonce, body)

        log.post = post


def _lost_unknown() -> None:
    """Report posts whose outcome is unknown, in shared lists, as not written."""
    port: Any = importlib.import_module("punchlistd.replication.port")
    lane: Any = importlib.import_module("punchlistd.replication.lanes.lane")
    original = lane.post

    async def post(*arguments: Any) -> int:
        try:
            return await original(*arguments)
        except port.OutcomeUnknown as error:
            raise port.Unreachable(str(error)) from None

    lane.post = post


def _dropped_claims() -> None:
    """End the claims that live machines have on shared lists."""
    leases: Any = importlib.import_module("punchlistd.engine.claims.leases")

    def keeps(_self: Any, _conversation: str) -> bool:
        return False

    leases.Leases.keeps = keeps


PLANTS: dict[str, Callable[[], None]] = {
    "dropped-claims": _dropped_claims,
    "late-post": _late_post,
    "lost-unknown": _lost_unknown,
    "lost-wakeup": _lost_wakeup,
    "normal": _normal,
    "small-checkpoints": _small_checkpoints,
    "upgrade": _upgrade,
}


def main() -> None:
    split = sys.argv.index("--")
    for name in sys.argv[1:split]:
        PLANTS[name]()
    sys.argv[1:] = sys.argv[split + 1 :]
    sys.exit(importlib.import_module("punchlistd.__main__").main())


if __name__ == "__main__":
    main()
