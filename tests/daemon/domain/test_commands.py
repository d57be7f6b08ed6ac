"""The values that decide takes and gives."""

import pytest

from punchlist_schemas.params import ListClear
from punchlistd.domain.commands import Command, Decision


def test_what_was_decided_can_not_be_changed_behind_ones_back() -> None:
    for value, member in (
        (Decision(), "events"),
        (Command(params=ListClear(conversation="c"), at=1, actor="me"), "at"),
    ):
        with pytest.raises(AttributeError):
            setattr(value, member, None)


def test_a_decision_is_empty_unless_something_follows() -> None:
    assert (Decision().events, Decision().undoes, Decision().lines) == ((), (), ())
