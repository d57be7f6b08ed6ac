import pytest

from punchlist_schemas.errors import Rejection
from punchlistd.shared import refusals
from punchlistd.shared.posts import TooNew, Unreadable

STUCK = {
    "lost": (refusals.lost("release", "team", 3), "diverged", "punch share release --repair"),
    "gone on": (refusals.other_history("release", "team"), "diverged", "--keep-as NAME"),
    "altered": (refusals.altered("release"), "forbidden", "--keep-as NAME"),
    "longer": (refusals.longer_elsewhere("release", 7, "bob_1", 3), "forbidden", "bob has release up to version 7"),
    "rubbish": (refusals.unreadable("release", "team", Unreadable("Rubbish.")), "diverged", "punch doctor"),
    "newer": (refusals.unreadable("release", "team", TooNew("Too new.")), "upgrade_needed", "can be read here"),
}


@pytest.mark.parametrize("case", STUCK)
def test_whatever_keeps_a_list_from_going_on_says_how_to_go_on(case: str) -> None:
    refused, kind, says = STUCK[case]
    assert isinstance(refused, Rejection)
    assert refused.kind == kind
    assert says in refused.message
