from pathlib import Path

import pytest

from punchlist import tools
from punchlist.tools.document import document, main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dialects.md"


def test_the_page_is_what_the_definitions_say() -> None:
    assert PAGE.read_text("utf-8") == document(), "python -m punchlist.tools.document"


def test_a_stale_page_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "docs" / "page.md"
    assert main(["--check", "--out", str(page)]) == 1
    assert main(["--out", str(page)]) == 0
    assert main(["--check", "--out", str(page)]) == 0
    page.write_text(page.read_text("utf-8") + " ", "utf-8")
    assert main(["--check", "--out", str(page)]) == 1
    assert "stale" in capsys.readouterr().err


def test_every_tool_is_on_the_page() -> None:
    for name in tools.names():
        for tool in tools.dialect(name).tools:
            assert f"| {tool.name} | " in document()
