import pytest

from punchlist_schemas.methods import METHODS
from punchlist_schemas.results import Written


@pytest.mark.parametrize("name", METHODS)
def test_only_results_of_writes_have_version_and_position(name: str) -> None:
    assert issubclass(METHODS[name].result, Written) == (METHODS[name].kind == "write")


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_names_and_summaries(name: str) -> None:
    assert METHODS[name].name == name
    assert METHODS[name].summary.endswith(".")
