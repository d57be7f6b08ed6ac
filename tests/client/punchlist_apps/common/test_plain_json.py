import json

import msgspec
import pytest

from punchlist_apps.common import plain_json


@pytest.mark.parametrize(
    "canonical", ["{}", "[]", "1.5", "-3", "true", "null", r'"\u00e9\u2028\\ \""', '{"a": {"b": [[], {}, "x"]}}']
)
def test_values_are_decoded_as_json_says(canonical: str) -> None:
    value = json.loads(canonical)
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), msgspec.json.encode(value).decode()):
        assert plain_json.decode(text) == value


@pytest.mark.parametrize("text", ["", "nonsense", "{", '"a\nb"'])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, StopIteration)):
        plain_json.decode(text)


@pytest.mark.parametrize("params", [{}, {"c": 'é"\n\\'}, {"conversation": "a", "task": "\U0001f389\x00"}])
def test_parameters_are_encoded_as_ascii_json(params: dict[str, str]) -> None:
    text = plain_json.encode(params)
    assert text.isascii()
    assert json.loads(text) == params


DEFAULTS = {"name": "", "on": False, "seq": None, "many": ("x",)}


def test_members_are_those_that_are_named_and_the_others_by_default() -> None:
    given = b'  {"name": "a", "seq": 7, "many": ["b", "c"], "other": {"deep": [1]}}\n'
    assert plain_json.members(given, DEFAULTS) == {"name": "a", "on": False, "seq": 7, "many": ("b", "c")}
    assert plain_json.members(b'{"seq": null}', DEFAULTS) == DEFAULTS


@pytest.mark.parametrize(
    "spoiled",
    [
        *(
            b"",
            b"{",
            b"[]",
            b"3",
            b"null",
            b'"name"',
            b"\xff",
            b"[" * 100_000,
            b'{"name": "\\ud800"}',
            b'{"name": "a"} b',
        ),
        *(b'{"name": 3}', b'{"name": null}', b'{"on": 1}', b'{"seq": true}', b'{"seq": "7"}', b'{"many": [1]}'),
        *(b'{"many": "ab"}', b'{"name": "a", "seq": 1.5}'),
    ],
)
def test_members_of_a_spoiled_text_are_all_by_default(spoiled: bytes) -> None:
    assert plain_json.members(spoiled, DEFAULTS) == DEFAULTS
