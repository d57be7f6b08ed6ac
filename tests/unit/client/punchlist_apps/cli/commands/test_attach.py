from typing import Any

import pytest

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"


def test_attached_session_resolves_to_list_until_detached(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    assert punch("agent", "attach", SESSION, "-c", "website").lines == [f"{SESSION} is now attached to website"]
    assert punch("list", "-c", SESSION, "--json").json["tasks"][0]["title"] == "a"
    assert punch("agent", "detach", SESSION).lines == [f"{SESSION} is no longer attached to website"]
    assert punch("list", "-c", SESSION).err.startswith(f"error: no list named {SESSION}\n")


@pytest.mark.parametrize("session", ["x" * 10_000, "a\x1b[2J", "../up", "", "\udcff"])
def test_invalid_session_id_is_rejected_and_not_printed(session: str, punch: Any) -> None:
    punch("add", "a", "-c", "website")
    for refused in (punch("agent", "attach", session, "-c", "website"), punch("list", "-c", session)):
        assert refused.code != 0 and refused.err.startswith("error: ")
        assert not session or session not in refused.out + refused.err
    assert punch("log", "-c", "website", "--json").out.count("ttached") == 0


def test_attaching_again_moves_session(punch: Any) -> None:
    punch("add", "a", "-c", "one")
    punch("add", "b", "-c", "two")
    punch("agent", "attach", SESSION, "-c", "one")
    punch("agent", "attach", SESSION, "-c", "two")
    assert punch("list", "-c", SESSION, "--json").json["tasks"][0]["title"] == "b"


def test_detaching_unattached_session_changes_nothing(punch: Any) -> None:
    punch("add", "a", "-c", "website")
    assert punch("agent", "detach", "nobody").code == 1
    punch("agent", "detach", "nobody", "-c", "website")
    assert punch("log", "-c", "website", "--json").out.count("detached") == 0


def test_attaching_records_actor(punch: Any) -> None:
    punch("agent", "attach", SESSION, "-c", "website", "--actor", "ada")
    assert '"actor":"ada"' in punch("log", "-c", "website", "--json").out
