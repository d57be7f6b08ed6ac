"""The way of the changes of one shared list: decided on a draft, posted if nobody was first, then given to the writer.

What others post arrives in the list's `replica`. A lane has one post on its way at most, and everything that waits
meanwhile shares the next one. Calls are answered by the writer, when the post is in the shared log and in the local
one. What is refused, or changes nothing, rests on a state that a quorum has called the newest while the call waited.

Nothing here is polled but what may be lost: a push. The lanes of a space compare positions every few seconds.

A lane is in one stage at a time, and `NEXT` is the table of its life:

         ┌─────────────────────┐
         ▼                     │
    ─▶ OPEN ◀───▶ LEFT ◀───▶ ERASED
         │          │          │
         ├──────────┴──────────┤
         ▼                     ▼
      CLOSING ─────────▶ DISSOLVED

Whether an open lane posts depends on its replica: of a list that can't be followed every change is refused.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from enum import IntEnum, auto

import anyio

from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationDeleted
from punchlist_schemas.params import ConversationDelete
from punchlist_schemas.things import Shared, machine_of
from punchlistd.engine import calls
from punchlistd.engine.calls import Barrier, Nobody, Read, Step, Write
from punchlistd.engine.lists.loaded import Audience, LoadedConversation, Place
from punchlistd.engine.replies import SHUTTING_DOWN
from punchlistd.engine.writing.transaction import OVERTAKEN
from punchlistd.replication.lanes.draft import Draft
from punchlistd.replication.lanes.left import delete_here
from punchlistd.replication.lanes.members import Members
from punchlistd.replication.lanes.replica import Parts, Replica
from punchlistd.replication.lanes.turns import Turns
from punchlistd.replication.port import (
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
from punchlistd.replication.posts import refusals
from punchlistd.replication.posts.posting import PATIENCE_S, post
from punchlistd.replication.posts.posts import Post, check_of, new_nonce, poster_of, seal
from punchlistd.slices import in_slices
from punchlistd.store.port import Damaged, side_of
from punchlistd.store.record import is_tombstone, key_hash

logger = logging.getLogger(__name__)

RETRY_S = 0.25
"""How long after a failure the shared log is asked again, in seconds."""


TOGETHER = 1 / 4
"""For this part of what a post takes, those who were just answered may ask again, to share the next one."""


class Stage(IntEnum):
    """What a lane does with calls."""

    OPEN = auto()
    """It takes them, and posts what follows from them."""
    LEFT = auto()
    """The list was left: it refuses all but the deletion of the copy here."""
    ERASED = auto()
    """That copy is deleted: calls wait until the list is one of this machine alone."""
    CLOSING = auto()
    """It refuses all of them, and what is on its way is seen to its end."""
    DISSOLVED = auto()
    """The list is one of this machine alone: they go on without the lane."""


NEXT: dict[Stage, frozenset[Stage]] = {
    Stage.OPEN: frozenset({Stage.LEFT, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.LEFT: frozenset({Stage.OPEN, Stage.ERASED, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.ERASED: frozenset({Stage.OPEN, Stage.LEFT, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.CLOSING: frozenset({Stage.DISSOLVED}),
    Stage.DISSOLVED: frozenset(),
}
"""Where a lane may go from each stage."""


class Counts:
    """What a lane has done: its posts, the calls in them, and how often another post came first."""

    def __init__(self) -> None:
        self.posts = self.calls = self.conflicts = 0


class Lane:
    """The changes of one list on their way.

    Args:
        conversation: the list.
        space: where it is shared.
        base: its place before the first post that the local log tells of.
        log: the shared log.
        parts: the engine.
        members: the other daemons of the space.
    """

    def __init__(  # noqa: PLR0913 - a list, and what it goes through
        self,
        conversation: str,
        space: str,
        base: Place,
        log: SharedLog,
        parts: Parts,
        members: Members,
    ) -> None:
        self.stage = Stage.OPEN
        self.conversation = conversation
        self.space = space
        self.counts = Counts()
        self.replica = Replica(
            conversation,
            space,
            base,
            log,
            parts,
            followed=self._followed,
            settled=self._settled,
            returned=members.heard_of,
        )
        self._members = members
        self._log = log
        self._parts = parts
        self._queue: deque[Write | Read | Barrier] = deque()
        self._holders: Counter[object] = Counter()
        self._failed: Rejection | None = None
        self._on_erased: Callable[[], None] = lambda: None
        self._draft: Draft | None = None
        self._forgotten = False  # whether a call of the daemon itself was refused: it has to be asked for again
        # What was posted before this position was deleted, and is to leave the space. None: not known yet, since this
        # daemon may have been killed over it.
        self._erasing: int | None = None
        self._company = 0  # so many calls were under way when a post was done: in it, or waiting for the next one
        self._single = 0  # so many calls were too large together: each gets a post of its own
        self._turns = Turns(log.member)
        self._posts = True  # what was decided last was to be posted: what comes next is likely to be, too
        self._work = asyncio.Event()
        self._unknown: set[str | None] = set()
        """Keys of calls whose post may still come in: a repetition must not be told that nothing was written."""

    def _to(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"a lane can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    # what comes from the writer

    def take(self, item: Write | Read | Barrier) -> None:
        """Take a write, or a read or a barrier that comes behind writes: each goes on when its turn has come."""
        if self.stage is Stage.DISSOLVED:
            self._give_back(item)
            return
        if self.stage is Stage.CLOSING:
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
        done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
        self.take(Barrier(done))
        return await done

    # what comes from the shared log

    @property
    def base(self) -> Place:
        return self.replica.base

    def placed(self, place: Place) -> Place:
        return self.replica.placed(place)

    @property
    def shared(self) -> Shared | None:
        return self.replica.shared

    @property
    def link(self) -> Link:
        return self._log.link

    def hold(self, why: Rejection) -> None:
        """Take no changes, and follow nothing, until `go_on`."""
        self.replica.refused = why
        self.replica.check_state()
        self._work.set()

    @property
    def audience(self) -> Audience:
        is_left = self.stage is Stage.LEFT
        members = () if is_left else self._members.followers(self.conversation)
        return Audience(self.space, tuple(map(machine_of, members)), here=is_left)

    def leave(self, why: Rejection, on_erased: Callable[[], None]) -> None:
        """Refuse everything but the deletion of the copy here, after which `on_erased` is called."""
        if self.stage in (Stage.OPEN, Stage.ERASED):
            self._to(Stage.LEFT)
        self._on_erased = on_erased
        self.hold(why)

    def dissolve(self) -> None:
        """The list is one of this machine alone: what waits here goes on without the lane, and what comes late."""
        self._to(Stage.DISSOLVED)
        queue, self._queue = self._queue, deque()
        for item in queue:
            self._give_back(item)

    def go_on(self) -> None:
        if self.stage in (Stage.LEFT, Stage.ERASED):
            self._to(Stage.OPEN)
        self.replica.begin_anew()
        self._draft = None
        self._work.set()

    def posted(self, posted: Posted) -> None:
        self._turns.had(poster_of(posted.nonce))  # not once it is followed: he may have asked again by then
        self.replica.posted(posted)
        self._work.set()

    def wanted(self, member: str, round_trip_s: float) -> None:
        self._turns.wanted(member, round_trip_s)
        self._work.set()

    def compare(self) -> None:
        """Read again what the shared log has: it may be more than was pushed."""
        self.replica.stale = True
        self._work.set()

    def link_changed(self, link: Link) -> None:
        self.replica.link_changed(link)
        self.replica.check_state()
        self._work.set()

    # the life of a lane

    async def run(self) -> None:
        with contextlib.closing(self.replica):
            while True:
                self._work.clear()
                wait_s = None
                try:
                    wait_s = await self._go_on()
                except Unreachable as error:
                    self.replica.reach_no_more()
                    logger.info("%s: %s", self.conversation, error)
                    self._draft, wait_s = None, RETRY_S
                except Forbidden as error:
                    self._draft, wait_s = None, RETRY_S
                    self._refuse_all(refusals.forbidden(self.space, str(error)))
                except Damaged as damaged:
                    self._draft = None
                    self.hold(self._parts.conversations.record_damage(damaged))
                self.replica.check_state()
                if wait_s == 0:
                    await asyncio.sleep(0)
                else:
                    with anyio.move_on_after(wait_s):
                        await self._work.wait()

    async def close(self, patience_s: float) -> None:
        """Take no more; what is on its way is seen to its end, for a while."""
        if self.stage < Stage.CLOSING:
            self._to(Stage.CLOSING)
        self._refuse_all(SHUTTING_DOWN)
        with anyio.move_on_after(patience_s):
            while self.replica.posting or self.replica.arriving:
                self._work.clear()
                await self._work.wait()

    async def _go_on(self) -> float | None:  # noqa: C901, PLR0911 - one state after the other
        """Do what there is to do; how long to wait before the next look, None: until there is work."""
        if self.replica.stuck and self.replica.stale and self._log.link.state == "up":
            await self._catch_up()
        if self.replica.refused is not None:
            await self._rest(self.replica.refused)
            return None
        if self._log.link.state != "up":
            left_s = self._patience_s()
            if left_s <= 0 or self._log.link.state == "refused":
                if self._queue:
                    self._log.hurry()
                self._refuse_all(refusals.unreachable(self.space, self._log.link))
                return None
            return left_s if self._queue else None
        if self.replica.arriving:
            return None
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._refuse_all(failed)
            return RETRY_S
        try:
            if self.replica.stale:
                await self._catch_up()
            if self._erasing:
                await self._erase(self._erasing)
            if not self._queue or self.replica.arriving or self.replica.refused is not None:
                return None if self.replica.arriving or not self._queue else 0
            return await self._decide_some()
        except Unreachable:
            if self._patience_s() <= 0:
                self._refuse_all(refusals.unreachable(self.space, self._log.link))
            raise

    def _patience_s(self) -> float:
        away = self.replica.away_since
        return PATIENCE_S if away is None else away + PATIENCE_S - time.monotonic()

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
            item.to(calls.Stage.QUEUED)
        self._parts.inbox.submit(item)

    async def _rest(self, why: Rejection) -> None:
        deleting = (item for item in self._queue if type(item) is Write and type(item.params) is ConversationDelete)
        if self.stage is Stage.LEFT and (write := next(deleting, None)) is not None:
            self._queue.remove(write)
            if (refusal := await delete_here(write, self.conversation, self._parts)) is not None:
                self._answer(write, refusal)
            else:
                self._left(write)
                if self.stage is Stage.LEFT:  # and not closing, or joined again, meanwhile
                    self._to(Stage.ERASED)
                self._on_erased()
        if self.stage is not Stage.ERASED:
            self._refuse_all(why)

    # what became of posts

    async def _catch_up(self) -> None:
        await self.replica.catch_up()
        if self._erasing is None:
            deleted_at = await self._deleted_at()
            self._erasing = self._erasing or deleted_at
        if self._forgotten and not self.replica.arriving:
            self._forgotten = False
            self._parts.conversations.follow(await self._parts.conversations.durable(self.conversation))

    async def _erase(self, before: int) -> None:
        """What was before a tombstone of this daemon leaves the space's disks, if this member may do that."""
        try:
            await self._log.erase(self.conversation, before)
        except Forbidden as error:
            logger.warning(
                "%s: the space %s keeps what was deleted until a keeper's machine is there: %s",
                self.conversation,
                self.space,
                error,
            )
        if self._erasing == before:
            self._erasing = 0

    async def _deleted_at(self) -> int:
        """The position of the tombstone that the list begins with here, 0 if it begins with none.

        Whoever posted it may have been killed before the rest was erased.
        """
        first = await self._parts.log.read(0, 1, conversation=self.conversation)
        return side_of(first[0]).position if first and is_tombstone(first[0].wire) else 0

    def _followed(self, received: Post) -> None:
        """A post goes to the writer: what was to stand in its place is in now, or never will be."""
        if received.begins_anew:  # whoever may erase does: the machine that deleted the list may not, or be gone
            self._erasing = received.place.position
        self._unknown.clear()
        draft = self._draft
        if draft is not None and not draft.steps and draft.place == received.behind:
            draft.follow(received)

    def _settled(self, steps: Sequence[Step], refusal: Rejection | None, posted: bool) -> None:
        self._work.set()
        own = [step.write for step in steps if step.write is not None]
        if refusal is None:
            for write in own:
                self._left(write)
            return
        self._draft = None
        if refusal is OVERTAKEN and not posted:
            self._queue.extendleft(reversed(own))
            return
        self._failed = None if refusal is OVERTAKEN else refusal
        for write in own:
            self._answer(write, refusals.stored_elsewhere(self.space, refusal) if posted else refusal)

    # what is decided here

    async def _decide_some(self) -> float:  # noqa: C901 - one reason to wait after the other
        while self._queue and type(self._queue[0]) is not Write:
            self._give_back(self._queue.popleft())
        if not self._queue:
            return 0
        if not self._log.link.may_post:
            self._refuse_all(refusals.forbidden(self.space, "This member may only read."))
            return 0
        if self.replica.partial:
            self._refuse_all(refusals.partial(self.space, self._log.link))
            return 0
        await self._gather()
        await self._take_turn()
        loaded = await self.replica.loaded()
        if loaded is None:
            return 0
        draft = self._draft
        if draft is None or draft.place != loaded.place or draft.steps:
            draft = self._draft = Draft(loaded, self._parts.transactor, self._log.member)
        await self._decide(draft, loaded)
        self._single = max(0, self._single - len(draft.steps))
        if draft.groups:
            await self._post(draft)
        elif draft.steps:
            self.replica.take_held()
            await self._confirm(draft)
        return 0

    async def _decide(self, draft: Draft, loaded: LoadedConversation) -> None:
        """Decide what one post may hold; what is pushed meanwhile is held, as while it is posted."""
        self.replica.posting = True
        try:
            while self._queue and type(item := self._queue[0]) is Write:
                if self._is_known(item, loaded) or (not draft.steps and not draft.holds(item)):
                    if draft.steps:
                        break
                    self._give_back(self._queue.popleft())
                    continue
                if not draft.has_room_for(item) or (self._single and draft.steps):
                    break
                self._queue.popleft()
                await in_slices(draft.deciding(item))
        except asyncio.CancelledError:
            self._end(draft, SHUTTING_DOWN)
            raise
        finally:
            self.replica.posting = False

    @staticmethod
    def _is_known(write: Write, loaded: LoadedConversation) -> bool:
        """Whether the call's key came in meanwhile: it was retried through another machine."""
        key = write.params.key
        return key is not None and not write.key_is_new and loaded.keys is not None and key_hash(key) in loaded.keys

    async def _post(self, draft: Draft) -> None:  # noqa: PLR0915 - a branch for each answer
        self._posts = True
        place, groups = draft.place, draft.groups
        nonce = new_nonce(self._log.member)
        body = seal(self._log.member, nonce, draft.first, place.check, groups)
        self.replica.posting = True
        try:
            position = await post(self._log, self.conversation, place.position, nonce, body, self.replica.behind)
        except Conflict:
            self.counts.conflicts += 1
            self.replica.away_since = None
            self._turns.lost()
            self._start_again(draft)
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
            self.replica.posting = False
            self._work.set()
        self.replica.away_since = None
        self._turns.had(self._log.member)
        self.counts.posts += 1
        self.counts.calls += len(groups)
        self._company = len(groups) + len(self._queue)
        first, newest, behind, steps = draft.first, draft.version, draft.place, draft.steps
        if any(type(event) is ConversationDeleted for step in groups for event in step.events):
            self._erasing = position
        reached = Place(position, check_of(body))
        draft.reached(reached)
        received = Post(self._log.member, nonce, first, newest, behind, reached, [], more=False)
        self.replica.follow(received, steps)
        self.replica.take_held()

    async def _confirm(self, draft: Draft) -> None:
        """Nothing is to be posted: answer what was decided once a quorum has said that the state was the newest."""
        self._posts = False
        self._turns.had(self._log.member)
        steps, place = draft.steps, draft.place
        asked = any(step.write is not None and type(step.write.caller) is not Nobody for step in steps)
        try:
            current = not asked or await self._log.is_current(self.conversation, place.position)
        except Unreachable:
            self._start_again(draft)
            raise
        self.replica.away_since = None
        if not current or self.replica.place != place:
            self._start_again(draft)
            return
        draft.begin()
        self.replica.submit(draft.first, place, place, steps)

    def _start_again(self, draft: Draft) -> None:
        self._draft, before = None, self.replica.place
        self._queue.extendleft(reversed([step.write for step in draft.steps if step.write is not None]))
        self.replica.posting = False
        self.replica.take_held()
        self.replica.stale = self.replica.place == before

    def _end(self, draft: Draft, rejection: Rejection) -> None:
        """Nothing of what was decided is answered otherwise: what is refused may rest on what did not come to be."""
        self._draft, self.replica.stale = None, True
        for step in draft.steps:
            if step.write is not None:
                if rejection.kind == "outcome_unknown" and step.write.params.key is not None:
                    self._unknown.add(step.write.params.key)
                self._answer(step.write, rejection)

    async def _gather(self) -> None:
        """Let those who were answered together ask again, or they and those who waited would post in turns for good."""
        with anyio.move_on_after(self._log.round_trip_s * TOGETHER):
            while len(self._queue) < self._company:
                self._work.clear()
                await self._work.wait()

    async def _take_turn(self) -> None:
        if self._turns.asks(self._log.round_trip_s, posts=self._posts):
            with contextlib.suppress(SharedLogError):
                await self._log.want(self.conversation)
        while (left_s := self._turns.left_s()) > 0:
            self._work.clear()
            with anyio.move_on_after(left_s):
                await self._work.wait()
