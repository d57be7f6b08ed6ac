"""Eight host sessions over MCP, in two repositories and a worktree, and for three users. SIZE is the number of
calls."""

from punchlist_faults.options import Figures, Options
from punchlist_faults.rows import run_tests


def run(options: Options) -> Figures:
    run_tests("tests/unit/client/punchlist_apps/mcp/test_journey.py", SEED=str(options.seed), SIZE=str(options.size))
    return {"calls": options.size}
