import json
from typing import Any

import pytest

from punchlist_schemas import discover
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS, NOTIFICATIONS

DOCUMENT: dict[str, Any] = json.loads(discover.encode_openrpc())
BY_NAME = {method["name"]: method for method in DOCUMENT["methods"]}


def test_methods_are_documented_in_table_order() -> None:
    assert list(BY_NAME) == list(METHODS)
    assert all(method["summary"] and method["description"] for method in DOCUMENT["methods"])


@pytest.mark.parametrize("name", METHODS)
def test_methods_document_params_and_required(name: str) -> None:
    params = BY_NAME[name]["params"]
    assert {param["name"] for param in params} == set(METHODS[name].params.__struct_encode_fields__)
    required = [param["required"] for param in params]
    assert required == sorted(required, reverse=True)
    assert BY_NAME[name]["paramStructure"] == "by-name"


def test_required_params_match_the_decoder() -> None:
    required = {param["name"] for param in BY_NAME["task.add"]["params"] if param["required"]}
    assert required == {"conversation", "title"}


def test_references_are_defined() -> None:
    text = discover.encode_openrpc().decode()
    references = {part.split('"')[1] for part in text.split('"$ref":')[1:]}
    assert references <= {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}


def test_errors_limits_and_notifications_are_documented() -> None:
    assert {row["kind"]: row["code"] for row in DOCUMENT["x-errors"]} == {e.kind: e.code for e in ERRORS.values()}
    assert DOCUMENT["components"]["errors"].keys() == ERRORS.keys()
    assert DOCUMENT["x-limits"]["frame_bytes"] == 1 << 20
    assert [push["name"] for push in DOCUMENT["x-notifications"]] == list(NOTIFICATIONS)
