import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from punchlist_schemas import strict_json
from punchlist_schemas.strict_json import MAX_VALUES
from punchlist_schemas.things import MAX_INTEGER
from punchlist_testing.malformed import BAD_VALUES, GOOD_VALUES


def accepts(text: bytes, depth: int = 32) -> bool:
    try:
        strict_json.parse(text, depth)
    except strict_json.Refused:
        return False
    return True


def reference(text: bytes) -> bool:
    """Return whether a strict parser based on the standard library accepts the text."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("the same name twice")
        for name, _ in pairs:
            name.encode()
        return dict(pairs)

    def integer(digits: str) -> int:
        if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
            raise ValueError("beyond every reader")
        return int(digits)

    def real(digits: str) -> float:
        if math.isinf(float(digits)):
            raise ValueError("not finite")
        return float(digits)

    def constant(name: str) -> None:
        raise ValueError(name)

    try:
        value = json.loads(
            text.decode(), object_pairs_hook=members, parse_int=integer, parse_float=real, parse_constant=constant
        )
        # Encoding as UTF-8 rejects lone surrogates.
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("text", GOOD_VALUES.values(), ids=GOOD_VALUES)
def test_unambiguous_json_is_accepted(text: bytes) -> None:
    assert accepts(text)
    assert reference(text)


@pytest.mark.parametrize("text", [*BAD_VALUES.values(), b"]", b"{,}", b"[1]]", b"{}{}", b"[1]//", b'"\t"'])
def test_ambiguous_json_is_rejected(text: bytes) -> None:
    assert not accepts(text)
    assert not reference(text)


@pytest.mark.parametrize("depth", [1, 2, 32, 200])
def test_nesting_is_accepted_down_to_the_limit(depth: int) -> None:
    assert accepts(b"[" * depth + b"]" * depth, depth)
    assert accepts(b'{"]":' * depth + b"1" + b"}" * depth, depth)
    assert accepts(b"[" + b'[],{"[":"[[["},' * 100 + b"[]]", 2)
    with pytest.raises(strict_json.Refused) as caught:
        strict_json.parse(b"[" * (depth + 1) + b"]" * (depth + 1), depth)
    assert caught.value.rejection.kind == "limit_exceeded"
    assert caught.value.rejection.data == {"limit": "depth", "value": depth + 1, "maximum": depth}


def test_nesting_beyond_the_decoders_limit_is_rejected() -> None:
    with pytest.raises(strict_json.Refused) as caught:
        strict_json.parse(b"[" * 100_000 + b"]" * 100_000, 1_000_000)
    assert caught.value.rejection.data["limit"] == "depth"


def test_error_has_position_of_invalid_byte() -> None:
    with pytest.raises(strict_json.Refused, match="byte 3"):
        strict_json.parse(b'["a\xff"]', 32)


scalars = st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text('ab:\\"{}[]\u00e9\U0001f600\n', max_size=4)
documents = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(documents, st.booleans(), st.sampled_from([None, 1]))
def test_document_is_accepted_if_its_integers_are(document: Any, ascii: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii, indent=indent).encode()
    assert accepts(text) == reference(text)


FRAGMENTS = st.sampled_from(
    [
        *r"""{ } [ ] , : "a" "a":1 "b": "a:b" "\u0061" "\u003a" 1 - 9007199254740993 .5 e9 e999 \ " null""".split(),
        " ",
        "\ud800",
    ]
)


@given(st.lists(FRAGMENTS | st.text(max_size=2), max_size=12))
@example(['{"a":":","a":1}'])
def test_any_text_is_accepted_as_by_the_reference(parts: list[str]) -> None:
    text = "".join(parts).encode(errors="surrogatepass")
    assert accepts(text) == reference(text)


names = st.sampled_from(['"a"', '"\\u0061"', '"b"', '"a:"', '"a\\u003a"', '"a\\u003A"', '""'])
values = st.sampled_from(["1", '":"', '"\\u003a"', "[]", '{"a":1}', '{"a":1,"a":2}', '"\\":\\""'])


