"""What holds for every test of the domain."""

from collections.abc import Iterator
from typing import cast

import pytest

from punchlist_testing.unmeasured import untraced

TRACED = 8
"""So many seeds of a random test show the tracer of coverage the lines; under it, all would take four times as long."""


@pytest.fixture(autouse=True)
def few_seeds_are_traced(request: pytest.FixtureRequest) -> Iterator[None]:
    function = cast(pytest.Function, request.node)
    if hasattr(function, "callspec") and cast(int, function.callspec.params.get("seed", 0)) >= TRACED:
        with untraced():
            yield
    else:
        yield
