import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def temporary(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of demos are made."""
    folder = home / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
