from importlib.util import find_spec
from typing import Any

import pytest


def test_an_unknown_dialect_is_a_usage_error(run: Any) -> None:
    told = run("mcp", "--dialect", "klingon")
    assert told.code == 2
    assert "there are: native" in told.err


@pytest.mark.skipif(find_spec("mcp") is not None, reason="the MCP SDK is installed")
def test_without_the_sdk_it_says_what_to_install(run: Any) -> None:
    told = run("mcp")
    assert told.code == 2
    assert "pip install 'punchlist[mcp]'" in told.err
