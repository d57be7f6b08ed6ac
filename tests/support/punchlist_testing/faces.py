"""Adapts the asyncio client to the blocking interface, so that one test runs on both."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from anyio.from_thread import BlockingPortal

from punchlist import AsyncClient, AsyncConversation, AsyncWatch, Client

Connect = Callable[..., Client]
"""Opens a blocking or an adapted asyncio client; takes a socket path and the options of `connect`."""

_TWINS = {"close": "aclose"}
_ASYNC: tuple[type, ...] = (AsyncClient, AsyncConversation, AsyncWatch)


class Bridge:
    """Blocking proxy of an asyncio client object, used from outside its event loop."""

    def __init__(self, portal: BlockingPortal, target: Any) -> None:
        self._portal = portal
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, _TWINS.get(name, name))
        return self._method(value) if callable(value) else value

    def _method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def invoke(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        def call(*args: Any, **kwargs: Any) -> Any:
            result = self._portal.call(lambda: invoke(*args, **kwargs))
            return Bridge(self._portal, result) if isinstance(result, _ASYNC) else result

        return call

    def __enter__(self) -> "Bridge":
        self._portal.call(self._target.__aenter__)
        return self

    def __exit__(self, *exception: object) -> None:
        self._portal.call(self._target.aclose)

    def __iter__(self) -> "Bridge":
        return self

    def __next__(self) -> Any:
        try:
            return self._portal.call(self._target.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None


def as_blocking(portal: BlockingPortal, client: AsyncClient) -> Client:
    """Wrap an `AsyncClient` so that it can be used as a `Client`."""
    return cast(Client, Bridge(portal, client))
