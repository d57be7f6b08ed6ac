import re
from pathlib import Path

from punchlist_apps.cli.printing.exit_codes import MEANINGS

PAGE = Path(__file__).resolve().parents[6] / "docs" / "operating.md"


def test_the_page_documents_every_exit_code() -> None:
    table = PAGE.read_text("utf-8").split("| exit code | meaning |\n", 1)[1].split("\n\n", 1)[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == list(MEANINGS)
