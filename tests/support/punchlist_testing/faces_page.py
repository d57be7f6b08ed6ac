"""Browser settings and checks that tests of the web page share."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

AXE = Path(__file__).parents[3] / "build/faces/node_modules/axe-core/axe.min.js"

Open = Callable[..., Any]
"""Opens a page: `open_page(stage, hash, mode=…, scope=…)`."""

MODES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "phone": {
        "color_scheme": "light",
        "viewport": {"width": 393, "height": 851},
        "has_touch": True,
        "is_mobile": True,
        "device_scale_factor": 2,
    },
}


def assert_accessible(page: Any) -> None:
    """Check a page with axe-core, and that it doesn't scroll sideways."""
    page.evaluate(AXE.read_text())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    results = page.evaluate("tags => axe.run({ runOnly: tags })", tags)
    violations = [(rule["id"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in results["violations"]]
    assert violations == []
    assert len(results["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal overflow"


def choose(page: Any, command: str) -> None:
    """Run a command by its name in the palette."""
    page.keyboard.press("Control+k")
    page.locator("dialog.palette input:focus").wait_for()
    page.keyboard.type(f">{command}")
    page.locator("#found [role=option]", has_text=re.compile(command, re.IGNORECASE)).wait_for()
    page.keyboard.press("Enter")
