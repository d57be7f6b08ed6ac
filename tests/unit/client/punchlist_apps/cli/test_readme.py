"""The commands in a page's code block work in order."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[5]


def parse_block(page: str, first: str) -> list[list[str]]:
    """Return the arguments of each `punch` line in the shell block that begins with `first`."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (text,) = (block for block in blocks if block.startswith(first))
    return [shlex.split(line, comments=True)[1:] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("page", "first", "tasks"),
    [
        ("README.md", "punch add", 0),
        ("docs/queue.md", "punch next", 4),
        ("docs/queue.md", "punch set", 0),
    ],
)
def test_blocks_of_pages_work(
    page: str, first: str, tasks: int, punch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.md").write_text("- [ ] one\n- [x] two\n", "utf-8")
    for number in range(tasks):
        punch("add", f"task {number}")
    for words in parse_block(page, first):
        outcome = punch(*words)
        assert outcome.code == 0, (words, outcome.err)
