import random

import pytest

from punchlist_schemas.order import longest_rise


def rise(keys: list[int]) -> set[int]:
    work = longest_rise(keys)
    with pytest.raises(StopIteration) as end:
        while True:
            next(work)
    return end.value.value


def test_the_longest_rise_is_found() -> None:
    assert rise([]) == set()
    assert rise([3, 1, 2, 5, 4]) in ({1, 2, 3}, {1, 2, 4})
    assert rise([5, 4, 3]) in ({0}, {1}, {2})
    keys = random.sample(range(500), 500)
    found = [keys[index] for index in sorted(rise(keys))]
    assert found == sorted(found)
