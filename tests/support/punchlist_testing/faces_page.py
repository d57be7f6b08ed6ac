"""Browser settings that tests of the web page share."""

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
    """Fail if axe-core finds a violation on a page, or if the page is wider than the window."""
    page.evaluate(AXE.read_text())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    results = page.evaluate("tags => axe.run({ runOnly: tags })", tags)
    violations = [(rule["id"], [node["html"][:160] for node in rule["nodes"][:3]]) for rule in results["violations"]]
    assert violations == []
    assert len(results["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal overflow"
