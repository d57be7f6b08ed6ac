import sys
from pathlib import Path

import pytest

from punchlist.cli import mcp_extra

MODULES = ("mcp", "mcp_types", "uvicorn")


def test_the_extra_is_installed_when_all_that_it_brings_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in MODULES:
        (tmp_path / module).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert mcp_extra.is_installed()


@pytest.mark.parametrize("module", MODULES)
def test_the_extra_is_not_installed_when_a_part_of_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for other in MODULES:
        (tmp_path / other).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, module, None)
    assert not mcp_extra.is_installed()


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        ('{"url": "file:///a b/src", "dir_info": {}}', "'/a b/src[mcp]'"),
        ('{"url": "file:///src", "dir_info": {"editable": true}}', "-e '/src[mcp]'"),
        (None, "'punchlist[mcp]'"),
    ],
)
def test_the_command_that_installs_it_is_for_this_python_and_that_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, what: str
) -> None:
    known = tmp_path / "punchlist-9.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: punchlist\nVersion: 9\n")
    if origin:
        (known / "direct_url.json").write_text(origin)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert mcp_extra.install() == f"{sys.executable} -m pip install {what}"
