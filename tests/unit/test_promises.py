"""Each promise in RELIABILITY.md and SECURITY.md has tests, and they exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROMISES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests/promises.toml").read_text("utf-8"))


@pytest.mark.parametrize("page", ["RELIABILITY", "SECURITY"])
def test_each_promise_has_tests(page: str) -> None:
    numbers = re.findall(r"^(\d+)\. ", (ROOT / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    assert list(PROMISES[page]) == numbers == [str(number + 1) for number in range(len(numbers))]
    assert [number for number in numbers if not PROMISES[page][number]["tests"]] == []


def test_each_named_test_exists() -> None:
    entries = [entry for page in PROMISES.values() for entry in page.values()]
    named = {test.partition("::")[::2] for entry in entries for test in entry["tests"]}
    sources = {file: (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else "" for file, _ in named}
    assert [f"{file}::{test}" for file, test in sorted(named) if f"def {test}(" not in sources[file]] == []
    harnesses = {name for entry in entries for name in entry.get("harnesses", [])}
    assert harnesses <= {path.stem for path in (ROOT / "tests").rglob("*.py")}
