"""Webhook delivery of MCP Events: `events/subscribe` and `events/unsubscribe`, for servers over HTTP.

Each subscription has its own task, position and retries, so that no receiver delays another one or a request.
Subscriptions are stored in the data directory, in a file for each user that a server is limited to.
"""

import fcntl
import hmac
import json
import logging
import os
import secrets
import time
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from anyio.abc import TaskGroup
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from punchlist.errors import Forbidden, NotFound, PunchlistError
from punchlist_apps.mcp.event_source import HistoryLost, follow, read_page
from punchlist_apps.mcp.event_types import Position, Selection, parse_cursor
from punchlist_apps.mcp.events import (
    TOO_MANY,
    EventParams,
    Events,
    drop_old,
    find_oldest,
    find_token,
    parse,
    to_mcp_error,
)
from punchlist_apps.mcp.http_auth import Grants
from punchlist_apps.mcp.users import Grant, hash_token
from punchlist_apps.mcp.webhook_post import MAX_BODY_BYTES, Poster, Response, Undeliverable, check_url, parse_secret
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system.atomic import atomic_write

Context = ServerRequestContext[Any, Any]

CALLBACK_FAILED = -32015

MAX_WEBHOOKS = 64
"""Maximum number of subscriptions of a token."""

MIN_TTL_S = 60.0
MAX_TTL_S = 7 * 86_400.0
DEFAULT_TTL_S = 86_400.0

_PAUSES_S = (1.0, 5.0, 30.0, 120.0, 300.0)
"""Time before each further attempt to deliver an event, in seconds; the last value repeats."""

_SAVE_S = 0.5
"""Time for which deliveries are collected before the positions are saved, in seconds."""

_IDLE_S = 60.0
_GONE, _TOO_LARGE = 410, 413
_OK = range(200, 300)
_log = logging.getLogger(__name__)


