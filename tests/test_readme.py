"""The pages a newcomer types from: their commands exist and are understood."""

import re
import shlex
from pathlib import Path

import pytest

from punchlist_apps.cli.parsing.parser import parse

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "CONTRIBUTING.md"]


def commands(page: str) -> list[str]:
    """Lines of a page's shell blocks that call `punch`."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("punch ")]


TYPED = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("line", dict.fromkeys(line for page in TYPED for line in commands(page)))
def test_a_command_that_a_page_shows_is_understood(line: str) -> None:
    words = shlex.split(line.partition(" >")[0], comments=True)
    args = parse(words[1:])
    assert args.command is not None
    assert args.former == ""


@pytest.mark.parametrize("page", PAGES)
def test_a_make_target_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE))
    assert named
    assert named <= targets
