from punchlist_schemas.errors import Rejection
from punchlistd.metrics import KEPT, Metrics


def test_metrics_start_at_zero() -> None:
    told = Metrics().durations()
    assert (told.count, told.p50_us, told.p99_us) == (0, 0, 0)


def test_durations_cover_the_last_commits() -> None:
    metrics = Metrics()
    for duration in range(10 * KEPT):
        metrics.record_commit(duration * 1000, 2)
    told = metrics.durations()
    assert (told.count, metrics.events) == (10 * KEPT, 20 * KEPT)
    assert (told.p50_us, told.p99_us) == (9 * KEPT + KEPT // 2, 9 * KEPT + KEPT * 99 // 100)


def test_calls_and_errors_are_counted() -> None:
    metrics = Metrics()
    metrics.count_answer(b"{}")
    metrics.count_answer(Rejection("not_found", "no"))
    for number in range(20):
        metrics.error(str(number))
    assert (metrics.calls, metrics.refused, list(metrics.errors)) == (2, 1, [str(number) for number in range(10, 20)])
