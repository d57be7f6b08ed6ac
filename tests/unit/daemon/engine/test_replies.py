from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import build_reply


def test_an_answer_for_which_no_memory_is_left_is_refused_and_nothing_else() -> None:
    assert build_reply(lambda: b"short") == b"short"
    refused = build_reply(lambda: b"long" * (1 << 60))
    assert isinstance(refused, Rejection) and refused.kind == "limit_exceeded"
