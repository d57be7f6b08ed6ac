"""File descriptors above the limit of `select`."""

import fcntl
import os
import resource

import pytest

from punchlist.connection.readable import is_readable

BEYOND = 1_024


def test_wait_works_for_any_descriptor_number() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard <= BEYOND:
        pytest.skip("no descriptor may have a number above 1,023")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, BEYOND + 1), hard))
    read, write = os.pipe()
    high = fcntl.fcntl(read, fcntl.F_DUPFD, BEYOND)
    try:
        assert not is_readable(high, 0)
        os.write(write, b"x")
        assert is_readable(high, 30)
    finally:
        for descriptor in (read, write, high):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
