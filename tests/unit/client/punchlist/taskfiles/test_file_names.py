import random
import re
import string

from punchlist.taskfiles.file_names import conversation_of, stems_of
from punchlist_testing.unmeasured import mostly_untraced

UUID = "550e8400-e29b-41d4-a716-446655440000"


def test_uuid_is_named_by_its_digits() -> None:
    digits = UUID.replace("-", "")
    for spelling in (UUID, UUID.upper(), digits, digits.upper()):
        assert stems_of(spelling)[0] == digits
    assert conversation_of(digits) == UUID


def test_uuid_with_dashes_has_one_name() -> None:
    assert stems_of(UUID, keep_dashes=True) == (UUID,)
    assert conversation_of(UUID, keep_dashes=True) == UUID
    assert stems_of(UUID.upper(), keep_dashes=True) == stems_of(UUID.upper())[1:]


def test_plain_id_is_its_own_name() -> None:
    assert stems_of("release-1") == ("release-1",)
    assert conversation_of("release-1") == "release-1"


def test_no_two_conversations_share_their_last_name() -> None:
    digits = UUID.replace("-", "")
    names = ["Plan", "plan", "pLan", UUID, UUID.upper(), digits, digits.upper()]
    names += ["a.b", "a:b", "a_b", "a-b", "con", "nul"]
    names += [stems_of(name)[-1] for name in ("Plan", "con", digits)]
    assert len({stems_of(name)[-1].lower() for name in names}) == len(names)


def test_no_id_leads_out_of_the_directory() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
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
    for number in mostly_untraced(len(ids), 500):
        one = ids[number]
        stem = stems_of(one)[-1]
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", stem), f"seed {seed}: {one!r}"
        assert stem not in ("con", "nul", "aux", "prn", "com1"), f"seed {seed}: {one!r}"
        if (back := conversation_of(stem)) is not None:
            assert back == one, f"seed {seed}: {one!r}"


def test_hash_alone_reveals_no_list_name() -> None:
    assert conversation_of(*stems_of("Plan")) is None
    assert conversation_of("no such name!") is None
