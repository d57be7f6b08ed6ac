"""Runs each step of a stream in the scope of a conversation, but not its consumer's code between the steps."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Generic, TypeVar, overload

from punchlist.clients.scope import conversation

T = TypeVar("T")


class ScopedStream(AsyncIterator[T], Generic[T]):
    """An asynchronous stream whose steps, and whose `aclose`, run in the scope of a conversation."""

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
    """A stream whose steps, and whose `close`, run in the scope of a conversation."""

    def __init__(self, stream: Iterable[T], name: str) -> None:
        self._stream = iter(stream)
        self._scope = conversation(name)

    def __next__(self) -> T:
        with self._scope:
            return next(self._stream)

    def close(self) -> None:
        close: Any = getattr(self._stream, "close", None)
        if close is not None:
            with self._scope:
                close()


@overload
def scoped(stream: AsyncIterable[T], name: str) -> ScopedStream[T]: ...
@overload
def scoped(stream: Iterable[T], name: str) -> ScopedIterator[T]: ...
def scoped(stream: Any, name: str) -> Any:
    """Return a stream whose steps run in the scope of a conversation. The consumer's code runs outside of the scope.

    ```python
    async for part in punchlist.scoped(agent.stream(question), "website"):
        await response.write(part)  # outside of the scope
    ```

    Leaving the loop early does not close a stream immediately. If its `finally` needs the scope, close it with
    `contextlib.aclosing` (or `closing`).

    Args:
        stream: An async generator, another asynchronous iterable, or a plain iterable.
        name: The conversation's id.

    Raises:
        NoConversation: The id is empty.
    """
    return ScopedStream(stream, name) if hasattr(stream, "__aiter__") else ScopedIterator(stream, name)
