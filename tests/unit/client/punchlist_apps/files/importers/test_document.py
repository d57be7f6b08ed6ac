from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.files.importers import document
from punchlist_apps.files.importers.document import (
    Document,
    decode,
    expect_list,
    expect_object,
    parse_json,
    parse_json_lines,
    read_file,
    to_texts,
)
from punchlist_apps.files.importers.wrong import FormatError

TEXT = "- [ ] Größe “x”\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_common_encodings_are_decoded(encoding: str) -> None:
    data = TEXT.encode(encoding)
    assert decode(data, "f").text == TEXT
    assert decode(("\ufeff" + TEXT).encode(encoding), "f").text == TEXT
    assert decode(data.replace("\n".encode(encoding), b""), "f").text.rstrip("\n") == TEXT.strip()


def test_invalid_utf8_is_decoded_as_windows_1252() -> None:
    found = decode(b"- [ ] a\n- [ ] \x93caf\xe9\x94\r\n", "f")
    assert found.text == "- [ ] a\n- [ ] “café”\n"
    assert found.encoding == "Windows-1252, since byte 0x93 in line 2 is not UTF-8"


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"ab\ncd\0ef", 2, "NUL bytes"),
        (b"\xff\xfea\0\n\0b", 2, "not UTF-16-LE"),
        (b"\xef\xbb\xbfok\n\xff", 2, "not UTF-8"),
    ],
)
def test_binary_data_is_rejected_with_line(data: bytes, line: int, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        decode(data, "f")
    assert caught.value.line == line


def test_large_file_is_rejected_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(FormatError, match="100 MiB is too large; the limit is 64 MiB"):
        read_file(str(path))
    monkeypatch.setattr(document, "MAX_BYTES", 4)
    with pytest.raises(FormatError, match="larger than"):
        decode(b"12345", "f")


def test_invalid_json_error_has_file_line_and_column() -> None:
    with pytest.raises(FormatError, match=r"^f\.json:3: not JSON: .*\(column 8\)$") as caught:
        parse_json(Document("f.json", '{"a": 1,\n\n  "b": }\n'))
    assert (caught.value.name, caught.value.line) == ("f.json", 3)


@pytest.mark.parametrize(("text", "words"), [("[" * 1_000_000, "nested too deeply"), ('{"a": NaN}', "NaN isn't JSON")])
def test_pathological_json_is_rejected(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        parse_json(Document("f", text))


def test_truncated_json_lines_are_rejected_with_line() -> None:
    whole = '{"id": "1"}\n\n{"id": "2"},\n'
    assert [line for line, _ in parse_json_lines(Document("f", whole))] == [1, 3]
    with pytest.raises(FormatError, match=r"f:4: not JSON: .*the file is truncated"):
        list(parse_json_lines(Document("f", whole + '{"id": "3", "ti')))
    assert [value["id"] for _, value in parse_json_lines(Document("f", '[{"id": "1"}]'))] == ["1"]
    with pytest.raises(FormatError, match="f:1: expected an object"):
        list(parse_json_lines(Document("f", "3\n")))


@pytest.mark.parametrize("value", [None, 1, "text", True])
def test_value_of_wrong_type_is_rejected_with_path(value: Any) -> None:
    with pytest.raises(FormatError, match=r"^f: tasks\[2\]: expected an object$"):
        expect_object(value, "tasks[2]", "f")
    with pytest.raises(FormatError, match=r"^f: tasks: expected a list$"):
        expect_list(value, "tasks", "f")


def test_texts_come_from_lists_and_strings() -> None:
    assert to_texts("a, b,,c") == ["a", "b", "c"]
    assert to_texts([{"name": "x"}, {"login": "y"}, "z", 4, {}]) == ["x", "y", "z", "4"]
    assert to_texts(None) == []
