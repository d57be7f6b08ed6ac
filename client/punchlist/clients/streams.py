"""A scope for a stream: each of its steps is run in it, and nothing between two steps is."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Generic, TypeVar, overload

from punchlist.clients.scope import conversation

T = TypeVar("T")


class ScopedStream(AsyncIterator[T], Generic[T]):
    """An asynchronous stream whose steps are run in the scope of a conversation. `aclose` closes it in the scope."""

    def __init__(self, stream: AsyncIterable[T], name: str) -> None:
        self._stream = aiter(stream)
        self._scope = conversation(name)

    async def __anext__(self) -> T:
        with self._scope:
            return await anext(self._stream)

    async def aclose(self) -> None:
        close: Any = getattr(self._stream, "aclose", None)
        if close is not None:
            with self._scope:
                await close()


class ScopedIterator(Iterator[T], Generic[T]):
    """A stream whose steps are run in the scope of a conversation. `close` closes it in the scope."""

    def __init__(self, stream: Iterable[T], name: str) -> None:
        self._stream = iter(stream)
        self._scope = conversation(name)

    def __next__(self) -> T:
        with self._scope:
            return next(self._stream)

    def close(self) -> None:
        """End the stream, if it can be ended."""
        close: Any = getattr(self._stream, "close", None)
        if close is not None:
            with self._scope:
                close()


@overload
def scoped(stream: AsyncIterable[T], name: str) -> ScopedStream[T]: ...
@overload
def scoped(stream: Iterable[T], name: str) -> ScopedIterator[T]: ...
def scoped(stream: Any, name: str) -> Any:
    """A stream whose steps are run in the scope of a conversation, and nothing that its consumer does between them.

    ```python
    async for part in punchlist.scoped(agent.stream(question), "website"):
        await response.write(part)  # outside of the scope
    ```

    Leaving the loop early does not end a stream at once: where its `finally` needs the scope, close it with
    `contextlib.aclosing` (or `closing`).

    Args:
        stream: An async generator or another asynchronous iterable, or a plain one.
        name: The conversation's id.

    Raises:
        NoConversation: The id is empty.
    """
    return ScopedStream(stream, name) if hasattr(stream, "__aiter__") else ScopedIterator(stream, name)
