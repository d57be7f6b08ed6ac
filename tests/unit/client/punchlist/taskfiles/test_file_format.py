import pytest

from punchlist.taskfiles.file_format import Origin, Unreadable, digest_of, load_object, origin_in, title_in


def test_digest_ignores_spelling_of_value() -> None:
    assert digest_of({"a": 1, "b": "é"}) == digest_of({"b": "\u00e9", "a": 1})
    assert digest_of([1]) != digest_of(["1"])


def test_malformed_origin_is_ignored() -> None:
    assert origin_in({"punchlist": {"conversation": "c", "epoch": "e", "version": 3}}) == Origin("c", "e", 3)
    for value in (None, 3, {}, {"conversation": "c", "epoch": "e", "version": "3"}):
        assert origin_in({"punchlist": value}) is None


def test_a_title_is_one_line() -> None:
    assert title_in({"t": " a\u2028 b\n"}, "t") == "a b"
    assert title_in({"t": "a  b "}, "t") == "a  b"
    assert title_in({}, "t") == ""


def test_only_an_object_is_a_file() -> None:
    assert load_object(b"\xef\xbb\xbf{}") == {}
    with pytest.raises(Unreadable, match="expected an object"):
        load_object(b"[]")
