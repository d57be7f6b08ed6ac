import pytest

from punchlist_schemas.methods import METHODS
from punchlist_schemas.results import Written


@pytest.mark.parametrize("name", METHODS)
def test_exactly_the_writing_methods_answer_with_version_and_position(name: str) -> None:
    assert issubclass(METHODS[name].result, Written) == (METHODS[name].kind == "write")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_under_its_name_and_says_what_it_does(name: str) -> None:
    assert METHODS[name].name == name
    assert METHODS[name].summary.endswith(".")