class Subscription(msgspec.Struct):
    """A stored subscription.

    Attributes:
        arguments: As the client sent them.
        conversation: The list, which stays the same if the session is attached to another one.
        user: The user whose lists are read; None for all.
        token: Digest of the token that made the subscription.
        expires_at: In seconds since 1970 UTC.
        cursor: The position after the last delivered event.
        oldest: Time before which changes are left out, in milliseconds since 1970 UTC, while the receiver catches up.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    conversation: str
    user: str | None
    token: str
    url: str
    secret: str
    expires_at: float
    cursor: str
    oldest: int | None = None


class Delivery(BaseModel):
    """Where to deliver events."""

    mode: Literal["webhook"]
    url: str
    secret: str | None = None


class SubscribeParams(EventParams):
    """Params of `events/subscribe` and `events/unsubscribe`."""

    delivery: Delivery
    ttl_ms: float | None = Field(None, alias="ttlMs", gt=0)


class Receivers(NamedTuple):
    """How a server sends events to webhooks.

    Attributes:
        grants: Valid tokens; None only for tests without tokens.
    """

    grants: Grants | None
    poster: Poster


class Webhooks:
    """The subscriptions of a server.

    Args:
        path: The file of the subscriptions.
    """

    def __init__(self, path: str, events: Events, grants: Grants | None, poster: Poster) -> None:
        self._path = path
        self._events = events
        self._grants = grants
        self._poster = poster
        self._subscriptions: dict[str, Subscription] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._pending: Counter[str] = Counter()
        """Number of receivers that are asked for the challenge, by token."""
        self._changed = anyio.Event()
        self._saving = anyio.Lock()
        self._saved = b"[]"
        self._group: TaskGroup | None = None

    def install(self, server: Server[Any]) -> None:
        server.add_request_handler("events/subscribe", SubscribeParams, self.subscribe)
        server.add_request_handler("events/unsubscribe", SubscribeParams, self.unsubscribe)

    async def run(self) -> None:
        """Deliver events until cancelled, unless another server with the same file does."""
        try:
            lock = _lock(f"{self._path}.lock")
            stored = _load(self._path)
            self._saved = msgspec.json.encode(stored)
        except OSError as error:
            _log.warning("%s: %s; this server has no webhooks", self._path, error.strerror)
            return
        try:
            async with anyio.create_task_group() as self._group:
                for subscription in stored:
                    self._start(subscription)
                await self._save_changes()
        finally:
            self._group = None
            with anyio.CancelScope(shield=True):
                await self._try_save()
                await self._poster.aclose()
            os.close(lock)

    async def subscribe(self, context: Context, params: SubscribeParams) -> dict[str, Any]:
        selection, after = parse(params)
        if self._group is None:
            text = "Another server delivers the webhooks of this data directory, or its files can't be written. "
            text += "Stop the other server, or subscribe there."
            raise MCPError(types.INTERNAL_ERROR, text)
        try:
            parse_secret(params.delivery.secret or "")
            check_url(params.delivery.url, is_private_allowed=self._poster.is_private_allowed)
        except ValueError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        ttl_s = DEFAULT_TTL_S if params.ttl_ms is None else params.ttl_ms / 1000
        truncated = False
        async with self._events.open_source(context, selection) as source:
            former = self._find(context, params, source.user)
            subscription = msgspec.structs.replace(
                former,
                secret=params.delivery.secret or "",
                expires_at=time.time() + min(max(ttl_s, MIN_TTL_S), MAX_TTL_S),
            )
            if subscription.secret != former.secret:
                await self._verify(subscription)
            if not subscription.cursor:
                try:
                    page = await read_page(source.client, source.conversation, after, 1)
                except PunchlistError as error:
                    raise to_mcp_error(error) from None
                subscription.oldest = find_oldest(params)
                truncated = page.truncated or drop_old(page, subscription.oldest)[1]
                start = page.position if after is None or (page.truncated and not page.changes) else after
                subscription.conversation, subscription.cursor = source.conversation, str(start)
        is_new = subscription.id not in self._subscriptions
        subscription = self._start(subscription)
        try:
            await self._save()
        except OSError as error:
            if is_new:
                self._remove(subscription.id)
            raise self._to_mcp_error(error) from None
        return {
            "id": subscription.id,
            "refreshBefore": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(subscription.expires_at)),
            "cursor": subscription.cursor,
            "truncated": truncated,
        }

    async def unsubscribe(self, context: Context, params: SubscribeParams) -> dict[str, Any]:
        parse(params)
        user = self._events.lists.find_user(context)
        self._remove(self._find(context, params, user).id)
        try:
            await self._save()
        except OSError as error:
            raise self._to_mcp_error(error) from None
        return {}

    def _find(self, context: Context, params: SubscribeParams, user: str | None) -> Subscription:
        """Return the subscription that a request names, or a new one."""
        token = hash_token(find_token(context))
        arguments = params.arguments or {}
        parts = [token, user, params.delivery.url, params.name, arguments]
        id = f"sub_{sha256(msgspec.json.encode(parts, order='deterministic')).hexdigest()[:32]}"
        new = Subscription(id, params.name, arguments, "", user, token, params.delivery.url, "", 0.0, "")
        return self._subscriptions.get(id, new)

    async def _verify(self, subscription: Subscription) -> None:
        """Ask the receiver whether it wants the events.

        Raises:
            MCPError: It didn't return the challenge, or there are too many subscriptions.
        """
        token = subscription.token
        others = [one for one in self._subscriptions.values() if one.token == token and one.id != subscription.id]
        if len(others) + self._pending[token] >= MAX_WEBHOOKS:
            raise MCPError(TOO_MANY, f"This token already has {MAX_WEBHOOKS} webhooks. Unsubscribe one.")
        challenge = secrets.token_urlsafe(32)
        message = {"type": "verification", "challenge": challenge}
        self._pending[token] += 1
        try:
            response = await self._post(subscription, f"msg_{secrets.token_hex(12)}", message)
            reason = "" if _is_echo(response, challenge) else "it didn't return the challenge with status 200"
        except Undeliverable as error:
            reason = str(error)
        finally:
            self._pending[token] -= 1
        if reason:
            text = f"The receiver can't be used: {reason[:300]}"
            raise MCPError(CALLBACK_FAILED, text, data={"reason": reason[:300]})

    def _start(self, subscription: Subscription) -> Subscription:
        """Start a subscription, or refresh the running one. Return the one that runs."""
        if (scope := self._scopes.get(subscription.id)) is None or self._group is None:
            scope = self._scopes[subscription.id] = anyio.CancelScope()
            self._subscriptions[subscription.id] = subscription
            if self._group is not None:
                self._group.start_soon(self._run, subscription, scope)
        running = self._subscriptions[subscription.id]
        running.secret, running.expires_at = subscription.secret, subscription.expires_at
        scope.deadline = anyio.current_time() + subscription.expires_at - time.time()
        return running

    def _remove(self, id: str) -> None:
        self._subscriptions.pop(id, None)
        if (scope := self._scopes.pop(id, None)) is not None:
            scope.cancel()
        self._changed.set()

    async def _run(self, subscription: Subscription, scope: anyio.CancelScope) -> None:
        """Deliver the events of a subscription until it expires or is removed."""
        failures = 0
        with scope:
            while True:
                try:
                    await self._deliver_until_lost(subscription)
                    failures = 0
                except Exception as error:  # The failure of one subscription must not end the server.
                    is_bug = not isinstance(error, PunchlistError)
                    _log.warning("webhook %s: %s", subscription.id, error, exc_info=is_bug)
                    if isinstance(error, Forbidden | NotFound):
                        break
                    failures += 1
                await _pause(failures)
        if self._subscriptions.get(subscription.id) is subscription:
            self._remove(subscription.id)

    async def _deliver_until_lost(self, subscription: Subscription) -> None:
        selection = Selection.parse(subscription.name, subscription.arguments)
        async with self._events.lists.open_feed(subscription.user) as (client, feed):
            with feed.open_tail() as tail:
                after = parse_cursor(subscription.cursor)
                try:
                    async for found in follow(client, tail, subscription.conversation, after, lambda: _IDLE_S):
                        page, _ = drop_old(found, subscription.oldest)
                        if page.truncated:
                            gap = {"type": "gap", "cursor": str(page.position)}
                            await self._send(subscription, f"gap_{page.position}", gap)
                        for seq, occurrence in selection.list_occurrences(page.changes, page.position.epoch):
                            cursor = str(Position(page.position.epoch, seq))
                            await self._send(subscription, occurrence["eventId"], occurrence | {"cursor": cursor})
                            subscription.cursor = cursor
                            self._changed.set()
                        if not page.more:
                            subscription.oldest = None
                        if subscription.cursor != str(page.position):
                            subscription.cursor = str(page.position)
                            self._changed.set()
                except HistoryLost:
                    return  # the next page is truncated, which is reported

    async def _send(self, subscription: Subscription, id: str, message: dict[str, Any]) -> None:
        """Deliver a message, with retries."""
        attempt = 0
        while True:
            try:
                if not self._is_allowed(subscription):
                    self._remove(subscription.id)
                    await anyio.sleep_forever()  # until the cancellation, at once
                response = await self._post(subscription, id, message)
            except Undeliverable as error:
                reason = str(error)
            else:
                if response.status == _GONE:
                    self._remove(subscription.id)
                    await anyio.sleep_forever()
                if response.status in _OK or response.status == _TOO_LARGE:
                    return
                reason = f"status {response.status}"
            _log.info("webhook %s: %s", subscription.id, reason)
            await _pause(attempt)
            attempt += 1

    async def _post(self, subscription: Subscription, id: str, message: dict[str, Any]) -> Response:
        headers = {"x-mcp-subscription-id": subscription.id}
        return await self._poster.post(subscription.url, subscription.secret, id, encode(message), headers)

    def _is_allowed(self, subscription: Subscription) -> bool:
        """Return whether the token of a subscription still has the rights that the subscription needs.

        Raises:
            Undeliverable: It isn't known at the moment.
        """
        if self._grants is None:
            return True
        try:
            grant = self._grants.find_grant_by_digest(subscription.token)
        except ValueError as error:
            raise Undeliverable(str(error)) from None
        user = subscription.user
        return grant is not None and grant.covers(Grant(None if user is None else frozenset({user})))

    async def _save_changes(self) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(_SAVE_S)
            self._changed = anyio.Event()
            await self._try_save()

    async def _try_save(self) -> None:
        try:
            await self._save()
        except OSError as error:
            # Events since the last save are delivered again after a restart, with the same ids.
            _log.warning("the webhooks can't be saved in %s: %s", self._path, error.strerror)

    async def _save(self) -> None:
        with anyio.CancelScope(shield=True):
            async with self._saving:  # an older state must not replace a newer one
                data = msgspec.json.encode([*self._subscriptions.values()])
                if data != self._saved:
                    await anyio.to_thread.run_sync(lambda: atomic_write(self._path, data, fsync=True))
                    self._saved = data

    def _to_mcp_error(self, error: OSError) -> MCPError:
        text = f"The webhooks can't be saved in {self._path} ({error.strerror}). Make it writable, then try again."
        return MCPError(types.INTERNAL_ERROR, text)


def find_path(data_dir: str, user: str | None) -> str:
    """Return the file of the subscriptions of a server that is limited to a user; None for all users."""
    suffix = "" if user is None else f"-{sha256(user.encode()).hexdigest()[:16]}"
    return os.path.join(data_dir, f"mcp-webhooks{suffix}.json")


def encode(message: dict[str, Any]) -> bytes:
    """Encode a message. Replace a change that is too large by its type; the receiver can read it with its position."""
    body = msgspec.json.encode(message)
    if len(body) > MAX_BODY_BYTES:
        data = message["data"]
        message = message | {"data": data | {"change": {"type": data["change"]["type"]}, "is_shortened": True}}
        body = msgspec.json.encode(message)
    return body


def _lock(path: str) -> int:
    """Lock a file until its descriptor is closed.

    Raises:
        OSError: Another server has locked it, or it can't be written.
    """
    make_directories(os.path.dirname(path))
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _load(path: str) -> list[Subscription]:
    """Read the subscriptions. If some aren't valid, such as those of a later version, copy the file first."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    subscriptions, problem = list[Subscription](), None
    try:
        parts = msgspec.json.decode(data, type=list[msgspec.Raw])
    except msgspec.MsgspecError as error:
        parts, problem = [], error
    for part in parts:
        try:
            subscriptions.append(_parse(part))
        except (KeyError, ValueError) as error:
            problem = error
    if problem is not None:
        atomic_write(f"{path}.invalid", data)
        _log.error("%s was copied to %s.invalid, because webhooks in it can't be read: %s", path, path, problem)
    return subscriptions


def _parse(part: msgspec.Raw) -> Subscription:
    """Decode a stored subscription.

    Raises:
        KeyError: Unknown event.
        ValueError: Another part isn't valid.
    """
    subscription = msgspec.json.decode(part, type=Subscription)
    Selection.parse(subscription.name, subscription.arguments)
    parse_cursor(subscription.cursor)
    parse_secret(subscription.secret)
    return subscription


async def _pause(attempt: int) -> None:
    await anyio.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])


def _is_echo(response: Response, challenge: str) -> bool:
    with suppress(ValueError):
        answer: object = json.loads(response.body)
        echoed = msgspec.convert(answer, dict[str, Any]).get("challenge")
        return response.status in _OK and isinstance(echoed, str) and hmac.compare_digest(echoed, challenge)
    return False
