import sys
from pathlib import Path

import pytest

from punchlist.cli import extra

MODULES = ("mcp", "mcp_types", "uvicorn")


def test_the_extra_is_installed_when_all_that_it_brings_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in MODULES:
        (tmp_path / module).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert extra.is_installed()


@pytest.mark.parametrize("module", MODULES)
def test_the_extra_is_not_installed_when_a_part_of_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for other in MODULES:
        (tmp_path / other).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, module, None)
    assert not extra.is_installed()
