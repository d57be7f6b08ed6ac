import random

from punchlist_schemas.order import longest_rise


def test_longest_rise_is_found() -> None:
    assert longest_rise([]) == set()
    assert longest_rise([3, 1, 2, 5, 4]) in ({1, 2, 3}, {1, 2, 4})
    assert longest_rise([5, 4, 3]) in ({0}, {1}, {2})
    keys = random.sample(range(500), 500)
    rise = [keys[index] for index in sorted(longest_rise(keys))]
    assert rise == sorted(rise)
