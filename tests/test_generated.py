from pathlib import Path

import pytest

from punchlist import tools
from punchlist_packages.generate import document, main

ROOT = Path(__file__).resolve().parents[1]


def test_the_files_are_what_the_definitions_say() -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0, "make fmt"


def test_a_stale_file_is_named_and_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0
    capsys.readouterr()
    page = tmp_path / "docs" / "dialects.md"
    page.write_text(page.read_text("utf-8") + " ", "utf-8")
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"stale: {page}\n"


def test_every_tool_is_on_the_page() -> None:
    page = document()
    for name in tools.names():
        for tool in tools.dialect(name).tools:
            assert f"| {tool.name} | " in page
