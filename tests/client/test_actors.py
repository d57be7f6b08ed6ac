import pytest

from punchlist.actors import is_agents


@pytest.mark.parametrize(
    ("actor", "agent", "is_so"),
    [
        ("ann", "ann", True),
        ("ann/scout", "ann", True),
        ("anna", "ann", False),
        ("ann", "ann/scout", False),
        ("", "", False),
    ],
)
def test_an_agents_own_are_itself_and_its_sub_agents_alone(actor: str, agent: str, *, is_so: bool) -> None:
    assert is_agents(actor, agent) is is_so
