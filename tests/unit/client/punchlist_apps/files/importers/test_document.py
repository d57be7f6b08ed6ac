from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.files.importers import document
from punchlist_apps.files.importers.document import (
    Document,
    as_list,
    as_object,
    decoded,
    json_lines,
    json_value,
    read,
    texts_of,
)
from punchlist_apps.files.importers.wrong import FormatError

TEXT = "- [ ] Größe “x”\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_text_is_read_in_the_encodings_that_programs_write(encoding: str) -> None:
    data = TEXT.encode(encoding)
    assert decoded(data, "f").text == TEXT
    assert decoded(("\ufeff" + TEXT).encode(encoding), "f").text == TEXT
    assert decoded(data.replace("\n".encode(encoding), b""), "f").text.rstrip("\n") == TEXT.strip()


def test_what_is_not_utf8_is_windows_1252_and_says_so() -> None:
    found = decoded(b"- [ ] a\n- [ ] \x93caf\xe9\x94\r\n", "f")
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
def test_what_is_no_text_is_refused_with_its_line(data: bytes, line: int, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        decoded(data, "f")
    assert caught.value.line == line


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(FormatError, match="100 MiB; at most 64 MiB are read at once"):
        read(str(path))
    monkeypatch.setattr(document, "MAX_BYTES", 4)
    with pytest.raises(FormatError, match="larger than"):
        decoded(b"12345", "f")


def test_broken_json_names_the_file_the_line_and_the_column() -> None:
    with pytest.raises(FormatError, match=r"^f\.json:3: not JSON: .*\(column 8\)$") as caught:
        json_value(Document("f.json", '{"a": 1,\n\n  "b": }\n'))
    assert (caught.value.name, caught.value.line) == ("f.json", 3)


@pytest.mark.parametrize(("text", "words"), [("[" * 1_000_000, "nested too deeply"), ('{"a": NaN}', "NaN is no JSON")])
def test_json_of_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        json_value(Document("f", text))


def test_half_a_file_of_json_lines_is_refused_at_the_line_where_it_ends() -> None:
    whole = '{"id": "1"}\n\n{"id": "2"},\n'
    assert [line for line, _ in json_lines(Document("f", whole))] == [1, 3]
    with pytest.raises(FormatError, match=r"f:4: not JSON: .*the file ends in the middle"):
        list(json_lines(Document("f", whole + '{"id": "3", "ti')))
    assert [value["id"] for _, value in json_lines(Document("f", '[{"id": "1"}]'))] == ["1"]
    with pytest.raises(FormatError, match="f:1: expected an object"):
        list(json_lines(Document("f", "3\n")))


@pytest.mark.parametrize("value", [None, 1, "text", True])
def test_a_value_of_another_shape_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(FormatError, match=r"^f: tasks\[2\]: expected an object$"):
        as_object(value, "tasks[2]", "f")
    with pytest.raises(FormatError, match=r"^f: tasks: expected a list$"):
        as_list(value, "tasks", "f")


def test_words_are_read_from_lists_and_from_text() -> None:
    assert texts_of("a, b,,c") == ["a", "b", "c"]
    assert texts_of([{"name": "x"}, {"login": "y"}, "z", 4, {}]) == ["x", "y", "z", "4"]
    assert texts_of(None) == []
