"""Fixtures for all tests of the daemon."""

from collections.abc import Iterator

import pytest

from punchlist_testing.daemon import guarded_loop


@pytest.fixture(scope="module", autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Blocking file, socket, sleep and SQLite calls by the daemon on the event loop raise `BlockingError`."""
    with guarded_loop():
        yield
