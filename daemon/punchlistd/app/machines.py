"""Lazy start of replication, which a daemon without a space doesn't import."""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.params import NoParams
from punchlist_schemas.results import Result
from punchlist_schemas.spaces import ListJoin, ListLeave, ListShare, SpaceAdd, SpaceListResult, SpaceParams, SpaceRepair
from punchlistd.clock import now_ms
from punchlistd.engine.claims import Claims
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.replies import Outcome
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.writing.inbox import Inbox
from punchlistd.engine.writing.transaction import Transactor
from punchlistd.net.router import READ_ONLY
from punchlistd.settings import Misconfigured, Settings
from punchlistd.store.port import EventLog

if TYPE_CHECKING:
    from punchlistd.replication.port import SharedLog
    from punchlistd.replication.sharing import Adapter, Sharing
    from punchlistd.replication.spaces import Checked, Space

    _Open = Callable[[Space, str], SharedLog]
    _Prepare = Callable[[Space, str], Awaitable[Checked]]

_encode = msgspec.json.Encoder().encode

_EXTRA = (
    "Lists on several machines need punchlist's extra {0}. Install it (punch doctor prints the command), "
    "then punch daemon stop."
)

_EXTRAS = {"nats": "shared", "postgres": "postgres"}
"""The extra that installs each space engine's dependencies."""

_NO_SPACE = Rejection(
    "not_found", "This machine has no space. Add one: punch space add NAME tls://HOST --creds FILE", {"what": "space"}
)


class Engine(Protocol):
    """The parts of the engine that replication uses."""

    log: EventLog
    inbox: Inbox
    conversations: Conversations
    transactor: Transactor
    claims: Claims
    subscriptions: Subscriptions


def is_configured(settings: Settings, env: Mapping[str, str]) -> bool:
    return bool(env.get("PUNCHLIST_SPACE")) or os.path.exists(settings.spaces_path)


class Machines:
    """Calls about spaces and shared lists. Replication starts when a space is configured or added.

    Args:
        settings: Settings that contain the path of `spaces.json`.
        env: Environment variables that configure spaces.
        engine: The engine.
        spawn: Runs a coroutine in the background.
        read_only: Whether all changes are rejected.
    """

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        engine: Engine,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        *,
        read_only: bool = False,
    ) -> None:
        self._settings = settings
        self._env = env
        self._engine = engine
        self._spawn = spawn
        self._read_only = read_only
        self._sharing: Sharing | None = None

    async def start(self) -> None:
        """Load the configured spaces and start replication, so that changes to shared lists go through their lanes.

        Raises:
            Misconfigured: The configuration is invalid, or a required extra is not installed.
        """
        from punchlistd.replication.lanes.replica import Parts  # noqa: PLC0415
        from punchlistd.replication.sharing import Sharing  # noqa: PLC0415

        engine = self._engine
        show = engine.subscriptions.show_again
        parts = Parts(engine.log, engine.inbox, engine.conversations, engine.transactor, engine.claims, show)
        leases = engine.claims.leases
        sharing = Sharing(self._settings.data_dir, self._env, parts=parts, leases=leases, adapter=_adapter())
        await sharing.load()
        self._sharing = sharing
        self._spawn(sharing.run())

    async def close(self) -> None:
        if self._sharing is not None:
            await self._sharing.close()

    async def add_space(self, params: SpaceAdd) -> Outcome:
        if self._read_only:
            return READ_ONLY
        if self._sharing is None:
            try:
                await self.start()
            except Misconfigured as error:
                return Rejection("unreachable", str(error), {"space": params.space, "since": now_ms()})
        return await self._answer(lambda sharing: sharing.add_space(params))

    async def list_spaces(self, params: NoParams) -> Outcome:
        if self._sharing is None:
            return _encode(SpaceListResult())
        return await self._answer(lambda sharing: sharing.list_spaces())

    async def remove_space(self, params: SpaceParams) -> Outcome:
        return await self._answer(lambda sharing: sharing.remove_space(params))

    async def repair_space(self, params: SpaceRepair) -> Outcome:
        return await self._answer(lambda sharing: sharing.repair_space(params))

    async def share(self, params: ListShare) -> Outcome:
        return await self._answer(lambda sharing: (sharing.repair if params.repair else sharing.share)(params))

    async def join(self, params: ListJoin) -> Outcome:
        return await self._answer(lambda sharing: sharing.join(params))

    async def leave(self, params: ListLeave) -> Outcome:
        return await self._answer(lambda sharing: sharing.leave(params))

    async def _answer(self, operation: "Callable[[Sharing], Awaitable[Result]]") -> Outcome:
        if self._sharing is None:
            return _NO_SPACE
        from punchlistd.replication.posts.refusals import Rejected  # noqa: PLC0415

        try:
            return _encode(await operation(self._sharing))
        except Rejected as error:
            return error.why


def _adapter() -> "Adapter":
    """Build the adapter that imports a space's engine on first use."""
    from punchlistd.replication.sharing import Adapter  # noqa: PLC0415

    def open(space: "Space", member: str) -> "SharedLog":
        try:
            return _import_engine(space.engine)[0](space, member)
        except ImportError as error:
            raise Misconfigured(_missing_extra(space)) from error

    async def prepare(space: "Space", member: str) -> "Checked":
        from punchlistd.replication.adapters.link_refusals import Refusal  # noqa: PLC0415
        from punchlistd.replication.posts.refusals import Rejected  # noqa: PLC0415

        facts = {"space": space.name, "since": now_ms()}
        try:
            return await _import_engine(space.engine)[1](space, member)
        except ImportError:
            message, reason = _missing_extra(space), "no_extra"
        except Refusal as error:
            message, reason = str(error), error.kind
        raise Rejected(Rejection("unreachable", message, {**facts, "reason": reason}))

    return Adapter(open, prepare)


def _missing_extra(space: "Space") -> str:
    return _EXTRA.format(_EXTRAS[space.engine])


def _import_engine(name: str) -> "tuple[_Open, _Prepare]":
    if name == "nats":
        from punchlistd.replication.adapters.nats.check import prepare  # noqa: PLC0415
        from punchlistd.replication.adapters.nats.log import NatsLog  # noqa: PLC0415

        return NatsLog, prepare
    from punchlistd.replication.adapters.postgres.check import prepare as prepare_postgres  # noqa: PLC0415
    from punchlistd.replication.adapters.postgres.log import PostgresLog  # noqa: PLC0415

    return PostgresLog, prepare_postgres
