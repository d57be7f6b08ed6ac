import json
from typing import Any

import pytest

from punchlist_schemas import discover
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS, NOTIFICATIONS

DOCUMENT: dict[str, Any] = json.loads(discover.encode_openrpc())
BY_NAME = {method["name"]: method for method in DOCUMENT["methods"]}


def test_every_method_is_documented_in_the_order_of_the_table() -> None:
    assert list(BY_NAME) == list(METHODS)
    assert all(method["summary"] and method["description"] for method in DOCUMENT["methods"])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_tells_all_its_params_and_which_are_required(name: str) -> None:
    told = BY_NAME[name]["params"]
    assert {param["name"] for param in told} == set(METHODS[name].params.__struct_encode_fields__)
    required = [param["required"] for param in told]
    assert required == sorted(required, reverse=True)
    assert BY_NAME[name]["paramStructure"] == "by-name"


def test_required_is_what_the_decoder_insists_on() -> None:
    required = {param["name"] for param in BY_NAME["task.add"]["params"] if param["required"]}
    assert required == {"conversation", "title"}


def test_every_reference_leads_somewhere() -> None:
    text = discover.encode_openrpc().decode()
    references = {part.split('"')[1] for part in text.split('"$ref":')[1:]}
    assert references <= {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}


def test_errors_limits_and_notifications_are_told() -> None:
    assert {row["kind"]: row["code"] for row in DOCUMENT["x-errors"]} == {e.kind: e.code for e in ERRORS.values()}
    assert DOCUMENT["components"]["errors"].keys() == ERRORS.keys()
    assert DOCUMENT["x-limits"]["frame_bytes"] == 1 << 20
    assert [push["name"] for push in DOCUMENT["x-notifications"]] == list(NOTIFICATIONS)
