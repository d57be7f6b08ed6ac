"""The document says what is served."""

import re
from typing import Any

import msgspec

from punchlist_apps.web.openapi import build_document, encode_document
from punchlist_apps.web.routes import ROUTES
from punchlist_schemas.methods import METHODS


def references(text: str) -> set[str]:
    return set(re.findall(r'"\$ref":"#/([^"]+)"', text))


def resolved(document: Any, value: dict[str, Any]) -> Any:
    if "$ref" not in value:
        return value
    for step in value["$ref"].removeprefix("#/").split("/"):
        document = document[step]
    return document


def test_every_route_is_in_the_document_and_every_reference_leads_somewhere() -> None:
    document = build_document()
    for row in ROUTES:
        operation = document["paths"][row.path][row.verb.lower()]
        assert str(row.status) in operation["responses"]
        taken = [resolved(document, each) for each in operation["parameters"]]
        assert len({(each["in"], each["name"]) for each in taken}) == len(taken)
        placed = {each["name"] for each in taken if each["in"] == "path"}
        assert placed == set(re.findall(r"\{(\w+)\}", row.path))
    operations = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(operations)) == len(operations)
    for reference in references(encode_document().decode()):
        resolved(document, {"$ref": f"#/{reference}"})


def test_a_body_needs_what_the_call_needs_and_the_path_does_not_give() -> None:
    document = build_document()
    for row in ROUTES:
        if (body := document["paths"][row.path][row.verb.lower()].get("requestBody")) is None:
            continue
        schema = body["content"]["application/json"]["schema"]
        placed = set(re.findall(r"\{(\w+)\}", row.path))
        called = [METHODS[name].params for name in (row.method, row.many) if name]
        for each, params in zip(schema.get("anyOf", [schema]), dict.fromkeys(called), strict=True):
            needed = {field.encode_name for field in msgspec.structs.fields(params) if field.required}
            assert set(each.get("required", ())) == needed - placed, row
            assert {name for name, allowed in each.get("properties", {}).items() if allowed is False} == placed, row
            assert "required" not in resolved(document, each), row


def test_what_several_operations_share_is_written_once() -> None:
    """With each body and parameter written out the document was twice as long as its schemas."""
    document = build_document()
    assert len(msgspec.json.encode(document["paths"])) < len(msgspec.json.encode(document["components"]["schemas"]))
