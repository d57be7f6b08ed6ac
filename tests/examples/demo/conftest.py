import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from punchlist_apps.common.terminal.style import Style
from punchlist_demo.cast import Cast
from punchlist_demo.home import Home
from punchlist_demo.stage import Stage


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the homes of demos."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)
    return folder


@pytest.fixture
def home(temporary: Path) -> Generator[Home]:
    assert temporary.is_dir()
    with Home() as home:
        yield home


@pytest.fixture
def cast(home: Home) -> Cast:
    return Cast(home, Stage(Style()))
