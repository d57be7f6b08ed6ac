"""The commands of a page's block do what the page says when they are typed one after the other."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[5]


def block(page: str, first: str) -> list[list[str]]:
    """The words behind `punch` of each line of the shell block that begins with a line."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if block.startswith(first))
    return [shlex.split(line, comments=True)[1:] for line in found.splitlines()]


@pytest.mark.parametrize(
    ("page", "first", "tasks"),
    [
        ("README.md", "punch add", 0),
        ("docs/queue.md", "punch next", 4),
        ("docs/queue.md", "punch set", 0),
    ],
)
def test_a_block_can_be_typed_from_its_first_line_to_its_last(
    page: str, first: str, tasks: int, punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.md").write_text("- [ ] one\n- [x] two\n", "utf-8")
    for number in range(tasks):
        punch("add", f"task {number}")
    for words in block(page, first):
        done = punch(*words)
        assert done.code == 0, (words, done.err)
