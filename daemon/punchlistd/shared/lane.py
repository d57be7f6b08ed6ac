"""The way of the changes of one shared list: decided on a draft, posted if nobody was first, then given to the writer.

What others post arrives by the same door. A lane has one post on its way at most, and everything that waits meanwhile
shares the next one. Calls are answered by the writer, when the post is in the shared log and in the local one. What is
refused, or changes nothing, rests on a state that a quorum has called the newest while the call was waiting.

Nothing here is polled but what may be lost: a push. The lanes of a space compare positions every few seconds.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationDeleted
from punchlist_schemas.things import Shared
from punchlistd.clock import now_ms
from punchlistd.engine.calls import Arrival, Barrier, Nobody, Read, Stage, Step, Write
from punchlistd.engine.claims import Claims
from punchlistd.engine.conversations import Conversations
from punchlistd.engine.inbox import Inbox
from punchlistd.engine.loaded import LoadedConversation, Place
from punchlistd.engine.replies import SHUTTING_DOWN
from punchlistd.engine.transaction import OVERTAKEN, Transactor
from punchlistd.shared import refusals
from punchlistd.shared.draft import Draft
from punchlistd.shared.port import (
    Conflict,
    Forbidden,
    Link,
    OutcomeUnknown,
    Posted,
    SharedLog,
    SharedLogError,
    TooLarge,
    Unreachable,
)
from punchlistd.shared.posting import PATIENCE_S, post
from punchlistd.shared.posts import Diverged, Post, Unreadable, check_of, seal, unseal
from punchlistd.store.port import EventLog
from punchlistd.store.record import key_hash

logger = logging.getLogger(__name__)

RETRY_S = 0.5
"""How long after a failure the shared log is asked again, in seconds."""

TURN_S = 1.0
"""At most so long another member is let in first, in seconds."""


class Parts(NamedTuple):
    """What of the engine lanes work with."""

    log: EventLog
    inbox: Inbox
    conversations: Conversations
    transactor: Transactor
    claims: Claims


class Counts:
    """What a lane has done: its posts, the calls in them, and how often another post came first."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.posts = self.calls = self.conflicts = 0


