"""Runs the page's pure modules in Node."""

import json
import subprocess
from pathlib import Path
from typing import Any

from punchlist_testing.optional import NODE


def run_in_node(*calls: dict[str, Any]) -> list[Any]:
    """Call functions of the page's modules; return their results."""
    lines = "\n".join(json.dumps(call) for call in calls)
    program = [NODE, Path(__file__).with_suffix(".mjs")]
    done = subprocess.run(program, input=lines, text=True, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
