"""Reads about the past of lists as a whole: the number of events over time."""

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Recorded
from punchlist_schemas.params import EventHistogram
from punchlist_schemas.results import Bucket, HistogramResult
from punchlist_schemas.things import MAX_INTEGER
from punchlistd.domain.state.tally import Tally
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.replies import Outcome
from punchlistd.store.port import Stored
from punchlistd.store.record import is_tombstone

_decode = msgspec.json.Decoder(Recorded).decode
_encode = msgspec.json.Encoder().encode


class Timeline:
    """Answers reads about the past of lists."""

    def __init__(self, access: Access, history: History) -> None:
        self._access = access
        self._history = history

    async def count_events(self, caller: Caller, params: EventHistogram) -> Outcome:
        """Answer `event.histogram`: from the list's tally or, for a range of versions, from the log."""
        loaded = await self._load_tally(caller.user, params.conversation)
        if isinstance(loaded, Rejection):
            return loaded
        tally, newest, first = loaded.tally or Tally(), loaded.state.version, params.from_version or 0
        last = newest if params.to_version is None else params.to_version
        for field, version, limit in (("to_version", last, newest), ("from_version", first, last)):
            if version > limit:
                text = f"{field} is {version}, which is after version {limit}."
                facts = {"field": field, "expected": f"0 to {limit}"}
                return loaded.reject_missing(Rejection("invalid_params", text, facts))
        if first > 1 or last < newest:
            _, after = tally.find_before(version=first)
            name = loaded.state.conversation
            async with self._history.room(name):
                tally = await self._count(name, Tally(), after, loaded.seq, first, last)
        buckets = tuple(
            Bucket(at=at, to_version=version, by=by) for at, version, by in tally.build_bars(params.buckets)
        )
        return _encode(HistogramResult(buckets=buckets, version=newest, damaged=loaded.cut))

    async def _load_tally(self, user: str | None, name: str) -> LoadedConversation | Rejection:
        """Load a list that has a tally. Count its events first if it was stored by an earlier version of the daemon."""
        tally, seq = Tally(), 0
        while not isinstance(loaded := await self._access.durable(user, name), Rejection) and loaded.tally is None:
            if seq == loaded.seq:
                loaded.tally = tally
                return loaded
            id, upto = loaded.state.conversation, loaded.seq
            async with self._history.room(id):
                tally = await self._count(id, tally, seq, upto)
            seq = upto
        return loaded

    async def _count(  # noqa: PLR0913, PLR0917 - two ranges
        self, name: str, tally: Tally, after: int, upto: int, first: int = 0, last: int = MAX_INTEGER
    ) -> Tally:
        """Add the events in a range of positions to a tally, if their versions are in another range."""

        def take(stored: Stored) -> bool:
            nonlocal tally
            recorded = _decode(stored.wire)
            if is_tombstone(stored.wire):
                tally = Tally()
            elif first <= recorded.version <= last:
                tally.add(recorded.at, recorded.version, recorded.seq, recorded.actor)
            return recorded.version < last

        await self._history.follow(name, take, after, upto)
        return tally