class Lane:
    """The changes of one list on their way.

    Args:
        conversation: the list.
        space: where it is shared.
        base: its place before the first post that the local log tells of.
        log: the shared log.
        parts: the engine.
        returned: called when the shared log is reached again.
    """

    def __init__(  # noqa: PLR0913 - a list, and what it goes through
        self,
        conversation: str,
        space: str,
        base: Place,
        log: SharedLog,
        parts: Parts,
        returned: Callable[[], None],
    ) -> None:
        """A lane in which nothing moves before `run`."""
        self.conversation = conversation
        self.space = space
        self.base = base
        self.counts = Counts()
        self.refused: Rejection | None = None
        """Why the list takes no changes from here until somebody acts."""
        self.away_since: float | None = time.monotonic()
        """Since when the shared log was not reached, by the monotonic clock."""
        self._log = log
        self._parts = parts
        self._returned = returned
        self._queue: deque[Write | Read | Barrier] = deque()
        self._holders: Counter[object] = Counter()
        self._place: Place | None = None  # up to where posts were given to the writer; None: ask the list itself
        self._version = 0
        self._partial = False
        self._held: dict[int, Posted] = {}  # pushed before the one that they follow, by its position
        self._arriving = 0
        self._failed: Rejection | None = None
        self._draft: Draft | None = None
        self._posting = False
        self._stale = True
        self._forgotten = False
        self._closing = False
        self._erasing = 0  # before this position everything was deleted here, and is to leave the space
        self._single = 0  # so many calls were too large together: each gets a post of its own
        self._wants: dict[str, float] = {}  # who asked for a turn, in the order of asking, and until when it is kept
        self._work = asyncio.Event()
        self._unknown: set[str | None] = set()
        """Keys of calls whose post may still come in: a repetition must not be told that nothing was written."""

    # what comes from the writer

    def take(self, item: Write | Read | Barrier) -> None:
        """Take a write, or a read or a barrier that comes behind writes: each goes on when its turn has come."""
        if self._closing:
            item.refuse(SHUTTING_DOWN)
            return
        if type(item) is Read and item.caller.holder not in self._holders:
            self._parts.inbox.submit(item)
            return
        if type(item) is Write:
            self._holders[item.caller.holder] += 1
        self._queue.append(item)
        self._work.set()

    async def barrier(self) -> Rejection | None:
        """Wait until everything that was taken before is answered or waits for a task."""
        done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
        self.take(Barrier(done))
        return await done

    # what comes from the shared log

    @property
    def position(self) -> int | None:
        """The position of the last post that was given to the writer, None while that is not known."""
        return None if self._place is None or self._posting else self._place.position

    @property
    def state(self) -> str:
        """How the list stands: current, behind, offline, or why it takes no changes."""
        if self.refused is not None:
            return self.refused.kind
        if self.away_since is not None or self._log.link.state != "up":
            return "offline"
        return "behind" if self._stale or self._held or self._partial else "current"

    @property
    def shared(self) -> Shared | None:
        """What is said of the list while its newest changes may be missing."""
        if (state := self.state) == "current":
            return None
        away = self.away_since
        since = 0 if away is None else now_ms() - int((time.monotonic() - away) * 1000)
        return Shared(self.space, state, since)

    @property
    def link(self) -> Link:
        """How the way to the space stands."""
        return self._log.link

    def hold(self, why: Rejection) -> None:
        """Take no changes, and follow nothing, until `go_on`."""
        self.refused = why
        self._work.set()

    def go_on(self) -> None:
        """Take changes again, from where the list is now."""
        self.refused, self._place, self._draft, self._stale = None, None, None, True
        self._work.set()

    def posted(self, posted: Posted) -> None:
        """Somebody posted, perhaps this daemon."""
        if self.refused is not None or self._place is None or posted.position <= self._place.position:
            return
        self._held[posted.before] = posted
        if not self._posting:
            self._take_held()
            if self._held:
                self._stale = True  # something between is missing
        self._work.set()

    def wanted(self, member: str, round_trip_s: float) -> None:
        """A member asks to be let in first."""
        if member not in self._wants:
            self._wants[member] = time.monotonic() + min(TURN_S, 0.05 + 3 * round_trip_s)

    def compare(self) -> None:
        """Read again what the shared log has: it may be more than was pushed."""
        self._stale = True
        self._work.set()

    def link_changed(self, link: Link) -> None:
        """The way to the space is another one."""
        if link.state == "up":
            self._stale = True
        elif self.away_since is None:
            self.away_since = time.monotonic()
        self._work.set()

    # the life of a lane

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._work.clear()
            wait_s = None
            try:
                wait_s = await self._go_on()
            except Unreachable as error:
                self.away_since = time.monotonic() if self.away_since is None else self.away_since
                logger.info("%s: %s", self.conversation, error)
                self._stale, self._draft, wait_s = True, None, RETRY_S
            except Forbidden as error:
                self._draft, wait_s = None, RETRY_S
                self._refuse_all(refusals.forbidden(self.space, str(error)))
            if wait_s == 0:
                await asyncio.sleep(0)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._work.wait()

    async def close(self, patience_s: float) -> None:
        """Take no more; what is on its way is seen to its end, for a while."""
        self._closing = True
        self._refuse_all(SHUTTING_DOWN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self._posting or self._arriving:
                    self._work.clear()
                    await self._work.wait()

    async def _go_on(self) -> float | None:  # noqa: C901, PLR0911 - one state after the other
        """Do what there is to do; how long to wait before the next look, None: until there is work."""
        if self.refused is not None:
            self._refuse_all(self.refused)
            return None
        if self._log.link.state != "up":
            left_s = self._patience_s()
            if left_s <= 0 or self._log.link.state == "refused":
                self._refuse_all(refusals.unreachable(self.space, self._log.link))
                return None
            return left_s if self._queue else None
        if self._arriving:
            return None
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._refuse_all(failed)
            return RETRY_S
        try:
            if self._stale:
                await self._catch_up()
            if self._erasing:
                await self._erase()
            if not self._queue or self._arriving or self.refused is not None:
                return None if self._arriving or not self._queue else 0
            return await self._decide_some()
        except Unreachable:
            if self._patience_s() <= 0:
                self._refuse_all(refusals.unreachable(self.space, self._log.link))
            raise

    def _patience_s(self) -> float:
        """How long calls go on waiting for a shared log that is away."""
        return PATIENCE_S if self.away_since is None else self.away_since + PATIENCE_S - time.monotonic()

    def _refuse_all(self, rejection: Rejection) -> None:
        """Answer everything that waits: a read is answered as the list is here."""
        queue, self._queue = self._queue, deque()
        for item in queue:
            if type(item) is Write:
                self._answer(item, rejection)
            else:
                self._give_back(item)

    def _answer(self, write: Write, rejection: Rejection) -> None:
        if rejection.kind == "unreachable" and write.params.key in self._unknown:
            rejection = refusals.unknown(self.space, self._log.link.reason)
        self._forgotten = self._forgotten or type(write.caller) is Nobody
        self._left(write)
        self._parts.claims.forget(write)
        write.refuse(rejection)

    def _left(self, write: Write) -> None:
        holder = write.caller.holder
        self._holders[holder] -= 1
        if self._holders[holder] <= 0:
            del self._holders[holder]

    def _give_back(self, item: Read | Barrier | Write) -> None:
        if type(item) is Barrier:
            item.reached()
            return
        if type(item) is Write:
            self._left(item)
            item.to(Stage.QUEUED)
        self._parts.inbox.submit(item)

    # what others posted

    async def _catch_up(self) -> None:
        """Read what is missing."""
        place = await self._reached()
        if place is None:
            return
        found = await self._log.read(self.conversation, max(0, place.position - 1))
        if self.away_since is not None:
            self._returned()  # nothing was heard of the others meanwhile, and proves nothing
        self._stale, self.away_since = False, None
        if place.position and not _goes_on(found, place):
            if found and found[0].position == place.position:
                self._diverge(f"another post stands at position {place.position}, where this replica ends")
                return
            last = await self._log.last(self.conversation)
            if last < place.position and await self._log.is_current(self.conversation, last):
                self._diverge(f"the space has lost what came after position {last}")
            else:
                self._stale = True
                raise Unreachable(f"{self.space} answers with an old state of {self.conversation}.")
            return
        for posted in found:
            if self.refused is None and self._place is not None and posted.position > self._place.position:
                self._arrive(posted)
        self._take_held()
        self._held.clear()
        if self._forgotten and not self._arriving:
            self._forgotten = False
            self._parts.conversations.follow(await self._parts.conversations.durable(self.conversation))

    async def _erase(self) -> None:
        """What was before a tombstone of this daemon leaves the space's disks, if this member may do that."""
        try:
            await self._log.erase(self.conversation, self._erasing)
        except Forbidden as error:
            logger.warning("%s: the space %s keeps what was deleted: %s", self.conversation, self.space, error)
        self._erasing = 0

    async def _reached(self) -> Place | None:
        """Up to where the list goes here; None if it can't be had."""
        if self._place is None:
            opened = await self._parts.conversations.durable(self.conversation)
            if opened.damage is not None:
                self.refused = opened.damage
                return None
            self._place, self._version = opened.place, opened.state.version
        return self._place

    def _take_held(self) -> None:
        while self._place is not None and self.refused is None:
            posted = self._held.pop(self._place.position, None)
            if posted is None:
                break
            self._arrive(posted)
        place = self._place
        self._held = {} if place is None else {b: each for b, each in self._held.items() if b >= place.position}

    def _arrive(self, posted: Posted) -> None:
        """Give a post of others to the writer."""
        assert self._place is not None, "it was read behind a place"
        try:
            received = unseal(posted, self._place, self._version)
        except Unreadable as error:
            self.refused = refusals.unreadable(self.conversation, self.space, error)
            logger.error("%s: %s", self.conversation, error)
            return
        draft = self._draft
        if draft is not None and not draft.steps and draft.place == received.behind:
            draft.follow(received)
        self._hand_over(received, [])

    def _hand_over(self, received: Post, own: list[Step]) -> None:
        """Give a post to the writer, with the steps of this daemon's own calls where it made them."""
        self._place, self._version, self._partial = received.place, received.newest, received.more
        self._unknown.clear()  # what was to stand here is in now, or never will be
        self._wants.pop(received.by, None)
        self._submit(received.version, received.behind, received.place, own or received.steps)

    def _submit(self, first: int, behind: Place, place: Place, steps: list[Step]) -> None:
        self._arriving += 1
        arrived = partial(self._arrived, steps, posted=place != behind)
        self._parts.inbox.submit(Arrival(self.conversation, first, behind, place, steps, arrived))

    def _arrived(self, steps: list[Step], refusal: Rejection | None, *, posted: bool) -> None:
        """The writer is done with a post, or with what needed none."""
        self._arriving -= 1
        self._work.set()
        own = [step.write for step in steps if step.write is not None]
        if refusal is None:
            for write in own:
                self._left(write)
            return
        self._place, self._draft, self._stale = None, None, True
        if refusal is OVERTAKEN and not posted:
            self._queue.extendleft(reversed(own))
            return
        self._failed = None if refusal is OVERTAKEN else refusal
        for write in own:
            self._answer(write, refusals.stored_elsewhere(self.space, refusal) if posted else refusal)

    def _diverge(self, reason: str) -> None:
        self.refused = refusals.unreadable(self.conversation, self.space, Diverged(f"{self.space}: {reason}."))
        logger.error("%s: %s", self.conversation, reason)

    # what is decided here

    async def _decide_some(self) -> float:  # noqa: C901 - one reason to wait after the other
        """Answer what waits up to the next call that needs a post of its own."""
        while self._queue and type(self._queue[0]) is not Write:
            self._give_back(self._queue.popleft())
        if not self._queue:
            return 0
        if not self._log.link.may_post:
            self._refuse_all(refusals.forbidden(self.space, "This member may only read."))
            return 0
        if self._partial:
            self._refuse_all(refusals.partial(self.space, self._log.link))
            return 0
        await self._turn()
        opened = await self._opened()
        if opened is None:
            return 0
        draft = self._draft
        if draft is None or draft.place != opened.place or draft.steps:
            draft = self._draft = Draft(opened, self._parts.transactor, self._log.member)
        while self._queue and type(item := self._queue[0]) is Write:
            if self._is_known(item, opened) or (not draft.steps and not draft.holds(item)):
                if draft.steps:
                    break
                self._give_back(self._queue.popleft())
                continue
            if not draft.has_room_for(item) or (self._single and draft.steps):
                break
            self._queue.popleft()
            draft.decide(item)
        self._single = max(0, self._single - len(draft.steps))
        if draft.groups:
            await self._post(draft)
        elif draft.steps:
            await self._confirm(draft)
        return 0

    async def _opened(self) -> LoadedConversation | None:
        """The list, if it is as far as the posts that were given to the writer."""
        opened = await self._parts.conversations.durable(self.conversation)
        if opened.keys is None:
            opened.keys = set(await self._parts.log.keys(self.conversation))
            opened = await self._parts.conversations.durable(self.conversation)
        if self._arriving or opened.place != self._place or opened.keys is None:
            self._place, self._stale = (self._place, self._stale) if self._arriving else (None, True)
            return None
        return opened

    @staticmethod
    def _is_known(write: Write, opened: LoadedConversation) -> bool:
        """Whether the call's key came in meanwhile: it was retried through another machine."""
        key = write.params.key
        return key is not None and not write.fresh and opened.keys is not None and key_hash(key) in opened.keys

    async def _post(self, draft: Draft) -> None:  # noqa: PLR0915 - a branch for each answer
        """Post what was decided, and answer it once it is in both logs."""
        place, groups = draft.place, draft.groups
        nonce = f"{self._log.member}-{os.urandom(8).hex()}"
        body = seal(self._log.member, nonce, draft.first, place.check, groups)
        self._posting = True
        try:
            until = None if self.away_since is None else self.away_since + PATIENCE_S
            position = await post(self._log, self.conversation, place.position, nonce, body, until)
        except Conflict:
            self.counts.conflicts += 1
            self.away_since = None
            self._start_again(draft)
            with contextlib.suppress(SharedLogError):
                await self._log.want(self.conversation)
            return
        except OutcomeUnknown as error:
            self._end(draft, refusals.unknown(self.space, str(error)))
            raise Unreachable(str(error)) from error
        except Unreachable:
            self._start_again(draft)
            raise
        except Forbidden as error:
            self._end(draft, refusals.forbidden(self.space, str(error)))
            return
        except asyncio.CancelledError:
            self._end(draft, refusals.unknown(self.space, "The daemon stops."))
            raise
        except TooLarge as error:
            if len(draft.steps) > 1:
                self._single = len(draft.steps)
                self._start_again(draft)
                return
            self._end(draft, refusals.too_large(error))
            return
        finally:
            self._posting = False
            self._work.set()
        self.away_since = None
        self.counts.posts += 1
        self.counts.calls += len(groups)
        first, newest, behind, steps = draft.first, draft.version, draft.place, draft.steps
        if any(type(event) is ConversationDeleted for step in groups for event in step.events):
            self._erasing = position
        reached = Place(position, check_of(body))
        draft.reached(reached)
        received = Post(self._log.member, nonce, first, newest, behind, reached, [], more=False)
        self._hand_over(received, steps)
        self._take_held()

    async def _confirm(self, draft: Draft) -> None:
        """Nothing is to be posted: answer what was decided once a quorum has said that the state was the newest."""
        steps, place = draft.steps, draft.place
        asked = any(step.write is not None and type(step.write.caller) is not Nobody for step in steps)
        try:
            current = not asked or await self._log.is_current(self.conversation, place.position)
        except Unreachable:
            self._start_again(draft)
            raise
        self.away_since = None
        if not current or self._place != place:
            self._start_again(draft)
            return
        draft.begin()
        self._submit(draft.first, place, place, steps)

    def _start_again(self, draft: Draft) -> None:
        """Nothing of what was decided holds: it is decided again, on a newer state."""
        self._draft, before = None, self._place
        self._queue.extendleft(reversed([step.write for step in draft.steps if step.write is not None]))
        self._posting = False
        self._take_held()
        self._stale = self._place == before

    def _end(self, draft: Draft, rejection: Rejection) -> None:
        """Nothing of what was decided is answered otherwise: what is refused may rest on what did not come to be."""
        self._draft, self._stale = None, True
        for step in draft.steps:
            if step.write is not None:
                if rejection.kind == "outcome_unknown" and step.write.params.key is not None:
                    self._unknown.add(step.write.params.key)
                self._answer(step.write, rejection)

    async def _turn(self) -> None:
        """Let those post first who asked for it before: a courtesy, nothing rests on it."""
        while self._wants:
            member, until = next(iter(self._wants.items()))
            left_s = until - time.monotonic()
            if member == self._log.member:
                return
            if left_s <= 0:
                del self._wants[member]
                continue
            self._work.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._work.wait()


def _goes_on(found: list[Posted], place: Place) -> bool:
    """Whether what was read begins with the post that a replica ends with, or with one that erases it."""
    if not found:
        return False
    first = found[0]
    with contextlib.suppress(Exception):
        return first.position > place.position or check_of(first.body) == place.check
    return False
