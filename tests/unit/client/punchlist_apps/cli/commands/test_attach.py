from typing import Any

import pytest

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"


def test_an_attached_session_finds_the_list_until_it_is_detached(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    assert punch("agent", "attach", SESSION, "-c", "website").lines == [f"{SESSION} now finds website"]
    assert punch("list", "-c", SESSION, "--json").json["tasks"][0]["title"] == "a"
    assert punch("agent", "detach", SESSION).lines == [f"{SESSION} no longer finds website"]
    assert punch("list", "-c", SESSION).err.startswith(f"error: no list named {SESSION}\n")


@pytest.mark.parametrize("session", ["x" * 10_000, "a\x1b[2J", "../up", "", "\udcff"])
def test_a_session_that_can_be_no_id_is_refused_and_not_shown(session: str, punch: Any) -> None:
    punch("add", "a", "-c", "website")
    for refused in (punch("agent", "attach", session, "-c", "website"), punch("list", "-c", session)):
        assert refused.code != 0 and refused.err.startswith("error: ")
        assert not session or session not in refused.out + refused.err
    assert punch("log", "-c", "website", "--json").out.count("ttached") == 0


def test_attaching_again_moves_the_session(punch: Any) -> None:
    punch("add", "a", "-c", "one")
    punch("add", "b", "-c", "two")
    punch("agent", "attach", SESSION, "-c", "one")
    punch("agent", "attach", SESSION, "-c", "two")
    assert punch("list", "-c", SESSION, "--json").json["tasks"][0]["title"] == "b"


def test_detaching_what_is_not_attached_is_refused_or_changes_nothing(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    assert punch("agent", "detach", "nobody").code == 1
    punch("agent", "detach", "nobody", "-c", "website")
    assert punch("log", "-c", "website", "--json").out.count("detached") == 0


def test_who_attached_is_recorded(punch: Any) -> None:
    punch("agent", "attach", SESSION, "-c", "website", "--actor", "ada")
    assert '"actor":"ada"' in punch("log", "-c", "website", "--json").out
