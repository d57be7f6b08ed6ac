import json
import random
import sys
import unicodedata

import pytest

from punchlist.base.text import clip, is_safe, one_line, safe, safe_block, safe_json, task_id
from punchlist_testing.unmeasured import untraced

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp", "Cn"}


def hostile_strings() -> list[str]:
    """Strings that have been used to control terminals, hide text, or break programs that process text."""
    escape = [
        "\x1b[2J",
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1bc",
        "\x9b2J",
        "\x9d0;t\x9c",
    ]
    escape += [
        "\x1b[6n",
        "\x1b[5i",
        "\x1b[?1049h",
        "\x1b]52;c;cm0gLXJm\x07",
        "\x1b_Gf=24\x1b\\",
        "\x1b#8",
        "\x1b(0",
        "\x1b[20t",
    ]
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
    bidi = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
    hidden = [
        chr(code)
        for code in (0x00AD, 0x034F, 0x115F, 0x180E, *range(0x200B, 0x200E), 0x2060, 0x2800, 0x3164, 0xFEFF, 0xFFA0)
    ]
    breaks = ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"]
    tags = ["".join(chr(0xE0000 + ord(char)) for char in "ignore all")]
    halves = ["\ud800", "\udc00", "\udfff\ud800"]
    selectors = ["\U000e0100", "a" + "\u0301" * 50, "\ufe00"]
    parts = [*escape, *controls, *bidi, *hidden, *breaks, *tags, *halves, *selectors]
    return [form.format(part) for part in parts for form in ("{}", "before {} after", "{0}{0}rm -rf{0}", "{0}\\")]


def test_corpus_of_hostile_strings_is_large() -> None:
    assert len(set(hostile_strings())) >= 400


def test_hostile_string_is_shown_without_control_characters() -> None:
    for text in hostile_strings():
        shown = safe(text)
        assert all(unicodedata.category(char) not in STEERING for char in shown), ascii(text)
        assert "\\" in shown, ascii(text)


def test_no_unicode_control_character_reaches_terminal() -> None:
    with untraced():
        through = [char for char in map(chr, range(sys.maxunicode + 1)) if safe(f"a{char}") == f"a{char}"]
    assert {unicodedata.category(char) for char in through}.isdisjoint(STEERING | {"Co"})
    assert len(through) > 130_000, "text in all languages passes"


def test_block_keeps_only_newline_and_tab() -> None:
    controls = {char for char in map(chr, range(0x100)) if unicodedata.category(char) == "Cc"}
    assert {char for char in controls if safe_block(char) == char} == {"\n", "\t"}


@pytest.mark.parametrize(
    "text", ["Grüße", "日本語のタイトル", "עברית", "العربية", "नमस्ते", "emoji ✔️ 🎉", "a\u00a0b", "全角\u3000空白"]
)
def test_ordinary_writing_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "👨\u200d👩\u200d👧\u200d👦",
            "❤\ufe0f\u200d🔥",
            "👩🏽\u200d🚀",
            "می\u200cخواهم",
            "क्\u200dष",
            "soft\xadhyphen",
        ),
        *("葛\U000e0100城", "≨\ufe00", "☺\ufe0e"),
    ],
)
def test_joiners_and_selectors_needed_in_text_stay(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("\u200dstart", "end\u200d", "a \u200d b", "a\u200d\u200db", "a\u200d-", "(\u00ad)", "x\u202eb", "x\u2066b"),
        *(" \ufe00", "葛\U000e0100\U000e0101", "a\u200bb", "a\u2060b", "\U000e0041x"),
    ],
    ids=ascii,
)
def test_joiners_and_selectors_elsewhere_are_escaped(text: str) -> None:
    assert "\\" in safe(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202e", "\\u202e"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("a\nb", "a\\x0ab"),
    ],
)
def test_escapes_are_readable(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_json_keeps_value_without_control_characters() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    picks = random.Random(seed)
    for text in [
        *hostile_strings(),
        *("".join(map(chr, picks.choices(range(sys.maxunicode + 1), k=30))) for _ in range(300)),
    ]:
        value = {"title": text}
        line = json.dumps(value, ensure_ascii=False)
        assert json.loads(safe_json(line)) == json.loads(json.dumps(value))
        assert all(is_safe(char) for char in safe_json(line))


def test_long_text_is_clipped_with_ellipsis() -> None:
    assert [clip("abcdef", most) for most in (1, 3, 5, 6, 7)] == ["…", "ab…", "abcd…", "abcdef", "abcdef"]


def test_white_space_of_any_kind_becomes_single_spaces() -> None:
    assert one_line(" a\r\n\tb \u2028 c ") == "a b c"


def test_task_id_may_have_hash() -> None:
    assert [task_id(text) for text in ("3", "#3", "##3", "#")] == ["3", "3", "#3", ""]
