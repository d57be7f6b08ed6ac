import json
import random
from typing import Any

import pytest

from punchlist_apps.hosts import jsonc

COMMENTED = """{
    // what we use
    "servers": {
        "other": { "command": "x", "args": ["a", "b",], }, // keep
        /* last */
    },
    "inputs": [] // none
}
"""
SERVER = {"command": "punch", "args": ["mcp"]}


def test_everything_else_keeps_its_bytes() -> None:
    changed = jsonc.put(COMMENTED, ("servers", "punchlist"), SERVER)
    assert jsonc.find(changed, ("servers", "punchlist")) == SERVER
    assert all(line in changed for line in ("// what we use", "/* last */", "// none", '["a", "b",]'))
    assert jsonc.remove(changed, ("servers", "punchlist")) == COMMENTED


def test_the_files_own_indentation_is_used() -> None:
    changed = jsonc.put('{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n', ("a", "c"), {"d": 2})
    assert changed == '{\n\t"a": {\n\t\t"b": 1,\n\t\t"c": {\n\t\t\t"d": 2\n\t\t}\n\t}\n}\n'
    assert jsonc.put('{"a": 1}', ("b",), [2]) == '{"a": 1, "b": [2]}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{\n  "a": {} // keep\n}', '{\n  "a": {}, // keep\n  "b": 1\n}'),
        ('{\n  "a": {}, // keep\n}', '{\n  "a": {}, // keep\n  "b": 1,\n}'),
        ('{\n  "a": {} /* one */ /* two\n  */\n}', '{\n  "a": {}, /* one */ /* two\n  */\n  "b": 1\n}'),
        ('{\n  "a": {}\n  // below\n}', '{\n  "a": {},\n  "b": 1\n  // below\n}'),
        ('{"a": {} // keep\n}', '{"a": {}, // keep\n  "b": 1\n}'),
        ('{"a": {},}', '{"a": {}, "b": 1,}'),
    ],
)
def test_comment_stays_with_its_member(text: str, after: str) -> None:
    assert jsonc.put(text, ("b",), 1) == after
    assert jsonc.remove(after, ("b",)) == text


def test_removal_does_not_comment_out_the_rest() -> None:
    assert jsonc.remove('{"a": 1, // keep\n "b": 2}', ("b",)) == '{"a": 1 // keep\n}'
    assert jsonc.remove('{// keep\n "b": 2}', ("b",)) == "{// keep\n}"
    assert jsonc.remove('{"a": "//x", "b": 2}', ("b",)) == '{"a": "//x"}'


@pytest.mark.parametrize("text", ["", "\n", "{}", "{}\n", "\ufeff{}", "{\n}\n", "// nothing yet\n"])
def test_an_empty_file_gets_its_first_member(text: str) -> None:
    changed = jsonc.put(text, ("mcpServers", "punchlist"), SERVER)
    assert jsonc.find(changed, ("mcpServers",)) == {"punchlist": SERVER}
    assert jsonc.put(changed, ("mcpServers", "punchlist"), SERVER) == changed


def test_an_item_joins_an_array_once() -> None:
    text = jsonc.append('{"hooks": {"Stop": [{"x": 1}]}}', ("hooks", "Stop"), {"y": 2})
    assert jsonc.find(text, ("hooks", "Stop")) == [{"x": 1}, {"y": 2}]
    assert jsonc.append(text, ("hooks", "Stop"), {"y": 2}) == text
    assert jsonc.remove_items(text, ("hooks", "Stop"), lambda item: "y" in item) == '{"hooks": {"Stop": [{"x": 1}]}}'
    assert jsonc.find(jsonc.append("", ("hooks", "Stop"), 1), ("hooks", "Stop")) == [1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n"a": }', 2),
        ('{"a": 1', 1),
        ('{"a": 1\n"b": 2}', 2),
        ('{"a": 1} x', 1),
        ('{\n\n"a": "x\n"}', 3),
        ("{a: 1}", 1),
        ('{"a" 1}', 1),
        ('{"a": 1,\n"a": 2}', 2),
        ("[" * 200, 1),
        ('{"a": 01}', 1),
        ('{"a": NaN}', 1),
        ("{,}", 1),
    ],
)
def test_parse_error_has_line(text: str, line: int) -> None:
    with pytest.raises(jsonc.JsoncError) as caught:
        jsonc.parse(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ['{"a": []}', '{"a": "x"}', "[]", "3"])
def test_put_into_other_type_is_rejected(text: str) -> None:
    with pytest.raises(jsonc.JsoncError, match="expected an object"):
        jsonc.put(text, ("a", "b"), 1)


def test_remove_undoes_put() -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)

    def value(depth: int) -> Any:
        kind = chance.randrange(4 if depth < 3 else 2)
        if kind > 1:
            count = chance.randrange(4)
            if kind == 2:
                return [value(depth + 1) for _ in range(count)]
            return {f"k{n}": value(depth + 1) for n in range(count)}
        return chance.choice([1, -2.5, True, None, "x", 'q"\\\n', "é"])

    def space() -> str:
        return chance.choice(["", " ", "\n", "\n  ", " // c, }\n", "/* , ] */"])

    def text(node: Any) -> str:
        if isinstance(node, dict):
            parts = [f"{space()}{json.dumps(key)}{space()}:{space()}{text(one)}{space()}" for key, one in node.items()]  # pyright: ignore[reportUnknownVariableType]
            return "{" + ",".join(parts) + (chance.choice(["", ","]) if parts else space()) + "}"
        if isinstance(node, list):
            parts = [f"{space()}{text(one)}{space()}" for one in node]  # pyright: ignore[reportUnknownVariableType]
            return "[" + ",".join(parts) + "]"
        return json.dumps(node)

    for _ in range(300):
        inside = {"x": value(0)}
        whole: dict[str, Any] = {"first": 1, "o": inside, **{f"m{n}": value(0) for n in range(chance.randrange(3))}}
        before = space() + text(whole) + space()
        assert jsonc.parse(before).value == whole, f"seed {seed}: {before!r}"
        after = jsonc.put(before, ("o", "new"), SERVER)
        assert jsonc.parse(after).value == {**whole, "o": {**inside, "new": SERVER}}, f"seed {seed}: {before!r}"
        assert jsonc.remove(after, ("o", "new")) == before, f"seed {seed}: {before!r}"
