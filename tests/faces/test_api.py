"""Every call over HTTP, with what schemathesis makes of the document: none makes the server fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_testing.stage import Stage

EXAMPLES = os.environ.get("EXAMPLES", "10")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
"""What is looked at in each answer."""
HOOKS = """
import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_ms"), int):
        case.body["wait_ms"] = min(case.body["wait_ms"], 100)
"""
"""A claim may wait up to 24 hours; the claims that are made here soon give up."""


@pytest.mark.timeout(600)
def test_server_survives_schemathesis(planned: Stage, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "run", f"{planned.url}/api/v1/openapi.json", "--checks", CHECKS]
    command += ["--header", f"Authorization: Bearer {planned.secret}", "--max-examples", EXAMPLES]
    command += ["--exclude-path-regex", "feed|events", "--request-timeout", "10", "--no-color"]
    (tmp_path / "hooks.py").write_text(HOOKS)
    env = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stdout[-20_000:]
