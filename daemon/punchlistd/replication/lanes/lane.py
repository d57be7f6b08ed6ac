"""Write path of one shared list: decide calls on a draft, post with compare-and-set, then pass the post to the writer.

Posts from other members arrive in the list's `replica`. A lane has at most one post in flight, and calls that arrive in
the meantime share the next post. The writer answers calls once their post is in both the shared and the local log.
Before a lane answers calls that were rejected or change nothing, a quorum confirms that the draft's state was current.

The lanes of a space only poll to detect lost pushes, by comparing positions every few seconds.

A lane is in one stage at a time. `NEXT` lists the transitions:

         ┌─────────────────────┐
         ▼                     │
    ─▶ OPEN ◀───▶ LEFT ◀───▶ ERASED
         │          │          │
         ├──────────┴──────────┤
         ▼                     ▼
      CLOSING ─────────▶ DISSOLVED

An open lane rejects all changes while its replica is stuck.
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
from punchlistd.engine.calls import Barrier, DaemonCaller, Read, Step, Write
from punchlistd.engine.lists.loaded import Audience, LoadedConversation, Place
from punchlistd.engine.replies import SHUTTING_DOWN
from punchlistd.engine.writing.transaction import OVERTAKEN
from punchlistd.replication.lanes.draft import Draft
from punchlistd.replication.lanes.left import delete_local_copy
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
"""Delay before retrying after a failure of the shared log, in seconds."""


GATHER_FRACTION = 1 / 4
"""Time to wait for the next calls of the clients just answered, so that these calls share one post, as a fraction of a
post's duration."""


class Stage(IntEnum):
    """Lifecycle stage of a lane."""

    OPEN = auto()
    """Accepts calls and posts their events."""
    LEFT = auto()
    """This machine has left the list: rejects all calls except the deletion of the local copy."""
    ERASED = auto()
    """The local copy is deleted: calls wait until the list is local."""
    CLOSING = auto()
    """Rejects all calls, but finishes posts in flight."""
    DISSOLVED = auto()
    """The list is local: calls go to the writer without the lane."""


