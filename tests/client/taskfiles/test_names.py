import random
import re
import string

from punchlist.taskfiles.names import conversation_of, stem_of

UUID = "550e8400-e29b-41d4-a716-446655440000"


def test_a_uuid_is_named_by_its_digits() -> None:
    assert stem_of(UUID) == UUID.replace("-", "")
    assert conversation_of(UUID.replace("-", "")) == UUID


def test_a_plain_id_is_its_own_name() -> None:
    assert stem_of("release-1") == conversation_of("release-1") == "release-1"


def test_no_two_conversations_share_a_name() -> None:
    digits = UUID.replace("-", "")
    names = [
        "Plan",
        "plan",
        "pLan",
        UUID,
        UUID.upper(),
        digits,
        digits.upper(),
        "a.b",
        "a:b",
        "a_b",
        "a-b",
        "con",
        "nul",
    ]
    names += [stem_of(name) for name in ("Plan", "con", digits)]
    stems = [stem_of(name) for name in names]
    assert len({stem.lower() for stem in stems}) == len(names)


def test_no_id_leads_out_of_the_directory() -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    evil = [
        "..",
        "/",
        "\x00",
        "CON",
        "a" * 300,
        "é",
        "E\u0301",
        "a.",
        "-a",
        "a\n",
        "~",
        "com1",
        "\ud800",
        ".git",
        "a/../b",
    ]
    ids = evil + [
        "".join(chance.choice(string.printable + "é\u202e") for _ in range(chance.randint(1, 140)))
        for _ in range(20_000)
    ]
    for one in ids:
        stem = stem_of(one)
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", stem), f"seed {seed}: {one!r}"
        assert stem not in ("con", "nul", "aux", "prn", "com1"), f"seed {seed}: {one!r}"
        if (back := conversation_of(stem)) is not None:
            assert back == one, f"seed {seed}: {one!r}"


def test_a_hash_does_not_tell_whose_it_is() -> None:
    assert conversation_of(stem_of("Plan")) is None
    assert conversation_of("no such name!") is None
