"""The pages a newcomer types from: their commands exist and are understood."""

import re
import shlex
from pathlib import Path

import pytest

from punchlist.cli.parser import parse

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md"]


def commands(page: str) -> list[str]:
    """Lines of a page's shell blocks that call `punch`."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("punch ")]


@pytest.mark.parametrize("line", commands("README.md"))
def test_a_command_in_the_readme_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert parse(words[1:]).command == words[1]


@pytest.mark.parametrize("page", PAGES)
def test_a_make_target_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE))
    assert named
    assert named <= targets
