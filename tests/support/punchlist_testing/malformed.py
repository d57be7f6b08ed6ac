"""A table of malformed and well-formed frames, with the response to each derived from the protocol's rules."""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_DEPTH = 32
MAX_BATCH = 100
MAX_INTEGER = 2**53

PARSE_ERROR = "parse_error"
INVALID_REQUEST = "invalid_request"
LIMIT_EXCEEDED = "limit_exceeded"
FINE = "fine"


class Case(NamedTuple):
    """A frame and its response: the raw id, and the kind of the error or `FINE`."""

    name: str
    frame: bytes
    id: bytes
    kind: str


# Well-formed frames with a placeholder for a value

PLACES: dict[str, bytes] = {
    "parameter": b'{"jsonrpc":"2.0","id":7,"method":"task.add","params":{"conversation":"c","title":%b}}',
    "metadata": b'{"jsonrpc":"2.0","id":7,"method":"task.add","params":{"metadata":{"a":{"b":[1,%b,2]}}}}',
    "content": b'{"jsonrpc":"2.0","id":7,"method":"message.append","params":{"content":[%b]}}',
    "first": b'{"params":{"x":%b},"jsonrpc":"2.0","id":7,"method":"task.add"}',
    "colons": b'{"jsonrpc":"2.0","id":7,"method":"task.add","params":{"title":"a:b \\" :","x": %b }}',
    "batch": b'[{"jsonrpc":"2.0","id":7,"method":"task.add","params":{"x":%b}}]',
}

BAD_VALUES: dict[str, bytes] = {
    "nothing": b"",
    "NaN": b"NaN",
    "-NaN": b"-NaN",
    "nan": b"nan",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "inf": b"inf",
    "undefined": b"undefined",
    "True": b"True",
    "None": b"None",
    "nul": b"nul",
    "truee": b"truee",
    "leading zero": b"01",
    "negative leading zero": b"-01",
    "plus": b"+1",
    "double minus": b"--1",
    "minus alone": b"-",
    "point first": b".5",
    "point last": b"5.",
    "two points": b"1.2.3",
    "empty exponent": b"1e",
    "signed empty exponent": b"1e+",
    "hexadecimal": b"0x10",
    "underscore": b"1_000",
    "full-width digit": "１".encode(),
    "overflow": b"1e999",
    "negative overflow": b"-1e999",
    "overflow with a fraction": b"1.5E+400",
    "overflow by a huge exponent": b"1e99999999999999999999",
    "100 digits": b"1" * 100,
    "5,000 digits": b"9" * 5_000,
    "single quotes": b"'a'",
    "no quotes": b"a",
    "open string": b'"a',
    "string of one quote": b'"',
    "escape x": b'"\\x41"',
    "escape of a quote only": b'"\\"',
    "escape 0": b'"\\0"',
    "escape a": b'"\\a"',
    "escape of a space": b'"\\ "',
    "escape of a newline": b'"\\\n"',
    "short u": b'"\\u00"',
    "u without hexadecimals": b'"\\u00g0"',
    "capital U": b'"\\U0041"',
    "lone high surrogate": b'"\\ud800"',
    "lone low surrogate": b'"\\udc00"',
    "swapped surrogates": b'"\\udc00\\ud800"',
    "two high surrogates": b'"\\ud800\\ud800"',
    "high surrogate and a letter": b'"\\uD83Da"',
    "high surrogate and an escape": b'"\\uD83D\\n"',
    "high surrogate and a basic character": b'"\\uD83D\\u0041"',
    "escaped pair broken by a backslash": b'"\\ud83d\\\\ude00"',
    "trailing comma in an array": b"[1,]",
    "leading comma": b"[,1]",
    "comma alone": b"[,]",
    "two commas": b"[1,,2]",
    "no comma": b"[1 2]",
    "open array": b"[1",
    "array closed by a brace": b"[1}",
    "object closed by a bracket": b'{"a":1]',
    "trailing comma in an object": b'{"a":1,}',
    "no colon": b'{"a" 1}',
    "two colons": b'{"a"::1}',
    "equals sign": b'{"a"=1}',
    "no value": b'{"a":}',
    "no name": b"{:1}",
    "bare name": b"{a:1}",
    "number as a name": b"{1:1}",
    "null as a name": b"{null:1}",
    "set": b'{"a"}',
    "open object": b'{"a":1',
    "line comment": b"1 // one\n",
    "block comment": b"1 /* one */",
    "hash comment": b"1 # one\n",
    "byte order mark": b"\xef\xbb\xbf1",
    "no-break space": b"\xc2\xa01",
    "form feed": b"\x0c1",
    "vertical tab": b"\x0b1",
    "NUL": b"\x001",
    "repeated name": b'{"a":1,"a":2}',
    "repeated name, same value": b'{"a":1,"a":1}',
    "repeated name, spaced": b'{"a" : 1 , "b":2, "a"\t:\n1}',
    "repeated name, spelled with an escape": b'{"a":1,"\\u0061":2}',
    "repeated name, colon as an escape": b'{"a:":"","a\\u003a":"\\u003a\\u003A"}',
    "repeated name, value with colons": b'{"a":"::","a":"::"}',
    "repeated empty name": b'{"":1,"":2}',
    "repeated name, deeper": b'{"a":[{"b":{"c":1,"d":2,"c":3}}]}',
    "repeated name holding objects": b'{"a":{"x":1,"y":2},"a":{"z":3}}',
}

