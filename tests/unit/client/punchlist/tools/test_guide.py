import re

import pytest

from punchlist import tools
from punchlist.tools.guide import find_tools, render_guide

ALL = [(name, tool.name) for name in tools.names() for tool in tools.dialect(name).tools]


def test_first_alternative_with_offered_tools_is_used() -> None:
    guide = "Call <{a} or {b}|{a}|{b}> first[, then {c}]."
    assert render_guide(guide, {"a": "a", "b": "B", "c": "c"}) == "Call a or B first, then c."
    assert render_guide(guide, {"b": "B"}) == "Call B first."


def test_line_without_its_tools_is_dropped() -> None:
    guide = "# Head\n- {a} it\n- <{a}|{b}> that\n- end[ with {a}]"
    assert render_guide(guide, {"c": "c"}) == "# Head\n- end"


@pytest.mark.parametrize(("name", "tool"), ALL, ids=[f"{name}.{tool}" for name, tool in ALL])
def test_instructions_name_only_offered_tools(name: str, tool: str) -> None:
    every = {one.name for one in tools.dialect(name).tools}
    for kept in (every - {tool}, {tool}):
        text = render_guide(tools.dialect(name).guide, {one: f"«{one}»" for one in kept})
        assert set(re.findall("«(.*?)»", text)) <= kept
        assert not re.search(r"[\[\]{}<>|]", text)
        plain = re.sub("«.*?»", "", text)
        assert not [one for one in every if "_" in one or one != one.lower() if re.search(rf"\b{one}\b", plain)]


@pytest.mark.parametrize("name", tools.names())
def test_guide_names_only_existing_tools(name: str) -> None:
    found = find_tools(tools.dialect(name).guide)
    assert found <= {tool.name for tool in tools.dialect(name).tools}
    assert found
