"""Three machines over a faulty space: a few seeds of `make fault NAME=simulate_shared`."""

import pytest

from punchlist_faults import simulate_shared
from punchlist_faults.options import Options


@pytest.mark.parametrize("seed", range(4))
def test_machines_agree_under_simulated_faults(seed: int) -> None:
    figures = simulate_shared.run(Options(seed, 1))
    assert figures["answers"] > 50, figures