GOOD_VALUES: dict[str, bytes] = {
    "null": b"null",
    "true": b"true",
    "false": b"false",
    "zero": b"0",
    "negative zero": b"-0",
    "negative zero float": b"-0.0",
    "small": b"1e-999",
    "float": b"1.5E+3",
    "large float": b"1e308",
    "many digits behind the point": b"0.1234567890123456789012345678901234567890",
    "many digits before the point": b"12345678901234567890.5",
    "many digits with an exponent": b"12345678901234567890e3",
    "digits in a string": b'"123456789012345678901234567890"',
    "digits behind a quote in a string": b'"\\"123456789012345678901234567890"',
    "empty string": b'""',
    "NUL as an escape": b'"\\u0000"',
    "every escape": b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"',
    "surrogate pair": b'"\\ud83d\\uDE00"',
    "backslash and the letters of an escape": b'"\\\\ud800"',
    "delete": b'"\x7f"',
    "any plane": '"é€😀\ufeff\u2028"'.encode(),
    "noncharacters": '"\uffff\U0010ffff"'.encode(),
    "brackets in a string": b'"' + b"[{" * 100 + b'"',
    "brackets behind a quote in a string": b'"\\"' + b"[" * 100 + b'"',
    "colons in strings": b'{"a:":"b:c","d":":::"}',
    "same name in different objects": b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
    "names that differ by case": b'{"a":1,"A":2}',
    "escaped colon": b'{"a\\u003a":"\\u003A:"}',
    "blanks": b" [ 1 ,\t2\r\n, { } ] ",
    "many siblings": b"[" + b",".join([b"[]"] * 500) + b"]",
}


def values() -> Iterator[Case]:
    """Yield good and bad values in every place."""
    for (place, frame), (name, value) in itertools.product(PLACES.items(), BAD_VALUES.items()):
        if (place, name) == ("content", "nothing"):
            continue  # an empty array
        yield Case(f"{name} as {place}", frame % value, b"null", PARSE_ERROR)
    for (place, frame), (name, value) in itertools.product(PLACES.items(), GOOD_VALUES.items()):
        yield Case(f"{name} as {place}", frame % value, b"7", FINE)
    for name, value in BAD_VALUES.items():
        yield Case(f"{name} alone", value, b"null", PARSE_ERROR)
    for name, value in GOOD_VALUES.items():
        if not value.lstrip().startswith((b"[", b"{")):
            yield Case(f"{name} alone", value, b"null", INVALID_REQUEST)


def integers() -> Iterator[Case]:
    """Yield integers around the limits of exact integers in JSON readers."""
    edges = (0, 10**15, 10**16 - 1, MAX_INTEGER, 2**63, 2**64, 10**30)
    near = {sign * (edge + step) for edge in edges for step in range(-6, 7) for sign in (1, -1)}
    for (place, frame), number in itertools.product(PLACES.items(), sorted(near)):
        fine = abs(number) <= MAX_INTEGER
        name = f"{number} as {place}"
        yield Case(name, frame % b"%d" % number, b"7" if fine else b"null", FINE if fine else PARSE_ERROR)


