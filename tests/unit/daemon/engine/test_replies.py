from punchlist_schemas.errors import Rejection
from punchlistd.engine.replies import build_reply


def test_reply_without_memory_is_rejected_alone() -> None:
    assert build_reply(lambda: b"short") == b"short"
    refused = build_reply(lambda: b"long" * (1 << 60))
    assert isinstance(refused, Rejection) and refused.kind == "limit_exceeded"
