"""What RELIABILITY.md and SECURITY.md promise is held by something that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("RELIABILITY.md", "SECURITY.md")

_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_TARGET = re.compile(r"`make ([\w-]+)")
_PROMISE = re.compile(r"^\d+\. .*?(?=^\d+\. |^#|\Z)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = _NAMED.findall((ROOT / page).read_text("utf-8"))
    assert len(named) >= 10
    for file, test in named:
        assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), (
            f"{file}::{test}"
        )


@pytest.mark.parametrize("page", PAGES)
def test_every_target_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(_TARGET.findall((ROOT / page).read_text("utf-8"))) <= targets


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_names_what_holds_it(page: str) -> None:
    promises = _PROMISE.findall((ROOT / page).read_text("utf-8"))
    assert [promise.partition(".")[0] for promise in promises] == [str(each + 1) for each in range(len(promises))]
    for promise in promises:
        assert "Held by" in promise and _NAMED.search(promise.partition("Held by")[2]), promise