def depths() -> Iterator[Case]:
    """Yield nesting below, at and above the limit, closed and left open."""
    shapes: tuple[tuple[bytes, bytes], ...] = ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]"), (b'["]",', b"]"))
    for (place, frame), (opening, closing) in itertools.product(PLACES.items(), shapes):
        levels = opening.count(b"[") + opening.count(b"{")
        # No place contains a bracket in a string or closes a bracket before the value.
        outside = frame.split(b"%b")[0].count(b"{") + frame.split(b"%b")[0].count(b"[")
        for count in (*range(1, 41), 1_000, 20_000):
            deep = outside + count * levels > MAX_DEPTH
            name = f"{count} x {opening.decode()} as {place}"
            whole = frame % (opening * count + b"1" + closing * count)
            yield Case(name, whole, b"null" if deep else b"7", LIMIT_EXCEEDED if deep else FINE)
            cut = frame.split(b"%b")[0] + opening * count
            yield Case(name + ", open", cut, b"null", LIMIT_EXCEEDED if deep else PARSE_ERROR)
    yield Case("a million brackets", b"[" * 1_000_000, b"null", LIMIT_EXCEEDED)


def encodings() -> Iterator[Case]:
    """Yield bytes that aren't UTF-8, and unescaped control characters."""
    strings = {place: frame % b'"a%bz"' for place, frame in PLACES.items()}
    strings["name"] = PLACES["metadata"] % b'{"a%bz":1}'
    strings["method"] = b'{"jsonrpc":"2.0","id":7,"method":"a%bz"}'
    faults = [bytes([byte]) for byte in range(0x80, 0x100)]
    faults += [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"]
    faults += [
        b"\xed\xa0\x80",
        b"\xed\xb0\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
    ]
    faults += [bytes([byte]) for byte in range(0x20)]
    for (place, frame), fault in itertools.product(strings.items(), faults):
        yield Case(f"{fault!r} in a string as {place}", frame.replace(b"%b", fault), b"null", PARSE_ERROR)
    for byte in set(range(0x20)) - set(b"\t\n\r"):
        yield Case(f"{byte:#x} between tokens", PLACES["parameter"] % bytes([0x31, byte]), b"null", PARSE_ERROR)


def cuts() -> Iterator[Case]:
    """Yield a good frame, truncated at every byte or followed by more bytes."""
    frame = PLACES["metadata"] % b'{"\\u00e9":"\\"","c":[null,true,-1.5e3]}'
    for end in range(len(frame)):
        yield Case(f"cut at {end}", frame[:end], b"null", PARSE_ERROR)
    for tail in (b"}", b"]", b",", b"0", b'"', b"{}", frame, b"\x00", b"\xef\xbb\xbf"):
        yield Case(f"followed by {tail[:9]!r}", frame + tail, b"null", PARSE_ERROR)


def _good(*values: bytes | None) -> Callable[[bytes | None], bool]:
    return lambda value: value in values


IDS = (None, b"1", b"-5", b"-0", b"9007199254740992", b'""', b'"a"', b'"%b"' % (b"x" * 128))
BAD_IDS = (b'"%b"' % (b"x" * 129), b"null", b"1.0", b"1e3", b"true", b"[]", b"[1]", b"{}", b'{"a":1}')
VERSIONS = (b'"2.0"', b'"\\u0032.0"', None, b'"1.0"', b'"2"', b"2.0", b"2", b"null", b'["2.0"]')
METHODS = (b'"task.add"', b'""', b'"no.such"', None, b"null", b"1", b"true", b'["a"]', b"{}")
PARAMS = (None, b"{}", b'{"a":1}', b"[]", b"[1]", b'[{"a":1}]', b"null", b"1", b"false", b'"a"')
EXTRAS = (None, b'"result":1', b'"Method":"task.add"')


def envelopes() -> Iterator[Case]:
    """Yield every combination of valid and invalid members with at most two faults besides the id."""
    good_id, good_version, good_method = _good(*IDS), _good(*VERSIONS[:2]), _good(*METHODS[:3])
    good_params = _good(*PARAMS[:7])
    for id, version, method, params, extra in itertools.product(IDS + BAD_IDS, VERSIONS, METHODS, PARAMS, EXTRAS):
        if sum([not good_version(version), not good_method(method), not good_params(params), extra is not None]) > 2:
            continue  # two faults at a time show that each is checked
        members = ((b"jsonrpc", version), (b"id", id), (b"method", method), (b"params", params))
        parts = [b'"%b":%b' % member for member in members if member[1] is not None] + ([extra] if extra else [])
        fine = good_id(id) and good_version(version) and good_method(method) and good_params(params) and not extra
        response_id = id if id is not None and good_id(id) else b"null"
        frame = b"{%b}" % b",".join(parts)
        yield Case(frame.decode(), frame, response_id, FINE if fine else INVALID_REQUEST)


def all_cases() -> list[Case]:
    """Return the whole table, without batches."""
    return [*values(), *integers(), *depths(), *encodings(), *cuts(), *envelopes()]


def batches() -> Iterator[tuple[str, bytes, str | list[str]]]:
    """Yield the name and the frame of each batch, and the kind of its single response or the kinds of its responses."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"task":"a:b"}}'
    elements: list[tuple[bytes, str]] = [
        (call, FINE), (b"1", INVALID_REQUEST), (b"null", INVALID_REQUEST), (b"[]", INVALID_REQUEST),
        (b"[%b]" % call, INVALID_REQUEST), (b"{}", INVALID_REQUEST), (b'{"jsonrpc":"2.0","method":"a"}', FINE),
    ]  # fmt: skip
    yield "empty", b"[]", INVALID_REQUEST
    yield "empty with blanks", b" [ \n ] ", INVALID_REQUEST
    for size in (1, 2, 3):
        for chosen in itertools.product(elements, repeat=size):
            yield f"{size}", b"[" + b", ".join(item for item, _ in chosen) + b"]", [kind for _, kind in chosen]
    for count in (99, MAX_BATCH):
        yield f"{count} calls", b"[" + b",".join([call] * count) + b"]", [FINE] * count
    for count, item in ((MAX_BATCH + 1, call), (MAX_BATCH + 1, b"1"), (1_000, call), (100_000, b"1"), (100_000, b"{}")):
        yield f"{count} elements", b"[" + b",".join([item] * count) + b"]", LIMIT_EXCEEDED
    yield "one element is no JSON", b"[" + call + b",NaN]", PARSE_ERROR


def header_faults() -> Iterator[tuple[bytes, str]]:
    """Yield malformed header blocks that begin with C, and the kind of the error."""
    length = b"Content-Length: 2\r\n"
    lengths: dict[bytes, str] = dict.fromkeys(
        (b"", b" ", b"2 2", *b'-1 -0 +2 2.0 0x2 2e0 2,2 two \xb2 2; \x00 "2"'.split()),
        PARSE_ERROR,
    ) | dict.fromkeys((b"1048577", b"2147483648", b"9" * 15, b"9" * 400, b"0" * 50 + b"1048577"), LIMIT_EXCEEDED)
    for value, kind in lengths.items():
        yield b"Content-Length: " + value + b"\r\n\r\n{}", kind
        yield b"content-length:" + value + b"\r\nContent-Type: x\r\n\r\n{}", kind
    yield length + length + b"\r\n{}", PARSE_ERROR
    yield length + b"CONTENT-LENGTH: 2\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Type: application/json\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Length : 2\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Length 2\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Length: 2\n\n{}", PARSE_ERROR
    yield b"Content-Type: x\nContent-Length: 2\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Length: 2\r\n X: folded\r\n\r\n{}", PARSE_ERROR
    yield b"Content-Length: 2\r\n: no name\r\n\r\n{}", PARSE_ERROR
    yield b"C" * 5_000, LIMIT_EXCEEDED
    yield length + b"X: " + b"y" * 4_096, LIMIT_EXCEEDED
    yield length + b"X: y\r\n" * 1_000, LIMIT_EXCEEDED


def openings() -> Iterator[tuple[bytes, str]]:
    """Yield first bytes of a connection that aren't a frame, and the kind of the error."""
    for byte in set(range(256)) - set(b"{[Cc \t\r\n"):
        yield bytes([byte]) + b"\x01", PARSE_ERROR
        yield b"\r\n " + bytes([byte]) + b'{"jsonrpc":"2.0"}\n', PARSE_ERROR
