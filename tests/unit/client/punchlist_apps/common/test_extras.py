import sys
import tomllib
from pathlib import Path

import pytest

from punchlist_apps.common import extras

MODULES = ("mcp", "mcp_types", "uvicorn")


def test_extra_with_all_modules_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in MODULES:
        (tmp_path / module).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert extras.is_installed()


@pytest.mark.parametrize("module", MODULES)
def test_extra_with_missing_module_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    for other in MODULES:
        (tmp_path / other).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, module, None)
    assert not extras.is_installed()


def installation(
    place: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, *, installer: str = "pip", receipt: str = ""
) -> None:
    """Make this Python appear to run in a tool's environment with the extra mcp only."""
    known = place / "punchlist-9.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: punchlist\nVersion: 9\n")
    (known / "INSTALLER").write_text(installer)
    if origin:
        (known / "direct_url.json").write_text(origin)
    if receipt:
        (place / receipt).touch()
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    monkeypatch.setattr(sys, "prefix", str(place))

    def is_installed(extra: str = "mcp") -> bool:
        return extra == "mcp"

    monkeypatch.setattr(extras, "is_installed", is_installed)


DIRECTORY = '{"url": "file:///a%20b/src", "dir_info": {}}'
EDITABLE = '{"url": "file:///src", "dir_info": {"editable": true}}'
WHEEL = '{"url": "file:///p-1.whl", "archive_info": {}}'
GIT = '{"url": "https://x/p.git", "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "f"}}'


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (DIRECTORY, "'/a b/src[ui]'"),
        (EDITABLE, "-e '/src[ui]'"),
        (WHEEL, "'/p-1.whl[ui]'"),
        (GIT, "'punchlist[ui] @ git+https://x/p.git@v1'"),
        (None, "'punchlist[ui]'"),
    ],
)
def test_pip_adds_an_extra_from_the_same_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, what: str
) -> None:
    installation(tmp_path, monkeypatch, origin)
    assert extras.build_install_command("ui") == f"{sys.executable} -m pip install {what}"


@pytest.mark.parametrize(
    ("receipt", "command"),
    [("uv-receipt.toml", "uv tool install"), ("pipx_metadata.json", "pipx install --force")],
    ids=["uv", "pipx"],
)
@pytest.mark.parametrize(
    ("origin", "what"),
    [
        (DIRECTORY, "'/a b/src[mcp,ui]'"),
        (EDITABLE, "--editable '/src[mcp,ui]'"),
        (WHEEL, "'/p-1.whl[mcp,ui]'"),
        (GIT, "'punchlist[mcp,ui] @ git+https://x/p.git@v1'"),
        (None, "'punchlist[mcp,ui]'"),
    ],
)
def test_uv_and_pipx_add_extra_and_keep_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str, command: str, origin: str | None, what: str
) -> None:
    installation(tmp_path, monkeypatch, origin, receipt=receipt)
    assert extras.build_install_command("ui") == f"{command} {what}"
    assert extras.build_install_command("mcp") == f"{command} {what}".replace(",ui", "")


def test_command_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    installation(tmp_path, monkeypatch, DIRECTORY, installer="uv")
    assert extras.build_install_command("ui") == f"uv pip install --python {sys.executable} '/a b/src[ui]'"
    (tmp_path / "punchlist-9.dist-info/INSTALLER").unlink()
    assert extras.build_install_command("ui") == "pipx install 'punchlist[mcp,ui]'"


@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        ("uv-receipt.toml", "uv tool install --reinstall '/a b/src[mcp]'"),
        ("pipx_metadata.json", "pipx install --force '/a b/src[mcp]'"),
        ("", f"{sys.executable} -m pip install --force-reinstall --no-deps '/a b/src'"),
    ],
    ids=["uv", "pipx", "pip"],
)
def test_reinstall_keeps_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str, command: str) -> None:
    installation(tmp_path, monkeypatch, DIRECTORY, receipt=receipt)
    assert extras.find_source_directory() == "/a b/src"
    assert extras.build_reinstall_command() == command


@pytest.mark.parametrize("origin", [WHEEL, GIT, None])
def test_unknown_source_directory_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None) -> None:
    installation(tmp_path, monkeypatch, origin)
    assert extras.find_source_directory() is None


def test_the_table_has_the_extras_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[5] / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras.MODULES) == set(project["optional-dependencies"]) - {"dev"}
