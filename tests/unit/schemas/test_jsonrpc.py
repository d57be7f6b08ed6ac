import json

import pytest

from punchlist_schemas import jsonrpc
from punchlist_schemas import params as p


def test_request_has_id_and_named_params() -> None:
    params = p.TaskEdit(conversation="c", task="1", title="a", owner=None)
    assert json.loads(jsonrpc.encode_request("id", "task.edit", params)) == {
        "jsonrpc": "2.0",
        "id": "id",
        "method": "task.edit",
        "params": {"conversation": "c", "task": "1", "title": "a", "owner": None},
    }


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"1",
        b"[]",
        b"{}",
        b"\xff",
        b'{"jsonrpc":"2.0","method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000,
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":1,"result":1}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"method":"a"}',
        b'{"jsonrpc":"2.0","result":1}',
    ],
)
def test_invalid_message_raises_value_error(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"message|response"):
        jsonrpc.decode_message(sent)
