"""The daemon with a planted fault: for controls that show that a fault program detects it.

`python -m punchlist_faults.launch PLANT… -- OPTIONS…`; the product itself has no such options.
"""

import asyncio
import importlib
import sys
from collections.abc import Callable
from typing import Any


def _normal() -> None:
    """Commits are not flushed: SQLite's `synchronous = NORMAL`."""
    schema: Any = importlib.import_module("punchlistd.store.file.schema")
    changed = tuple(("synchronous", "NORMAL", 1) if row[0] == "synchronous" else row for row in schema.SETTINGS)
    schema.apply_settings.__defaults__ = (changed,)


def _small_checkpoints() -> None:
    """The log is moved out of the WAL every few commits, and indexed as often."""
    importlib.import_module("punchlistd.store.file.operations").CHECKPOINT_PAGES = 12  # pyright: ignore[reportAttributeAccessIssue]


def _upgrade() -> None:
    """A next version of the log, so that one of this version is upgraded."""
    schema: Any = importlib.import_module("punchlistd.store.file.schema")
    planted = "CREATE TABLE planted(x INTEGER) STRICT"
    schema.TABLES = (*schema.TABLES, planted)
    schema.UPGRADES = (*schema.UPGRADES, (planted,))


def _lost_wakeup() -> None:
    """Memory runs out while a call "lost" wakes the writer: its task is left neither waiting nor going on."""
    inbox: Any = importlib.import_module("punchlistd.engine.writing.inbox")
    importlib.import_module("punchlistd.process.guards").END_S = 0.5  # pyright: ignore[reportAttributeAccessIssue]
    futures: Any = importlib.import_module("asyncio.futures")
    submit, runs_out = inbox.Inbox.submit, False

    base: Any = futures._PyFuture
    schedule = base._Future__schedule_callbacks

    class Lost(base):  # what the one in C does where call_soon() fails
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
            # The writer is awake: it needs no word, and would carry the call out. So it comes once the writer waits.
            asyncio.get_running_loop().call_soon(submit_or_lose, self, item)
            runs_out = False
            return
        submit(self, item)

    inbox.Signal.take, inbox.Inbox.submit = take, submit_or_lose


def _late_post() -> None:
    """A post of a shared list goes in whatever it follows, instead of at the position that it was decided on."""
    for engine, name in (("nats", "NatsLog"), ("postgres", "PostgresLog")):
        log: Any = getattr(importlib.import_module(f"punchlistd.replication.adapters.{engine}.log"), name)

        async def post(self: Any, list: str, _expected: int, nonce: str, body: bytes, sound: Any = log.post) -> int:
            return await sound(self, list, await self.last(list), nonce, body)

        log.post = post


def _lost_unknown() -> None:
    """A post of a shared list whose outcome is unknown is reported as not written."""
    port: Any = importlib.import_module("punchlistd.replication.port")
    lane: Any = importlib.import_module("punchlistd.replication.lanes.lane")
    sound = lane.post

    async def post(*given: Any) -> int:
        try:
            return await sound(*given)
        except port.OutcomeUnknown as error:
            raise port.Unreachable(str(error)) from None

    lane.post = post


def _dropped_claims() -> None:
    """A machine that lives doesn't keep its claims on shared lists."""
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
