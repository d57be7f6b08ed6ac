from punchlist_schemas.errors import Rejection
from punchlistd.engine.meters import KEPT, Meters


def test_nothing_measured_is_all_zero() -> None:
    told = Meters().durations()
    assert (told.count, told.p50_us, told.p99_us) == (0, 0, 0)


def test_durations_are_those_of_the_last_commits() -> None:
    meters = Meters()
    for duration in range(10 * KEPT):
        meters.commit(duration * 1000, 2)
    told = meters.durations()
    assert (told.count, meters.events) == (10 * KEPT, 20 * KEPT)
    assert (told.p50_us, told.p99_us) == (9 * KEPT + KEPT // 2, 9 * KEPT + KEPT * 99 // 100)


def test_calls_and_refusals_are_counted_and_the_last_errors_kept() -> None:
    meters = Meters()
    meters.answered(b"{}")
    meters.answered(Rejection("not_found", "no"))
    for number in range(20):
        meters.error(str(number))
    assert (meters.calls, meters.refused, list(meters.errors)) == (2, 1, [str(number) for number in range(10, 20)])