@given(st.lists(st.tuples(names, values), max_size=4), st.booleans())
def test_duplicate_names_are_detected(pairs: list[tuple[str, str]], inner: bool) -> None:
    text = "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"
    frame = (f'{{"params":{text}}}' if inner else text).encode()
    assert accepts(frame) == reference(frame)


@pytest.mark.parametrize("value", [b"1,", b"[", b'{"":', b"[],", b"{},"])
def test_values_of_all_forms_are_counted(value: bytes) -> None:
    assert strict_json.has_many_values(value * 1_000) and not strict_json.has_many_values(value * 200)


def in_parts(text: bytes, depth: int = 32) -> tuple[object, int]:
    """Parse in slices. Return the value or the kind of error, and the number of times that parsing yielded."""
    work, pauses = strict_json.parse_in_slices(text, depth), 0
    while True:
        try:
            next(work)
            pauses += 1
        except StopIteration as end:
            return end.value, pauses
        except strict_json.Refused as refused:
            return refused.rejection.kind, pauses


def whole(text: bytes, depth: int = 32) -> object:
    try:
        return strict_json.parse(text, depth)
    except strict_json.Refused as refused:
        return refused.rejection.kind


@given(st.lists(st.tuples(names, values), min_size=1, max_size=4))
@example([('"a"', "1"), ('"a"', "1"), ('"\\u003a"', "1")])
def test_duplicate_names_in_a_long_frame_are_detected(pairs: list[tuple[str, str]]) -> None:
    many = b"[" + b",".join([b"1"] * 2_000) + b"]"
    frame = ("{" + ",".join(f"{name}:{value}" for name, value in pairs)).encode() + b',"params":%b}' % many
    read, pauses = in_parts(frame)
    assert (read != "parse_error") == reference(frame) and pauses > 0


TASKS = [b'{"title":"a:,%d","labels":["x","\\u003a"],"metadata":{"k":[%d,{}]}}' % (n, n) for n in range(1_500)]
FAULTY = [
    b"{",
    b'{"a":1,"a":2}',
    b"9007199254740993",
    b'"\xff"',
    b'"\\ud800"',
    b"01",
    b"[" * 40 + b"]" * 40,
    b'{"a":1}}',
]


def call_of(*elements: bytes, more: bytes = b"") -> bytes:
    params = b'{"conversation":"c",%b"tasks": [%b ] }' % (more, b",".join(elements))
    return b' {"jsonrpc":"2.0","id":1,"method":"list.replace","params":%b}' % params


@pytest.mark.parametrize(
    "text", [call_of(*TASKS), b"[%b,%b]" % (call_of(*TASKS), call_of(b"1"))], ids=["call", "batch"]
)
def test_parsing_in_slices_yields_after_each_part(text: bytes) -> None:
    value, pauses = in_parts(text)
    assert value == whole(text)
    assert len(TASKS) <= pauses <= len(TASKS) + 10


@pytest.mark.parametrize("fault", FAULTY)
@pytest.mark.parametrize("place", [0, 700, 1_500])
def test_parsing_in_slices_rejects_the_same_input(fault: bytes, place: int) -> None:
    text = call_of(*TASKS[:place], fault, *TASKS[place:])
    assert in_parts(text)[0] == whole(text) in ("parse_error", "limit_exceeded")


@pytest.mark.parametrize("name", [b'"tasks":[],', b'"conversation":"d",', b'"t\\u0061sks":1,'])
def test_duplicate_name_next_to_many_parts_is_rejected(name: bytes) -> None:
    text = call_of(*TASKS, more=name)
    assert in_parts(text)[0] == whole(text) == "parse_error"


def test_limit_of_values_applies_to_each_part() -> None:
    half = b"[%b]" % b",".join([b"1"] * (MAX_VALUES // 2))
    many = call_of(*[b'{"metadata":{"k":%b}}' % half] * 5)
    assert whole(many) == "limit_exceeded" and isinstance(in_parts(many)[0], dict)
    assert in_parts(call_of(b'{"metadata":{"k":[%b,%b,1]}}' % (half, half), *TASKS))[0] == "limit_exceeded"
    assert in_parts(call_of(*[b"1"] * (MAX_VALUES + 1)))[0] == "limit_exceeded", "too many parts are parsed as one"
