"""Browser settings that tests of the web page share."""

from collections.abc import Callable
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
