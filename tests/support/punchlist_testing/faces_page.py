"""What the tests of the page share: how it is looked at, and figures."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def write_figures(name: str, **figures: float) -> None:
    """Keep figures beside the targets, for docs/faces.md, and show them."""
    line = f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
    print(line)
    path = Path(os.environ.get("FIGURES", "build/faces/figures.txt"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(line + "\n")
