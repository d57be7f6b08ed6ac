"""Settings for all tests of the domain."""

from collections.abc import Iterator
from typing import cast

import pytest

from punchlist_testing.domain import Recorder
from punchlist_testing.unmeasured import untraced

TRACED = 8
"""Rounds of a random test that are measured for coverage; later rounds would execute no additional lines."""


@pytest.fixture(autouse=True)
def few_rounds_are_traced(request: pytest.FixtureRequest) -> Iterator[None]:
    function = cast(pytest.Function, request.node)
    given = function.callspec.params if hasattr(function, "callspec") else {}
    if cast(int, given.get("seed", given.get("_round", 0))) >= TRACED:
        with untraced():
            yield
    else:
        yield


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
