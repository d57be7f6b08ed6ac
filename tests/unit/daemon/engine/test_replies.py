from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import made


def test_an_answer_for_which_no_memory_is_left_is_refused_and_nothing_else() -> None:
    assert made(lambda: b"short") == b"short"
    refused = made(lambda: b"long" * (1 << 60))
    assert isinstance(refused, Rejection) and refused.kind == "limit_exceeded"
