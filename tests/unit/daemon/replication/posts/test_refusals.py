import pytest

from punchlist_schemas.errors import Rejection
from punchlistd.replication.posts import refusals
from punchlistd.replication.posts.posts import Diverged, TooNew

REPAIR = "punch space repair team release"

STUCK = {
    "lost": (refusals.lost("release", "team", 3), "diverged", "punch share release --repair"),
    "deletion lost": (refusals.lost("gone", "team", 3, deleted=True), "diverged", "delete it there again"),
    "deleted and lost": (refusals.lost("gone", "team", 0, deleted=True), "diverged", "punch leave gone"),
    "gone on": (refusals.other_history("release", "team"), "diverged", "--keep-as NAME"),
    "counted": (refusals.counted_otherwise("release", "team", 5, 3), "diverged", "then punch join release"),
    "altered": (refusals.altered("release"), "forbidden", "--keep-as NAME"),
    "longer": (refusals.longer_elsewhere("release", 7, "bob_1", 3), "forbidden", "bob has release up to version 7"),
    "rubbish": (refusals.unreadable("release", "team", Diverged("Rubbish.")), "diverged", REPAIR),
    "newer": (refusals.unreadable("release", "team", TooNew("Too new.")), "upgrade_needed", REPAIR),
    "no keeper": (refusals.not_a_keeper("team"), "forbidden", "punch space server team --keeper NAME"),
}


def test_unknown_list_error_names_valid_lists_only() -> None:
    said = refusals.not_there("release", "team", ["", "\x1b[31m\n evil", "plan"]).message
    assert "It has: plan. " in said
    assert "It has none yet." in refusals.not_there("release", "team", [""]).message


@pytest.mark.parametrize("case", STUCK)
def test_every_blocked_list_names_its_remedy(case: str) -> None:
    refused, kind, says = STUCK[case]
    assert isinstance(refused, Rejection)
    assert refused.kind == kind
    assert says in refused.message
