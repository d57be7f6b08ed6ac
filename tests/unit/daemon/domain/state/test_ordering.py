"""Sort keys."""

from itertools import pairwise
from random import Random

import pytest

from punchlistd.domain.state.ordering import between, default_key


def test_default_keys_sort_as_numbers() -> None:
    numbers = [1, 2, 9, 10, 11, 99, 100, 10_000, 10**15]
    keys = [default_key(str(number)) for number in numbers]
    assert keys == sorted(keys)


@pytest.mark.parametrize("seed", range(20))
def test_a_key_fits_between_any_two_neighbors(seed: int) -> None:
    random = Random(seed)
    keys = [default_key(str(number)) for number in range(1, random.choice((2, 12, 120)))]
    following = default_key("120")
    for step in range(400):
        place = random.choice((0, len(keys), random.randrange(len(keys) + 1), len(keys) // 2))
        low = keys[place - 1] if place else ""
        high = keys[place] if place < len(keys) else following
        key = between(low, high)
        assert low < key < high, (seed, step)
        keys.insert(place, key)
        if random.random() < 0.4:
            keys.pop(random.randrange(len(keys)))
    assert all(low < high for low, high in pairwise(keys))


def test_moves_to_one_end_count_instead_of_growing() -> None:
    first, last = default_key("1"), default_key("1")
    for _ in range(10_000):
        first, last = between("", first), between(last, default_key("2"))
    assert len(first) < 8
    assert len(last) < 12


@pytest.mark.parametrize(
    ("low", "high"), [("b", "a"), ("a", "a"), ("a", "a0"), ("~", "é"), ("", ""), ("", "0"), ("A0", "")]
)
def test_equal_neighbors_give_a_key_after_the_first(low: str, high: str) -> None:
    assert between(low, high) > low


def test_front_keys_never_run_out() -> None:
    assert "" < between("", "A000") < "A000"


@pytest.mark.parametrize(("low", "high"), [("b10", "b10I"), ("b10", "b10a1"), ("", "A000"), ("b10a1", "b10a2")])
def test_middle_keys_have_no_trailing_zeros(low: str, high: str) -> None:
    key = between(low, high)
    assert low < key < high
    assert len(key) > 1
    assert key[-1].isalpha()
