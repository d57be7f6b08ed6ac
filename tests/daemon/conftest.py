"""What holds for every test of the daemon."""

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx

MAY_BLOCK = {
    "punchlistd/lock.py": {"__init__", "close"},
    "punchlistd/net/listener.py": {"private_directory", "__init__", "still_ours", "close"},
}
"""A few calls on local directory entries, at the start and the stop: file → functions."""


@pytest.fixture(scope="module", autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """File, socket, sleep and SQLite calls of the daemon on the event loop raise `BlockingError`."""
    with blockbuster_ctx("punchlistd") as guard:
        for function in guard.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        yield
