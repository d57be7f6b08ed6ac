"""What this daemon shares: its spaces, and the lists in them, kept as they are configured.

Configuration is written before anything rests on it: a list that is being shared, joined or left is so again after a
crash, and the same command goes on where it stopped.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.spaces import (
    MAX_REPAIRED,
    BadPost,
    Deletion,
    LeftResult,
    ListJoin,
    ListLeave,
    ListShare,
    MachineView,
    SharedListView,
    SharedResult,
    SpaceAdd,
    SpaceListResult,
    SpacePlace,
    SpaceRemoved,
    SpaceRepair,
    SpaceRepaired,
    SpaceResult,
    SpaceView,
)
from punchlistd.engine.calls import Arrival, Holder
from punchlistd.engine.claims.leases import Leases
from punchlistd.engine.lists.history import fact_of
from punchlistd.engine.lists.loaded import LoadedConversation, Place
from punchlistd.engine.replies import STORAGE_FULL
from punchlistd.replication.lanes.lane import Lane, Stage
from punchlistd.replication.lanes.lanes import Lanes
from punchlistd.replication.lanes.replica import Parts
from punchlistd.replication.port import Forbidden, Link, SharedLog, SharedLogError
from punchlistd.replication.posts import history, refusals
from punchlistd.replication.posts.posting import PATIENCE_S
from punchlistd.replication.posts.posts import TooNew
from punchlistd.replication.posts.refusals import Rejected
from punchlistd.replication.posts.repair import find_bad
from punchlistd.replication.spaces import (
    BadAddress,
    Checked,
    SharedList,
    Space,
    Spaces,
    checked_addresses,
    load,
    machine_name,
    save,
)
from punchlistd.store.port import Damaged, StorageFull
from punchlistd.store.record import is_tombstone

logger = logging.getLogger(__name__)

ASKED_S = 6.0
"""How long other machines have to tell how much they have of a list that is to be put back, in seconds: one that was
cut off is back after five, and tells it each second."""

RETRY_S = 5.0
"""How long after a failure a list that was being shared is tried again, in seconds."""


class Adapter(NamedTuple):
    """The engine that orders posts.

    Attributes:
        open: The log of a space, for a member.
        prepare: Tries everything that a space needs, and makes it if need be; raises `Rejected` if it can't be used.
    """

    open: Callable[[Space, str], SharedLog]
    prepare: Callable[[Space, str], Awaitable[Checked]]


class _Kept(NamedTuple):
    space: Space
    lanes: Lanes
    scope: anyio.CancelScope


class Sharing:
    """The spaces of a daemon. Its methods raise `Rejected`.

    Args:
        data_dir: where `spaces.json` is.
        env: what else configures spaces.
        parts: the engine.
        leases: tells which lists have claims.
        adapter: the engine that orders posts.
    """

    def __init__(
        self, data_dir: str, env: Mapping[str, str], *, parts: Parts, leases: Leases, adapter: Adapter
    ) -> None:
        self.member = f"{machine_name(env)}_{parts.log.epoch[:8]}"
        self._data_dir = data_dir
        self._env = env
        self._parts = parts
        self._adapter = adapter
        self._spaces = Spaces()
        self._kept: dict[str, _Kept] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._running = anyio.Event()
        self._changing = asyncio.Lock()
        leases.member = self._holder
        self._leases = leases

    async def load(self) -> None:
        """Read what is configured, so that no change of a shared list passes by its lane.

        Raises:
            Misconfigured: It can't be used.
        """
        self._spaces = await anyio.to_thread.run_sync(load, self._data_dir, self._env)
        for space in self._spaces.spaces:
            for lane in self._prepare(space).lanes.lanes.values():
                if lane.replica.refused is None and (refused := await self._forget_deletion(lane.conversation)):
                    lane.hold(refused)  # the environment names a list of this machine's
        for one in await self._erased():
            with suppress(Rejected):
                await self._save(self._without(one))
                self._drop_lane(one)
                del self._kept[one.space].lanes.lanes[one.conversation]

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            self._running.set()
            for kept in self._kept.values():
                group.start_soon(self._run, kept)
            for one in self._spaces.lists:
                if one.sharing:
                    group.start_soon(self._finish, one.conversation)
            await anyio.sleep_forever()

    async def close(self) -> None:
        for kept in self._kept.values():
            await kept.lanes.close()

    def _prepare(self, space: Space) -> _Kept:
        lanes = Lanes(space.name, self._adapter.open(space, self.member), self._parts, self._leases)
        self._kept[space.name] = kept = _Kept(space, lanes, anyio.CancelScope())
        for one in self._spaces.lists:
            if one.space == space.name:
                self._hold_back(lanes.add(one.conversation, Place(one.position, one.check)), one)
        return kept

    def _hold_back(self, lane: Lane, one: SharedList) -> None:
        if one.sharing:
            lane.hold(refusals.partial(one.space, lane.link))
        elif one.left:
            lane.leave(refusals.left(one.conversation, one.space), self._was_erased)

    async def _run(self, kept: _Kept) -> None:
        with kept.scope:
            await kept.lanes.run()

    def _holder(self, keeper: str, conversation: str) -> Holder | None:
        kept = next((kept for kept in self._kept.values() if conversation in kept.lanes.lanes), None)
        return None if kept is None else kept.lanes.members.of(keeper, conversation)

    # lists that were left

    @asynccontextmanager
    async def _change(self) -> AsyncGenerator[None]:
        async with self._changing:
            for one in await self._erased():
                with suppress(Rejected):
                    await self._let_go(one)
            yield

    async def _erased(self) -> list[SharedList]:
        """The lists that were left and of which there is no copy here any more: they have to do with no space."""
        left = [one for one in self._spaces.lists if one.left and one.space in self._kept]
        copies = [(one, await self._parts.conversations.durable(one.conversation)) for one in left]
        return [one for one, loaded in copies if not loaded.state.exists and loaded.damage is None]

    def _was_erased(self) -> None:
        """The copy of a list that was left is gone: from now on the name is free."""
        assert self._group is not None, "it runs"
        self._group.start_soon(self._tidy)

    async def _tidy(self) -> None:
        async with self._change():
            for one in await self._erased():  # there is no room to write that down
                self._hold_back(self._kept[one.space].lanes.lanes[one.conversation], one)

    async def _let_go(self, one: SharedList) -> None:
        await self._save(self._without(one))
        await self._load_anew(one.conversation, then=partial(self._drop_lane, one))
        await self._kept[one.space].lanes.remove(one.conversation)

    def _without(self, one: SharedList) -> Spaces:
        return Spaces(self._spaces.spaces, tuple(each for each in self._spaces.lists if each != one))

    def _drop_lane(self, one: SharedList) -> None:
        self._kept[one.space].lanes.lanes[one.conversation].dissolve()
        self._parts.conversations.lanes.pop(one.conversation, None)
        self._parts.conversations.drop(one.conversation)

    async def _forget_deletion(self, name: str) -> Rejection | None:
        """Let a list that gets its history from the space begin with it, if the local one ends with its deletion.

        Nobody writes to it meanwhile, since its lane holds what comes.
        """
        loaded = await self._parts.conversations.durable(name)
        if not loaded.state.version or loaded.place != Place():
            return None
        if loaded.state.exists or loaded.damage is not None:
            return refusals.not_empty(name)
        try:
            await self._parts.log.forget(name)
        except StorageFull:
            return STORAGE_FULL
        except Damaged as damaged:
            return self._parts.conversations.record_damage(damaged)
        self._parts.conversations.drop(name)
        return None

    # spaces

    async def add_space(self, params: SpaceAdd) -> SpaceResult:
        await self._running.wait()
        async with self._change():
            old = self._spaces.named(params.space)
            if old is not None and old.source == "environment":
                raise Rejected(refusals.configured_elsewhere(params.space))
            try:
                urls = checked_addresses(params.urls)
            except BadAddress as error:
                raise Rejected(Rejection("invalid_params", str(error), {"field": "urls"})) from error
            asked = Space(
                params.space,
                urls,
                creds=params.creds or "",
                ca=params.ca or "",
                replicas=params.replicas or 0,
                monitor=",".join(params.monitors),
            )
            checked = await self._adapter.prepare(asked, self.member)
            others = tuple(one for one in self._spaces.spaces if one.name != params.space)
            await self._save(Spaces((*others, checked.space), self._spaces.lists))
            if (kept := self._kept.pop(params.space, None)) is not None:
                await kept.lanes.close()
                kept.scope.cancel()
            self._start(self._prepare(checked.space))
            for name in self._kept[params.space].lanes.lanes:
                await self._load_anew(name)
            await self._link_known(params.space)
            found = {"server": checked.server, "server_version": checked.server_version}
            return SpaceResult(space=msgspec.structs.replace(self._view(checked.space, {}), **found), made=checked.made)

    def _start(self, kept: _Kept) -> None:
        assert self._group is not None, "it runs"
        self._group.start_soon(self._run, kept)

    async def list_spaces(self) -> SpaceListResult:
        deletions: dict[str, Deletion] = {}
        for kept in self._kept.values():
            for name in list(kept.lanes.lanes):
                loaded = await self._parts.conversations.durable(name)
                if loaded.state.version and not loaded.state.exists:
                    if (deletion := await self._deletion(name)) is not None:
                        deletions[name] = deletion
        return SpaceListResult(spaces=tuple(self._view(space, deletions) for space in self._spaces.spaces))

    async def _deletion(self, name: str) -> Deletion | None:
        """Return the deletion of a list: its log begins with it, since earlier events are erased."""
        with suppress(Damaged):
            for first in await self._parts.log.read(0, 1, conversation=name):
                if is_tombstone(first.wire):
                    fact = fact_of(first)
                    return Deletion(at=fact.at, by=fact.actor)
        return None

    async def remove_space(self, params: SpacePlace) -> SpaceRemoved:
        async with self._change():
            space = self._spaces.named(params.space)
            if space is None:
                raise Rejected(refusals.no_space(params.space))
            if space.source == "environment":
                raise Rejected(refusals.configured_elsewhere(params.space))
            shared = [one for one in self._spaces.lists if one.space == params.space]
            if followed := [one.conversation for one in shared if not one.left]:
                raise Rejected(refusals.still_shared(params.space, followed[0]))
            rest = Spaces(
                tuple(one for one in self._spaces.spaces if one is not space),
                tuple(one for one in self._spaces.lists if one not in shared),
            )
            await self._save(rest)
            for one in shared:
                await self._load_anew(one.conversation, then=partial(self._drop_lane, one))
            kept = self._kept.pop(params.space)
            await kept.lanes.close()
            kept.scope.cancel()
            return SpaceRemoved(removed=params.space, copies=tuple(one.conversation for one in shared))

    async def repair_space(self, params: SpaceRepair) -> SpaceRepaired:
        name, space = params.conversation, params.space
        if (kept := self._kept.get(space)) is None:
            raise Rejected(refusals.no_space(space))
        await self._link_known(space)
        log = kept.lanes.log
        try:
            if not (posts := await log.read(name, 0)):
                raise Rejected(refusals.not_there(name, space, await log.lists()))
            found = await find_bad(posts)
            if removed := [one for one in found if one.id in params.remove]:
                await log.remove(name, [one.post for one in removed])
        except Forbidden as error:
            raise Rejected(refusals.not_a_keeper(space)) from error
        except SharedLogError as error:
            raise Rejected(refusals.of(error, space, log.link)) from error
        if (lane := kept.lanes.lanes.get(name)) is not None:
            lane.compare()
        left = [one for one in found if one not in removed]
        shown = tuple(
            BadPost(id=one.id, position=one.post.position, why=one.why, certain=one.certain, at=one.post.at)
            for one in left[:MAX_REPAIRED]
        )
        return SpaceRepaired(
            space=space, conversation=name, posts=shown, more=len(left) - len(shown), removed=len(removed)
        )

    # lists

    async def share(self, params: ListShare) -> SharedResult:
        async with self._change():
            name = params.conversation
            self._check(name, params.space)
            await self._link_known(params.space)
            known = self._listed(name)
            loaded = await self._parts.conversations.durable(name)
            if known is not None and known.left:
                raise Rejected(refusals.left(name, params.space))
            if known is not None and not known.sharing:
                return SharedResult(conversation=name, space=params.space, version=loaded.state.version, posts=0)
            if loaded.damage is not None:
                raise Rejected(loaded.damage)
            if not loaded.state.exists:
                raise Rejected(
                    Rejection("not_found", f"There is no list {name} here.", {"what": "conversation", "id": name})
                )
            log = self._kept[params.space].lanes.log
            with _rejecting(name, params.space, log):
                # What is there may be a part of this list's own history, of a share that was cut short.
                found = [] if known is not None else await log.read(name, 0)
                if found and not await history.matches(self._parts.log, name, found):
                    raise history.Taken
            if known is None:
                one = SharedList(name, params.space, sharing=True)
                await self._save(Spaces(self._spaces.spaces, (*self._spaces.lists, one)))
                await self._add_lane(name, one)
            return await self._post_history(name, params.space)

    async def _post_history(self, name: str, space: str) -> SharedResult:
        """Post what of a list is not in the space yet, and let changes through behind it."""
        lanes = self._kept[space].lanes
        lane = lanes.lanes[name]
        if not lanes.log.link.may_post:
            raise Rejected(refusals.forbidden(space, "These creds may only read."))
        with _rejecting(name, space, lanes.log):
            place, posts = await history.share(self._parts.log, lanes.log, name)
        version = (await self._parts.conversations.durable(name)).state.version
        done = SharedList(name, space, place.position, place.check, version)
        await self._save(self._with(done))
        lane.replica.base = place
        await self._load_anew(name)
        lane.go_on()
        await lane.barrier()  # so that the list is shown as current, and a change is taken at once
        loaded = await self._parts.conversations.durable(name)
        return SharedResult(conversation=name, space=space, version=loaded.state.version, posts=posts)

    async def repair(self, params: ListShare) -> SharedResult:
        """list.share, of a list that the space has lost changes of."""
        async with self._change():
            name, space = params.conversation, params.space
            known = self._listed(name)
            if known is None or known.space != space:
                self._check(name, space)
                raise Rejected(refusals.not_shared(name))
            if known.left or known.sharing:
                raise Rejected(refusals.left(name, space) if known.left else refusals.partial(space, self._link(space)))
            kept = self._kept[space]
            await self._adapter.prepare(kept.space, self.member)
            if not await kept.lanes.is_up(PATIENCE_S):
                raise Rejected(refusals.unreachable(space, self._link(space)))
            if not self._link(space).may_post:
                raise Rejected(refusals.forbidden(space, "These creds may only read."))
            await anyio.sleep(ASKED_S)
            own = (await self._parts.conversations.durable(name)).state.version
            version, keeper = kept.lanes.members.longest(name, ASKED_S)
            if version > own:
                raise Rejected(refusals.longer_elsewhere(name, version, keeper, own))
            lane = kept.lanes.lanes[name]
            base, log = Place(known.position, known.check), kept.lanes.log
            with _rejecting(name, space, log, taken=refusals.other_history):
                posts = await history.put_back(self._parts.log, log, name, base, known.version)
            if lane.replica.stuck:
                lane.go_on()
            await lane.barrier()
            if lane.replica.refused is not None:
                raise Rejected(lane.replica.refused)
            return SharedResult(conversation=name, space=space, version=own, posts=posts)

    def _link(self, space: str) -> Link:
        return self._kept[space].lanes.log.link

    async def _finish(self, name: str) -> None:
        while (one := self._listed(name)) is not None and one.sharing and one.space in self._kept:
            try:
                async with self._change():
                    await self._post_history(name, one.space)
            except Rejected as rejected:
                logger.info("%s is not wholly shared yet: %s", name, rejected)
                await anyio.sleep(RETRY_S)
            else:
                return

    async def join(self, params: ListJoin) -> SharedResult:
        async with self._change():
            name, space = params.conversation, params.space
            self._check(name, space)
            await self._link_known(space)
            known = self._listed(name)
            lanes = self._kept[space].lanes
            if known is None:
                await self._check_join(name, space, lanes.log)
                one = SharedList(name, space)
                await self._save(Spaces(self._spaces.spaces, (*self._spaces.lists, one)))
                await self._begin(name, one)
            elif known.left:
                again = msgspec.structs.replace(known, left=False)
                await self._save(self._with(again))
                lanes.lanes[name].go_on()
            lane = lanes.lanes[name]
        await lane.barrier()
        loaded = await self._parts.conversations.durable(name)
        if lane.replica.refused is not None:
            raise Rejected(lane.replica.refused)
        if lane.replica.away_since is not None:
            raise Rejected(refusals.joined_later(space, lanes.log.link))
        return SharedResult(conversation=name, space=space, version=loaded.state.version, posts=0)

    async def _begin(self, name: str, one: SharedList) -> None:
        lanes = self._kept[one.space].lanes

        def add() -> None:
            lanes.add(name, Place()).hold(refusals.partial(one.space, lanes.log.link))

        await self._load_anew(name, then=add)
        if (refused := await self._forget_deletion(name)) is not None:
            with suppress(Rejected):
                await self._let_go(one)
            raise Rejected(refused)
        lanes.lanes[name].go_on()

    async def _check_join(self, name: str, space: str, log: SharedLog) -> None:
        loaded = await self._parts.conversations.durable(name)
        if loaded.state.exists or loaded.damage is not None:
            raise Rejected(refusals.not_empty(name))
        with _rejecting(name, space, log):
            if not await log.last(name):
                raise Rejected(refusals.not_there(name, space, await log.lists()))

    async def leave(self, params: ListLeave) -> LeftResult:
        async with self._change():
            name = params.conversation
            known = self._listed(name)
            if known is None:
                raise Rejected(refusals.not_shared(name))
            if params.keep_as is not None:
                await self._copy(name, params.keep_as)
            if known.left:
                return LeftResult(conversation=name, kept_as=params.keep_as)
            gone = msgspec.structs.replace(known, left=True)
            await self._save(self._with(gone))
            if (kept := self._kept.get(known.space)) is not None:
                self._hold_back(kept.lanes.lanes[name], gone)
            return LeftResult(conversation=name, kept_as=params.keep_as)

    async def _copy(self, name: str, other: str) -> None:
        known = (await self._parts.conversations.durable(other)).state
        if known.version:
            raise Rejected(refusals.not_empty(other, deleted=not known.exists))
        async for first, steps, _ in history.slices(self._parts.log, name, self.member):
            done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
            self._parts.inbox.submit(Arrival(other, first, Place(), Place(), steps, done.set_result))
            if (refused := await done) is not None:
                raise Rejected(refused)

    # what is common to these

    def _listed(self, name: str) -> SharedList | None:
        return next((one for one in self._spaces.lists if one.conversation == name), None)

    def _with(self, changed: SharedList) -> Spaces:
        lists = (changed if one.conversation == changed.conversation else one for one in self._spaces.lists)
        return Spaces(self._spaces.spaces, tuple(lists))

    async def _link_known(self, space: str) -> None:
        with anyio.move_on_after(PATIENCE_S):
            await self._kept[space].lanes.link_known.wait()

    def _check(self, name: str, space: str) -> None:
        """Reject a list that can't be in a space, as far as this daemon knows."""
        if self._spaces.named(space) is None:
            raise Rejected(refusals.no_space(space))
        known = self._listed(name)
        if known is not None and known.space != space:
            raise Rejected(refusals.shared_elsewhere(name, known.space))

    async def _add_lane(self, name: str, one: SharedList) -> None:
        await self._load_anew(name, then=lambda: self._hold_back(self._kept[one.space].lanes.add(name, Place()), one))

    async def _load_anew(self, name: str, then: Callable[[], object] = lambda: None) -> None:
        """Drop what is loaded of a list while nothing of it is on its way into the log."""
        while True:
            await self._parts.inbox.wait_until_settled()
            loaded: LoadedConversation | None = self._parts.conversations.loaded.get(name)
            if loaded is None or not loaded.dirty:
                break
        then()
        self._parts.conversations.drop(name)

    async def _save(self, spaces: Spaces) -> None:
        try:
            await anyio.to_thread.run_sync(save, self._data_dir, spaces)
        except OSError as error:
            raise Rejected(refusals.not_written(self._data_dir, error)) from error
        self._spaces = spaces

    def _view(self, space: Space, deletions: Mapping[str, Deletion]) -> SpaceView:
        lanes = self._kept[space.name].lanes
        return SpaceView(
            space=space.name,
            urls=space.urls,
            replicas=space.replicas,
            source=space.source,
            member=self.member,
            creds=space.creds,
            ca=space.ca,
            monitors=tuple(one for one in space.monitor.split(",") if one),
            unchecked=() if space.monitor or space.engine == "postgres" else ("sync_interval",),
            lists=tuple(
                self._list_view(lane, deletions) for lane in lanes.lanes.values() if lane.stage is not Stage.ERASED
            ),
            machines=tuple(
                MachineView(member=name, seen_at=seen.at, lists=tuple(seen.lists))
                for name, seen in reversed(lanes.members.seen.items())
            ),
            **{name: getattr(lanes.log.link, name) for name in _LINK},
        )

    def _list_view(self, lane: Lane, deletions: Mapping[str, Deletion]) -> SharedListView:
        loaded = self._parts.conversations.loaded.get(lane.conversation)
        one = self._listed(lane.conversation)
        state = lane.replica.state
        if one is not None and (one.left or one.sharing):
            state = "left" if one.left else "sharing"
        return SharedListView(
            conversation=lane.conversation,
            state=state,  # pyright: ignore[reportArgumentType] - the kinds of refusal are states, too
            version=0 if loaded is None else loaded.state.version,
            posts=lane.counts.posts,
            conflicts=lane.counts.conflicts,
            reason="" if lane.replica.refused is None else lane.replica.refused.message,
            deleted=deletions.get(lane.conversation),
        )


_LINK = ("state", "kind", "reason", "since", "server", "server_version", "round_trip_ms", "may_post")


@contextmanager
def _rejecting(
    name: str, space: str, log: SharedLog, taken: Callable[[str, str], Rejection] = refusals.taken
) -> Generator[None]:
    """Reject what can't be done in a space; `taken` says what it means that the space has other posts."""
    try:
        yield
    except TooNew as error:
        raise Rejected(refusals.unreadable(name, space, error)) from error
    except history.Taken as error:
        raise Rejected(taken(name, space)) from error
    except history.Altered as error:
        raise Rejected(refusals.altered(name)) from error
    except SharedLogError as error:
        raise Rejected(refusals.of(error, space, log.link)) from error
