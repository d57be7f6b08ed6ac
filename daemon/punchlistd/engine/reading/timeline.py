"""Reads about the past of lists: the number of events over time, and when tasks were in progress."""

from collections.abc import Iterable

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import Recorded
from punchlist_schemas.params import EventHistogram, EventSpans
from punchlist_schemas.results import Bucket, HistogramResult, SpansResult
from punchlist_schemas.things import MAX_INTEGER
from punchlistd.clock import now_ms
from punchlistd.domain.spans import ListReader, Spans
from punchlistd.domain.state import initial_state
from punchlistd.domain.state.tally import Tally
from punchlistd.engine.calls import Caller
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History, fact_of
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.reading.summaries import Summaries, Summary, summary_of
from punchlistd.engine.replies import Outcome
from punchlistd.store.port import Damaged, Stored
from punchlistd.store.record import is_tombstone

_decode = msgspec.json.Decoder(Recorded).decode
_encode = msgspec.json.Encoder().encode


class Timeline:
    """Answers reads about the past of lists."""

    def __init__(self, conversations: Conversations, access: Access, history: History, summaries: Summaries) -> None:
        self._conversations = conversations
        self._access = access
        self._history = history
        self._summaries = summaries

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

    async def find_spans(self, caller: Caller, params: EventSpans) -> Outcome:
        """Answer `event.spans`. Lists without changes in the window and without a task in progress aren't read."""
        if params.from_at > params.to_at:
            text = f"from_at is {params.from_at}, which is after to_at, {params.to_at}."
            facts = {"field": "from_at", "expected": f"1 to {params.to_at}"}
            return Rejection("invalid_params", text, facts)
        summaries: Iterable[Summary]
        if params.conversation is None:
            summaries = (summary for summary in await self._summaries.list(caller.user) if summary.kind == "list")
        else:
            loaded = await self._access.durable(caller.user, params.conversation)
            if isinstance(loaded, Rejection):
                return loaded
            summaries = (summary_of(loaded),)
        spans, damaged = Spans(params.from_at, params.to_at, now_ms(), params.limit), list[str]()
        for summary in summaries:
            if summary.updated_at < params.from_at and not summary.counts.in_progress:
                spans.count_unchanged(summary.counts)
            elif not await self._read_list(caller.user, summary.conversation, spans):
                damaged.append(summary.conversation)
        found, totals = spans.build()
        return _encode(SpansResult(spans=found, totals=totals, cut=spans.is_cut, damaged=tuple(damaged)))

    async def _read_list(self, user: str | None, name: str, spans: Spans) -> bool:
        """Read a list's spans from its events. Return False if some of these are damaged."""
        try:
            loaded = await self._load_tally(user, name)
            if isinstance(loaded, Rejection):
                return loaded.kind != "damaged"
            if loaded.state.updated_at < spans.from_at:
                ListReader(loaded.state, spans, 0).finish()
                return loaded.damage is None
            name, upto, tally = loaded.state.conversation, loaded.seq, loaded.tally or Tally()
            version, _ = tally.find_before(at=spans.from_at)
            state, seq = initial_state(name), 0
            if version:
                state, seq = await self._history.at(name, version, upto, lambda then, at: (then.copy(), at))
            reader = ListReader(state, spans, tally.find_last(spans.to_at))
            try:
                async with self._history.room(name):
                    await self._history.follow(name, lambda stored: reader.follow(fact_of(stored)), seq, upto)
            finally:
                reader.finish()
        except Damaged as error:
            self._conversations.record_damage(error)
            return False
        return loaded.damage is None
