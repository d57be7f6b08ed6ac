"""What a planted bug is, and the harnesses that notice several of them."""

from typing import NamedTuple

ACK = "tests/crash/test_harnesses.py::test_no_order_of_events_breaks_a_rule_in_virtual_time"
CRASH = "tests/crash/test_harnesses.py::test_what_was_acknowledged_survives_kill_9_once_and_whole"
POWER = (
    "tests/crash/test_harnesses.py::test_what_was_acknowledged_survives_a_power_cut_and_without_flushes_it_would_not"
)
SYSCALL = "tests/crash/test_harnesses.py::test_a_fault_at_one_system_call_breaks_no_promise"
DAMAGE = "tests/crash/test_harnesses.py::test_spoiled_bytes_are_noticed_and_the_rest_is_served"
STUCK = "tests/crash/test_harnesses.py::test_subscribers_that_stop_reading_cost_little"
FUZZ = "tests/crash/test_harnesses.py::test_no_input_gets_an_exception_out_of"


class Mutant(NamedTuple):
    """One bug: `old`, which stands in `file` once, becomes `new`. `guard` says what is gone then."""

    guard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
