import pytest

from punchlist.tools import memory
from punchlist.tools.memory import Memory


def test_a_token_confirms_exactly_what_it_was_given_out_for() -> None:
    mind = Memory()
    token, expires_at = mind.token("list", "delete", "3")
    assert expires_at % 1_000 == 0
    assert mind.confirms(token, "list", "delete", "3")
    assert not mind.confirms(token, "list", "delete", "4")
    assert not mind.confirms(token, "list", "delete3", "")
    assert not Memory().confirms(token, "list", "delete", "3")


@pytest.mark.parametrize("token", ["", "x", "-", "zz-00", "ffffffffff-0", "1-é"])
def test_a_made_up_token_confirms_nothing(token: str) -> None:
    assert not Memory().confirms(token, "list")


def test_a_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    mind = Memory()
    token, expires_at = mind.token("fact")
    monkeypatch.setattr(memory.time, "time", lambda: expires_at / 1_000 + 1)
    assert not mind.confirms(token, "fact")
