import os
import random
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_of_many_starters_exactly_one_survives_and_all_clients_are_served() -> None:
    seed = random.randrange(1 << 32)
    command = [sys.executable, str(Path(__file__).with_name("race.py"))]
    ended = subprocess.run(
        [*command, "--starters", "4", "--rounds", "4", "--seed", str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 0, f"seed {seed}\n{ended.stderr}"
    assert "exactly one survivor in 4 of 4 rounds" in ended.stdout
