"""Manages the spaces of this daemon and the lists that it shares in them.

The configuration is saved before it takes effect. After a crash, a list that was being shared, joined or left is still
in that state, and repeating the command resumes where it stopped.
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
    SpaceParams,
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
    load,
    machine_name,
    normalize_addresses,
    save,
)
from punchlistd.store.port import Damaged, StorageFull
from punchlistd.store.record import is_tombstone

logger = logging.getLogger(__name__)

ASKED_S = 6.0
"""Time to wait for other machines to report their versions of a list before it is restored, in seconds. A machine that
was cut off reconnects within five seconds, and then reports its versions every second."""

RETRY_S = 5.0
"""Delay after a failure before the sharing of a list is resumed, in seconds."""


class Adapter(NamedTuple):
    """The engine that orders posts.

    Attributes:
        open: Opens the log of a space for a member.
        prepare: Checks a space and creates its missing parts; raises `Rejected` if it can't be used.
    """

    open: Callable[[Space, str], SharedLog]
    prepare: Callable[[Space, str], Awaitable[Checked]]


class _OpenSpace(NamedTuple):
    space: Space
    lanes: Lanes
    scope: anyio.CancelScope


class Sharing:
    """The spaces of a daemon. The methods for clients raise `Rejected`.

    Args:
        data_dir: Directory of `spaces.json`.
        env: Environment variables, which may configure another space.
        parts: Parts of the engine.
        leases: Claims held through this daemon.
        adapter: The engine that orders posts.
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
        self._open_spaces: dict[str, _OpenSpace] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._running = anyio.Event()
        self._changing = asyncio.Lock()
        leases.member = self._holder
        self._leases = leases

    async def load(self) -> None:
        """Read the configuration and create all lanes. No change to a shared list may bypass the list's lane.

        Raises:
            Misconfigured: The configuration is invalid.
        """
        self._spaces = await anyio.to_thread.run_sync(load, self._data_dir, self._env)
        for space in self._spaces.spaces:
            for lane in self._create_lanes(space).lanes.lanes.values():
                if lane.replica.refused is not None:
                    continue
                if (rejection := await self._forget_deleted_history(lane.conversation)) is not None:
                    lane.suspend(rejection)  # the environment names a list that is local on this machine
        for entry in await self._list_erased():
            with suppress(Rejected):
                await self._save(self._config_without(entry))
                self._drop_lane(entry)
                del self._open_spaces[entry.space].lanes.lanes[entry.conversation]

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            self._running.set()
            for open_space in self._open_spaces.values():
                group.start_soon(self._run, open_space)
            for entry in self._spaces.lists:
                if entry.sharing:
                    group.start_soon(self._finish_sharing, entry.conversation)
            await anyio.sleep_forever()

    async def close(self) -> None:
        for open_space in self._open_spaces.values():
            await open_space.lanes.close()

    def _create_lanes(self, space: Space) -> _OpenSpace:
        lanes = Lanes(space.name, self._adapter.open(space, self.member), self._parts, self._leases)
        self._open_spaces[space.name] = open_space = _OpenSpace(space, lanes, anyio.CancelScope())
        for entry in self._spaces.lists:
            if entry.space == space.name:
                self._restrict_lane(lanes.add(entry.conversation, Place(entry.position, entry.check)), entry)
        return open_space

    def _restrict_lane(self, lane: Lane, entry: SharedList) -> None:
        if entry.sharing:
            lane.suspend(refusals.partial(entry.space, lane.link))
        elif entry.left:
            lane.leave(refusals.left(entry.conversation, entry.space), self._on_copy_erased)

    async def _run(self, open_space: _OpenSpace) -> None:
        with open_space.scope:
            await open_space.lanes.run()

    def _holder(self, keeper: str, conversation: str) -> Holder | None:
        open_space = next(
            (open_space for open_space in self._open_spaces.values() if conversation in open_space.lanes.lanes), None
        )
        return None if open_space is None else open_space.lanes.members.get(keeper, conversation)

    # lists that were left

    @asynccontextmanager
    async def _exclusive(self) -> AsyncGenerator[None]:
        async with self._changing:
            for entry in await self._list_erased():
                with suppress(Rejected):
                    await self._release(entry)
            yield

    async def _list_erased(self) -> list[SharedList]:
        """Return the left lists whose local copies are deleted, so that they no longer have a connection to a space."""
        left = [entry for entry in self._spaces.lists if entry.left and entry.space in self._open_spaces]
        copies = [(entry, await self._parts.conversations.durable(entry.conversation)) for entry in left]
        return [entry for entry, loaded in copies if not loaded.state.exists and loaded.damage is None]

    def _on_copy_erased(self) -> None:
        """Free the names of left lists whose local copies were deleted."""
        assert self._group is not None, "run has started"
        self._group.start_soon(self._tidy)

    async def _tidy(self) -> None:
        async with self._exclusive():
            for entry in await self._list_erased():  # the configuration could not be saved
                self._restrict_lane(self._open_spaces[entry.space].lanes.lanes[entry.conversation], entry)

    async def _release(self, entry: SharedList) -> None:
        await self._save(self._config_without(entry))
        await self._reload(entry.conversation, then=partial(self._drop_lane, entry))
        await self._open_spaces[entry.space].lanes.remove(entry.conversation)

    def _config_without(self, entry: SharedList) -> Spaces:
        return Spaces(self._spaces.spaces, tuple(other for other in self._spaces.lists if other != entry))

    def _drop_lane(self, entry: SharedList) -> None:
        self._open_spaces[entry.space].lanes.lanes[entry.conversation].dissolve()
        self._parts.conversations.lanes.pop(entry.conversation, None)
        self._parts.conversations.drop(entry.conversation)

    async def _forget_deleted_history(self, name: str) -> Rejection | None:
        """Drop the local history of a deleted list, so that the list can start with the history from its space.

        Return a rejection if the list exists on this machine. No call writes to it in the meantime, because its lane
        holds all calls.
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
        async with self._exclusive():
            old = self._spaces.find_space(params.space)
            if old is not None and old.source == "environment":
                raise Rejected(refusals.configured_elsewhere(params.space))
            try:
                urls = normalize_addresses(params.urls)
            except BadAddress as error:
                raise Rejected(Rejection("invalid_params", str(error), {"field": "urls"})) from error
            requested = Space(
                params.space,
                urls,
                creds=params.creds or "",
                ca=params.ca or "",
                replicas=params.replicas or 0,
                monitor=",".join(params.monitors),
            )
            checked = await self._adapter.prepare(requested, self.member)
            others = tuple(space for space in self._spaces.spaces if space.name != params.space)
            await self._save(Spaces((*others, checked.space), self._spaces.lists))
            if (open_space := self._open_spaces.pop(params.space, None)) is not None:
                await open_space.lanes.close()
                open_space.scope.cancel()
            self._start(self._create_lanes(checked.space))
            for name in self._open_spaces[params.space].lanes.lanes:
                await self._reload(name)
            await self._wait_for_link(params.space)
            server = {"server": checked.server, "server_version": checked.server_version}
            return SpaceResult(
                space=msgspec.structs.replace(self._view(checked.space, {}), **server), made=checked.made
            )

    def _start(self, open_space: _OpenSpace) -> None:
        assert self._group is not None, "run has started"
        self._group.start_soon(self._run, open_space)

    async def list_spaces(self) -> SpaceListResult:
        deletions: dict[str, Deletion] = {}
        for open_space in self._open_spaces.values():
            for name in list(open_space.lanes.lanes):
                loaded = await self._parts.conversations.durable(name)
                if loaded.state.version and not loaded.state.exists:
                    if (deletion := await self._deletion(name)) is not None:
                        deletions[name] = deletion
        return SpaceListResult(spaces=tuple(self._view(space, deletions) for space in self._spaces.spaces))

    async def _deletion(self, name: str) -> Deletion | None:
        """Return the time and actor of a list's deletion. A deleted list's log begins with its tombstone, because
        earlier events are erased."""
        with suppress(Damaged):
            for first in await self._parts.log.read(0, 1, conversation=name):
                if is_tombstone(first.wire):
                    fact = fact_of(first)
                    return Deletion(at=fact.at, by=fact.actor)
        return None

    async def remove_space(self, params: SpaceParams) -> SpaceRemoved:
        async with self._exclusive():
            space = self._spaces.find_space(params.space)
            if space is None:
                raise Rejected(refusals.no_space(params.space))
            if space.source == "environment":
                raise Rejected(refusals.configured_elsewhere(params.space))
            shared = [entry for entry in self._spaces.lists if entry.space == params.space]
            if followed := [entry.conversation for entry in shared if not entry.left]:
                raise Rejected(refusals.still_shared(params.space, followed[0]))
            rest = Spaces(
                tuple(other for other in self._spaces.spaces if other is not space),
                tuple(entry for entry in self._spaces.lists if entry not in shared),
            )
            await self._save(rest)
            for entry in shared:
                await self._reload(entry.conversation, then=partial(self._drop_lane, entry))
            open_space = self._open_spaces.pop(params.space)
            await open_space.lanes.close()
            open_space.scope.cancel()
            return SpaceRemoved(removed=params.space, copies=tuple(entry.conversation for entry in shared))

    async def repair_space(self, params: SpaceRepair) -> SpaceRepaired:
        name, space = params.conversation, params.space
        if (open_space := self._open_spaces.get(space)) is None:
            raise Rejected(refusals.no_space(space))
        await self._wait_for_link(space)
        log = open_space.lanes.log
        try:
            if not (posts := await log.read(name, 0)):
                raise Rejected(refusals.not_there(name, space, await log.lists()))
            bad_posts = await find_bad(posts)
            if removed := [bad for bad in bad_posts if bad.id in params.remove]:
                await log.remove(name, [bad.post for bad in removed])
        except Forbidden as error:
            raise Rejected(refusals.not_a_keeper(space)) from error
        except SharedLogError as error:
            raise Rejected(refusals.of(error, space, log.link)) from error
        if (lane := open_space.lanes.lanes.get(name)) is not None:
            lane.compare()
        remaining = [bad for bad in bad_posts if bad not in removed]
        views = tuple(
            BadPost(id=bad.id, position=bad.post.position, why=bad.why, certain=bad.certain, at=bad.post.at)
            for bad in remaining[:MAX_REPAIRED]
        )
        return SpaceRepaired(
            space=space, conversation=name, posts=views, more=len(remaining) - len(views), removed=len(removed)
        )

    # lists

    async def share(self, params: ListShare) -> SharedResult:
        async with self._exclusive():
            name = params.conversation
            self._check_space(name, params.space)
            await self._wait_for_link(params.space)
            entry = self._find_entry(name)
            loaded = await self._parts.conversations.durable(name)
            if entry is not None and entry.left:
                raise Rejected(refusals.left(name, params.space))
            if entry is not None and not entry.sharing:
                return SharedResult(conversation=name, space=params.space, version=loaded.state.version, posts=0)
            if loaded.damage is not None:
                raise Rejected(loaded.damage)
            if not loaded.state.exists:
                raise Rejected(
                    Rejection(
                        "not_found", f"The list {name} does not exist here.", {"what": "conversation", "id": name}
                    )
                )
            log = self._open_spaces[params.space].lanes.log
            with _rejecting(name, params.space, log):
                # Existing posts may be part of this list's own history, if sharing was interrupted.
                posts = [] if entry is not None else await log.read(name, 0)
                if posts and not await history.matches(self._parts.log, name, posts):
                    raise history.NameTaken
            if entry is None:
                entry = SharedList(name, params.space, sharing=True)
                await self._save(Spaces(self._spaces.spaces, (*self._spaces.lists, entry)))
                await self._add_lane(name, entry)
            return await self._post_history(name, params.space)

    async def _post_history(self, name: str, space: str) -> SharedResult:
        """Post the part of a list's history that the space lacks, then accept changes."""
        lanes = self._open_spaces[space].lanes
        lane = lanes.lanes[name]
        if not lanes.log.link.may_post:
            raise Rejected(refusals.forbidden(space, "These creds may only read."))
        with _rejecting(name, space, lanes.log):
            place, posts = await history.share(self._parts.log, lanes.log, name)
        version = (await self._parts.conversations.durable(name)).state.version
        done = SharedList(name, space, place.position, place.check, version)
        await self._save(self._config_with(done))
        lane.replica.base = place
        await self._reload(name)
        lane.resume()
        await lane.barrier()  # afterwards the list is shown as current and accepts changes immediately
        loaded = await self._parts.conversations.durable(name)
        return SharedResult(conversation=name, space=space, version=loaded.state.version, posts=posts)

    async def repair(self, params: ListShare) -> SharedResult:
        """Handle `list.share` for a list if the space has lost some of its changes."""
        async with self._exclusive():
            name, space = params.conversation, params.space
            entry = self._find_entry(name)
            if entry is None or entry.space != space:
                self._check_space(name, space)
                raise Rejected(refusals.not_shared(name))
            if entry.left or entry.sharing:
                raise Rejected(refusals.left(name, space) if entry.left else refusals.partial(space, self._link(space)))
            open_space = self._open_spaces[space]
            await self._adapter.prepare(open_space.space, self.member)
            if not await open_space.lanes.is_up(PATIENCE_S):
                raise Rejected(refusals.unreachable(space, self._link(space)))
            if not self._link(space).may_post:
                raise Rejected(refusals.forbidden(space, "These creds may only read."))
            await anyio.sleep(ASKED_S)
            own = (await self._parts.conversations.durable(name)).state.version
            version, keeper = open_space.lanes.members.find_longest(name, ASKED_S)
            if version > own:
                raise Rejected(refusals.longer_elsewhere(name, version, keeper, own))
            lane = open_space.lanes.lanes[name]
            base, log = Place(entry.position, entry.check), open_space.lanes.log
            with _rejecting(name, space, log, taken=refusals.other_history):
                posts = await history.put_back(self._parts.log, log, name, base, entry.version)
            if lane.replica.stuck:
                lane.resume()
            await lane.barrier()
            if lane.replica.refused is not None:
                raise Rejected(lane.replica.refused)
            return SharedResult(conversation=name, space=space, version=own, posts=posts)

    def _link(self, space: str) -> Link:
        return self._open_spaces[space].lanes.log.link

    async def _finish_sharing(self, name: str) -> None:
        while (entry := self._find_entry(name)) is not None and entry.sharing and entry.space in self._open_spaces:
            try:
                async with self._exclusive():
                    await self._post_history(name, entry.space)
            except Rejected as rejected:
                logger.info("%s is not fully shared yet: %s", name, rejected)
                await anyio.sleep(RETRY_S)
            else:
                return

    async def join(self, params: ListJoin) -> SharedResult:
        async with self._exclusive():
            name, space = params.conversation, params.space
            self._check_space(name, space)
            await self._wait_for_link(space)
            entry = self._find_entry(name)
            lanes = self._open_spaces[space].lanes
            if entry is None:
                await self._check_join(name, space, lanes.log)
                entry = SharedList(name, space)
                await self._save(Spaces(self._spaces.spaces, (*self._spaces.lists, entry)))
                await self._begin_joining(name, entry)
            elif entry.left:
                again = msgspec.structs.replace(entry, left=False)
                await self._save(self._config_with(again))
                lanes.lanes[name].resume()
            lane = lanes.lanes[name]
        await lane.barrier()
        loaded = await self._parts.conversations.durable(name)
        if lane.replica.refused is not None:
            raise Rejected(lane.replica.refused)
        if lane.replica.away_since is not None:
            raise Rejected(refusals.joined_later(space, lanes.log.link))
        return SharedResult(conversation=name, space=space, version=loaded.state.version, posts=0)

    async def _begin_joining(self, name: str, entry: SharedList) -> None:
        lanes = self._open_spaces[entry.space].lanes

        def add() -> None:
            lanes.add(name, Place()).suspend(refusals.partial(entry.space, lanes.log.link))

        await self._reload(name, then=add)
        if (rejection := await self._forget_deleted_history(name)) is not None:
            with suppress(Rejected):
                await self._release(entry)
            raise Rejected(rejection)
        lanes.lanes[name].resume()

    async def _check_join(self, name: str, space: str, log: SharedLog) -> None:
        loaded = await self._parts.conversations.durable(name)
        if loaded.state.exists or loaded.damage is not None:
            raise Rejected(refusals.not_empty(name))
        with _rejecting(name, space, log):
            if not await log.last(name):
                raise Rejected(refusals.not_there(name, space, await log.lists()))

    async def leave(self, params: ListLeave) -> LeftResult:
        async with self._exclusive():
            name = params.conversation
            entry = self._find_entry(name)
            if entry is None:
                raise Rejected(refusals.not_shared(name))
            if params.keep_as is not None:
                await self._copy_list(name, params.keep_as)
            if entry.left:
                return LeftResult(conversation=name, kept_as=params.keep_as)
            gone = msgspec.structs.replace(entry, left=True)
            await self._save(self._config_with(gone))
            if (open_space := self._open_spaces.get(entry.space)) is not None:
                self._restrict_lane(open_space.lanes.lanes[name], gone)
            return LeftResult(conversation=name, kept_as=params.keep_as)

    async def _copy_list(self, name: str, other: str) -> None:
        target = (await self._parts.conversations.durable(other)).state
        if target.version:
            raise Rejected(refusals.not_empty(other, deleted=not target.exists))
        async for first, steps, _ in history.read_pieces(self._parts.log, name, self.member):
            done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
            self._parts.inbox.submit(Arrival(other, first, Place(), Place(), steps, done.set_result))
            if (rejection := await done) is not None:
                raise Rejected(rejection)

    # helpers

    def _find_entry(self, name: str) -> SharedList | None:
        return next((entry for entry in self._spaces.lists if entry.conversation == name), None)

    def _config_with(self, changed: SharedList) -> Spaces:
        lists = (changed if entry.conversation == changed.conversation else entry for entry in self._spaces.lists)
        return Spaces(self._spaces.spaces, tuple(lists))

    async def _wait_for_link(self, space: str) -> None:
        with anyio.move_on_after(PATIENCE_S):
            await self._open_spaces[space].lanes.link_known.wait()

    def _check_space(self, name: str, space: str) -> None:
        """Reject an unknown space, or a list that is in another space."""
        if self._spaces.find_space(space) is None:
            raise Rejected(refusals.no_space(space))
        entry = self._find_entry(name)
        if entry is not None and entry.space != space:
            raise Rejected(refusals.shared_elsewhere(name, entry.space))

    async def _add_lane(self, name: str, entry: SharedList) -> None:
        await self._reload(
            name, then=lambda: self._restrict_lane(self._open_spaces[entry.space].lanes.add(name, Place()), entry)
        )

    async def _reload(self, name: str, then: Callable[[], object] = lambda: None) -> None:
        """Run `then` and drop the loaded list, while none of its events are waiting for a commit."""
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
        lanes = self._open_spaces[space.name].lanes
        return SpaceView(
            space=space.name,
            urls=space.urls,
            replicas=space.replicas,
            source=space.source,
            member=self.member,
            creds=space.creds,
            ca=space.ca,
            monitors=tuple(monitor for monitor in space.monitor.split(",") if monitor),
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
        entry = self._find_entry(lane.conversation)
        state = lane.replica.state
        if entry is not None and (entry.left or entry.sharing):
            state = "left" if entry.left else "sharing"
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
    """Convert a space's errors to `Rejected`. `taken` builds the rejection if the space contains other posts."""
    try:
        yield
    except TooNew as error:
        raise Rejected(refusals.unreadable(name, space, error)) from error
    except history.NameTaken as error:
        raise Rejected(taken(name, space)) from error
    except history.HistoryAltered as error:
        raise Rejected(refusals.altered(name)) from error
    except SharedLogError as error:
        raise Rejected(refusals.of(error, space, log.link)) from error
