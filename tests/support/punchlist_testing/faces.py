"""Both faces of the client library behind one: a scenario is written once, for `Client`, and run on each."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from anyio.from_thread import BlockingPortal

from punchlist import AsyncClient, AsyncConversation, AsyncWatch, Client

Connect = Callable[..., Client]
"""Opens a client of one of the faces: takes a socket's path, and options as `connect` does."""

_TWINS = {"close": "aclose"}
_ASYNC: tuple[type, ...] = (AsyncClient, AsyncConversation, AsyncWatch)


class Bridge:
    """An object of the asyncio face, used from outside of its event loop as if it were its blocking twin."""

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


def bridged(portal: BlockingPortal, client: AsyncClient) -> Client:
    """An `AsyncClient` that a scenario may take for a `Client`."""
    return cast(Client, Bridge(portal, client))
