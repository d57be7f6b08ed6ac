import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlistd.process import logs

logger = logging.getLogger("punchlistd.test")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def journal_of(descriptor: int) -> dict[str, str]:
    status = os.fstat(descriptor)
    return {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}


def fail() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed")


def test_terminal_line_has_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info", "human", {})
    logger.info("serving %s", "/a")
    assert capsys.readouterr().err.endswith(" INFO punchlistd.test: serving /a\n")


def test_lower_levels_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("warning", "human", {})
    logger.info("quiet")
    logger.warning("loud")
    assert "quiet" not in (said := capsys.readouterr().err)
    assert "loud" in said


def test_json_line_includes_the_exception(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info", "json", {})
    logger.info("two\nlines")
    fail()
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"]) == ("info", "two\nlines")
    assert second["exception"].endswith("ValueError: broken")


def test_journal_line_has_its_priority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "stderr", "w+") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        logs.set_up("info", "human", journal_of(stderr.fileno()))
        logger.info("serving")
        fail()
    said = (tmp_path / "stderr").read_text().splitlines()
    assert said[0] == "<6>punchlistd.test: serving"
    assert len(said) > 3
    assert all(line.startswith("<3>") for line in said[1:])


@pytest.mark.parametrize("env", [{"JOURNAL_STREAM": "1:2"}, {"JOURNAL_STREAM": "junk"}, {}])
def test_another_stderr_is_not_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    with open(tmp_path / "stderr", "w+") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        logs.set_up("info", "human", env)
        logger.info("serving")
    assert not (tmp_path / "stderr").read_text().startswith("<")


def test_a_closed_stderr_is_not_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "stderr", "w") as stderr:
        env = journal_of(stderr.fileno())
        monkeypatch.setattr(sys, "stderr", stderr)
    logs.set_up("info", "human", env)
