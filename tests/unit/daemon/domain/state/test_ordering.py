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
def test_there_is_always_room_between_two_neighbours(seed: int) -> None:
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
def test_hopeless_neighbours_give_some_key_behind_the_first(low: str, high: str) -> None:
    assert between(low, high) > low


def test_the_alphabet_of_the_front_ends_and_there_is_still_room() -> None:
    assert "" < between("", "A000") < "A000"


@pytest.mark.parametrize(("low", "high"), [("b10", "b10I"), ("b10", "b10a1"), ("", "A000"), ("b10a1", "b10a2")])
def test_a_key_from_the_middle_can_not_be_another_one_with_zeros_behind(low: str, high: str) -> None:
    key = between(low, high)
    assert low < key < high
    assert len(key) > 1
    assert key[-1].isalpha()
