import pytest

from punchlistd.store.file.listing import cursor_of, place_of, search_text
from punchlistd.store.port import BadCursor


def test_a_cursor_leads_back_to_its_place_and_is_opaque() -> None:
    for place in ((0, "a"), (1_700_000_000, "a:b.c_d-e"), ((1 << 63) - 1, "z")):
        cursor = cursor_of(*place)
        assert place_of(cursor) == place
        assert cursor.isascii() and ":" not in cursor and "=" not in cursor


@pytest.mark.parametrize("place", [(-1, "a"), (1 << 63, "a")])
def test_a_place_that_no_conversation_has_is_refused(place: tuple[int, str]) -> None:
    with pytest.raises(BadCursor):
        place_of(cursor_of(*place))


def test_the_text_searched_is_id_and_title_without_case() -> None:
    assert search_text("Plan", b'{"title":"\xc3\x84PFEL","other":1}') == "plan\näpfel"
    assert search_text("Plan", b"{}") == search_text("Plan", b"") == "plan\n"