NEXT: dict[Stage, frozenset[Stage]] = {
    Stage.OPEN: frozenset({Stage.LEFT, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.LEFT: frozenset({Stage.OPEN, Stage.ERASED, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.ERASED: frozenset({Stage.OPEN, Stage.LEFT, Stage.CLOSING, Stage.DISSOLVED}),
    Stage.CLOSING: frozenset({Stage.DISSOLVED}),
    Stage.DISSOLVED: frozenset(),
}
"""Stage -> allowed next stages."""


class Counts:
    """Statistics of a lane: number of posts, number of calls in them, and number of posts that lost a conflict."""

    def __init__(self) -> None:
        self.posts = self.calls = self.conflicts = 0


class Lane:
    """Queue and posting loop of one shared list.

    Args:
        conversation: ID of the list.
        space: Space in which the list is shared.
        base: The list's place before the first post that is recorded in the local log.
        log: The shared log.
        parts: Parts of the engine.
        members: The other daemons of the space.
    """

    def __init__(  # noqa: PLR0913 - a list and its dependencies
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
            on_follow=self._on_follow,
            on_settle=self._on_settle,
            on_reconnect=members.reset_timers,
        )
        self._members = members
        self._log = log
        self._parts = parts
        self._queue: deque[Write | Read | Barrier] = deque()
        self._holders: Counter[object] = Counter()
        self._failed: Rejection | None = None
        self._on_erased: Callable[[], None] = lambda: None
        self._draft: Draft | None = None
        self._lost_own_call = False  # whether one of the daemon's own calls was rejected and has to be repeated
        # Position of a tombstone, if the posts before it still have to be erased from the space; otherwise 0. None if
        # unknown, because the daemon may have been killed during an erasure.
        self._erase_before: int | None = None
        self._expected_calls = 0  # calls in the last post or queued after it, whose clients may call again
        self._solo_calls = 0  # number of queued calls that get one post each, because together they were too large
        self._turns = Turns(log.member)
        self._expects_post = True  # whether the last decided calls led to a post; if so, the next ones probably will
        self._work = asyncio.Event()
        self._unknown_keys: set[str | None] = set()
        """Keys of calls whose post may still arrive. A retry must not be answered with "nothing was written"."""

    def _set_stage(self, stage: Stage) -> None:
        assert stage in NEXT[self.stage], f"a lane can't go from {self.stage.name} to {stage.name}"
        self.stage = stage

    # calls from the writer

    def take(self, item: Write | Read | Barrier) -> None:
        """Enqueue a write, or a read or barrier that has to wait for earlier writes."""
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

    # control and callbacks

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

    def suspend(self, why: Rejection) -> None:
        """Reject changes and stop applying posts until `resume` is called."""
        self.replica.refused = why
        self.replica.check_state()
        self._work.set()

    @property
    def audience(self) -> Audience:
        is_left = self.stage is Stage.LEFT
        members = () if is_left else self._members.followers(self.conversation)
        return Audience(self.space, tuple(map(machine_of, members)), here=is_left)

    def leave(self, why: Rejection, on_erased: Callable[[], None]) -> None:
        """Reject everything except the deletion of the local copy, after which `on_erased` is called."""
        if self.stage in (Stage.OPEN, Stage.ERASED):
            self._set_stage(Stage.LEFT)
        self._on_erased = on_erased
        self.suspend(why)

    def dissolve(self) -> None:
        """Return all queued and later calls to the writer: the list is local."""
        self._set_stage(Stage.DISSOLVED)
        queue, self._queue = self._queue, deque()
        for item in queue:
            self._give_back(item)

    def resume(self) -> None:
        if self.stage in (Stage.LEFT, Stage.ERASED):
            self._set_stage(Stage.OPEN)
        self.replica.reset()
        self._draft = None
        self._work.set()

    def on_post(self, posted: Posted) -> None:
        # Record this now, not when the post is applied: the post's member may have requested the next turn by then.
        self._turns.record_post(poster_of(posted.nonce))
        self.replica.receive(posted)
        self._work.set()

    def on_turn_request(self, member: str, round_trip_s: float) -> None:
        self._turns.enqueue(member, round_trip_s)
        self._work.set()

    def compare(self) -> None:
        """Read the shared log again, in case a push was lost."""
        self.replica.stale = True
        self._work.set()

    def on_link_change(self, link: Link) -> None:
        self.replica.on_link_change(link)
        self.replica.check_state()
        self._work.set()

    # the loop

    async def run(self) -> None:
        with contextlib.closing(self.replica):
            while True:
                self._work.clear()
                wait_s = None
                try:
                    wait_s = await self._step()
                except Unreachable as error:
                    self.replica.mark_unreachable()
                    logger.info("%s: %s", self.conversation, error)
                    self._draft, wait_s = None, RETRY_S
                except Forbidden as error:
                    self._draft, wait_s = None, RETRY_S
                    self._refuse_all(refusals.forbidden(self.space, str(error)))
                except Damaged as damaged:
                    self._draft = None
                    self.suspend(self._parts.conversations.record_damage(damaged))
                self.replica.check_state()
                if wait_s == 0:
                    await asyncio.sleep(0)
                else:
                    with anyio.move_on_after(wait_s):
                        await self._work.wait()

    async def close(self, patience_s: float) -> None:
        """Reject all calls, and wait up to `patience_s` for posts in flight."""
        if self.stage < Stage.CLOSING:
            self._set_stage(Stage.CLOSING)
        self._refuse_all(SHUTTING_DOWN)
        with anyio.move_on_after(patience_s):
            while self.replica.posting or self.replica.arriving:
                self._work.clear()
                await self._work.wait()

    async def _step(self) -> float | None:  # noqa: C901, PLR0911 - one branch for each state
        """Run one iteration. Return the seconds to wait before the next iteration, or None to wait for work."""
        if self.replica.stuck and self.replica.stale and self._log.link.state == "up":
            await self._catch_up()
        if self.replica.refused is not None:
            await self._handle_suspended(self.replica.refused)
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
            if self._erase_before:
                await self._erase(self._erase_before)
            if not self._queue or self.replica.arriving or self.replica.refused is not None:
                return None if self.replica.arriving or not self._queue else 0
            return await self._decide_next()
        except Unreachable:
            if self._patience_s() <= 0:
                self._refuse_all(refusals.unreachable(self.space, self._log.link))
            raise

    def _patience_s(self) -> float:
        away = self.replica.away_since
        return PATIENCE_S if away is None else away + PATIENCE_S - time.monotonic()

    def _refuse_all(self, rejection: Rejection) -> None:
        """Reject all queued writes. Reads and barriers return to the writer, where they use the local state."""
        queue, self._queue = self._queue, deque()
        for item in queue:
            if type(item) is Write:
                self._answer(item, rejection)
            else:
                self._give_back(item)

    def _answer(self, write: Write, rejection: Rejection) -> None:
        if rejection.kind == "unreachable" and write.params.key in self._unknown_keys:
            rejection = refusals.unknown(self.space, self._log.link.reason)
        self._lost_own_call = self._lost_own_call or type(write.caller) is DaemonCaller
        self._release_holder(write)
        self._parts.claims.forget(write)
        write.refuse(rejection)

    def _release_holder(self, write: Write) -> None:
        holder = write.caller.holder
        self._holders[holder] -= 1
        if self._holders[holder] <= 0:
            del self._holders[holder]

    def _give_back(self, item: Read | Barrier | Write) -> None:
        if type(item) is Barrier:
            item.reached()
            return
        if type(item) is Write:
            self._release_holder(item)
            item.to(calls.Stage.QUEUED)
        self._parts.inbox.submit(item)

    async def _handle_suspended(self, why: Rejection) -> None:
        deleting = (item for item in self._queue if type(item) is Write and type(item.params) is ConversationDelete)
        if self.stage is Stage.LEFT and (write := next(deleting, None)) is not None:
            self._queue.remove(write)
            if (refusal := await delete_local_copy(write, self.conversation, self._parts)) is not None:
                self._answer(write, refusal)
            else:
                self._release_holder(write)
                if self.stage is Stage.LEFT:  # the lane may have closed, or the list been joined again, in the meantime
                    self._set_stage(Stage.ERASED)
                self._on_erased()
        if self.stage is not Stage.ERASED:
            self._refuse_all(why)

    # results of posts

    async def _catch_up(self) -> None:
        await self.replica.catch_up()
        if self._erase_before is None:
            deleted_at = await self._find_tombstone()
            self._erase_before = self._erase_before or deleted_at
        if self._lost_own_call and not self.replica.arriving:
            self._lost_own_call = False
            self._parts.conversations.follow(await self._parts.conversations.durable(self.conversation))

    async def _erase(self, before: int) -> None:
        """Erase the posts before a tombstone from the space, if this member is permitted to."""
        try:
            await self._log.erase(self.conversation, before)
        except Forbidden as error:
            logger.warning(
                "%s: the space %s keeps what was deleted until a keeper's machine is there: %s",
                self.conversation,
                self.space,
                error,
            )
        if self._erase_before == before:
            self._erase_before = 0

    async def _find_tombstone(self) -> int:
        """Return the position of the tombstone that starts the local history, or 0 if the history starts with another
        event.

        The daemon that posted the tombstone may have been killed before it erased the earlier posts.
        """
        first = await self._parts.log.read(0, 1, conversation=self.conversation)
        return side_of(first[0]).position if first and is_tombstone(first[0].wire) else 0

    def _on_follow(self, received: Post) -> None:
        # Every member tries to erase the posts, because the member that deleted the list may not be allowed to, or may
        # be gone.
        if received.begins_anew:
            self._erase_before = received.place.position
        # If one of this member's posts has an unknown outcome, it expected this position. It is in the log by now, or
        # never will be.
        self._unknown_keys.clear()
        draft = self._draft
        if draft is not None and not draft.steps and draft.place == received.previous:
            draft.follow(received)

    def _on_settle(self, steps: Sequence[Step], refusal: Rejection | None, posted: bool) -> None:
        self._work.set()
        own = [step.write for step in steps if step.write is not None]
        if refusal is None:
            for write in own:
                self._release_holder(write)
            return
        self._draft = None
        if refusal is OVERTAKEN and not posted:
            self._queue.extendleft(reversed(own))
            return
        self._failed = None if refusal is OVERTAKEN else refusal
        for write in own:
            self._answer(write, refusals.stored_elsewhere(self.space, refusal) if posted else refusal)

    # deciding and posting

    async def _decide_next(self) -> float:  # noqa: C901 - one branch for each reason to wait
        """Decide and post as many queued calls as fit in one post. Return the seconds to wait before the next
        iteration."""
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
        await self._wait_for_batch()
        await self._take_turn()
        loaded = await self.replica.loaded()
        if loaded is None:
            return 0
        draft = self._draft
        if draft is None or draft.place != loaded.place or draft.steps:
            draft = self._draft = Draft(loaded, self._parts.transactor, self._log.member)
        await self._decide(draft, loaded)
        self._solo_calls = max(0, self._solo_calls - len(draft.steps))
        if draft.groups:
            await self._post(draft)
        elif draft.steps:
            self.replica.follow_held()
            await self._confirm(draft)
        return 0

    async def _decide(self, draft: Draft, loaded: LoadedConversation) -> None:
        """Decide the calls of one post. Posts pushed in the meantime are held, as they are during posting."""
        self.replica.posting = True
        try:
            while self._queue and type(item := self._queue[0]) is Write:
                if self._has_known_key(item, loaded) or (not draft.steps and not draft.has_current_lookback(item)):
                    if draft.steps:
                        break
                    self._give_back(self._queue.popleft())
                    continue
                if not draft.has_room_for(item) or (self._solo_calls and draft.steps):
                    break
                self._queue.popleft()
                await in_slices(draft.decide_in_slices(item))
        except asyncio.CancelledError:
            self._reject_draft(draft, SHUTTING_DOWN)
            raise
        finally:
            self.replica.posting = False

    @staticmethod
    def _has_known_key(write: Write, loaded: LoadedConversation) -> bool:
        """Return True if the list already contains the call's key, because the call was retried on another machine."""
        key = write.params.key
        return key is not None and not write.key_is_new and loaded.keys is not None and key_hash(key) in loaded.keys

    async def _post(self, draft: Draft) -> None:  # noqa: PLR0915 - one branch for each outcome
        self._expects_post = True
        place, groups = draft.place, draft.groups
        nonce = new_nonce(self._log.member)
        body = seal(self._log.member, nonce, draft.first, place.check, groups)
        self.replica.posting = True
        try:
            position = await post(self._log, self.conversation, place.position, nonce, body, self.replica.find_held)
        except Conflict:
            self.counts.conflicts += 1
            self.replica.away_since = None
            self._turns.record_lost_race()
            self._requeue(draft)
            return
        except OutcomeUnknown as error:
            self._reject_draft(draft, refusals.unknown(self.space, str(error)))
            raise Unreachable(str(error)) from error
        except Unreachable:
            self._requeue(draft)
            raise
        except Forbidden as error:
            self._reject_draft(draft, refusals.forbidden(self.space, str(error)))
            return
        except asyncio.CancelledError:
            self._reject_draft(draft, refusals.unknown(self.space, "The daemon stops."))
            raise
        except TooLarge as error:
            if len(draft.steps) > 1:
                self._solo_calls = len(draft.steps)
                self._requeue(draft)
                return
            self._reject_draft(draft, refusals.too_large(error))
            return
        finally:
            self.replica.posting = False
            self._work.set()
        self.replica.away_since = None
        self._turns.record_post(self._log.member)
        self.counts.posts += 1
        self.counts.calls += len(groups)
        self._expected_calls = len(groups) + len(self._queue)
        first, newest, previous, steps = draft.first, draft.version, draft.place, draft.steps
        if any(type(event) is ConversationDeleted for step in groups for event in step.events):
            self._erase_before = position
        reached = Place(position, check_of(body))
        draft.advance_to(reached)
        received = Post(self._log.member, nonce, first, newest, previous, reached, [], more=False)
        self.replica.follow(received, steps)
        self.replica.follow_held()

    async def _confirm(self, draft: Draft) -> None:
        """Answer calls that produced no events, once a quorum confirms that the draft's state was current."""
        self._expects_post = False
        self._turns.record_post(self._log.member)
        steps, place = draft.steps, draft.place
        has_clients = any(step.write is not None and type(step.write.caller) is not DaemonCaller for step in steps)
        try:
            is_current = not has_clients or await self._log.is_current(self.conversation, place.position)
        except Unreachable:
            self._requeue(draft)
            raise
        self.replica.away_since = None
        if not is_current or self.replica.place != place:
            self._requeue(draft)
            return
        draft.begin()
        self.replica.submit(draft.first, place, place, steps)

    def _requeue(self, draft: Draft) -> None:
        self._draft, before = None, self.replica.place
        self._queue.extendleft(reversed([step.write for step in draft.steps if step.write is not None]))
        self.replica.posting = False
        self.replica.follow_held()
        self.replica.stale = self.replica.place == before

    def _reject_draft(self, draft: Draft, rejection: Rejection) -> None:
        """Reject all calls of a draft. Even rejections decided earlier may depend on the draft's unposted events."""
        self._draft, self.replica.stale = None, True
        for step in draft.steps:
            if step.write is not None:
                if rejection.kind == "outcome_unknown" and step.write.params.key is not None:
                    self._unknown_keys.add(step.write.params.key)
                self._answer(step.write, rejection)

    async def _wait_for_batch(self) -> None:
        """Wait for the next calls of the clients just answered.

        Otherwise, these clients and those that had to wait would alternate, with a separate post for each group.
        """
        with anyio.move_on_after(self._log.round_trip_s * GATHER_FRACTION):
            while len(self._queue) < self._expected_calls:
                self._work.clear()
                await self._work.wait()

    async def _take_turn(self) -> None:
        if self._turns.should_request(self._log.round_trip_s, posts=self._expects_post):
            with contextlib.suppress(SharedLogError):
                await self._log.request_turn(self.conversation)
        while (wait_s := self._turns.wait_s()) > 0:
            self._work.clear()
            with anyio.move_on_after(wait_s):
                await self._work.wait()
