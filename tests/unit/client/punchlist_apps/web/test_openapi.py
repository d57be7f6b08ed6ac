"""The OpenAPI document matches the routes and the method table."""

import re
from typing import Any

import msgspec

from punchlist_apps.web.openapi import build_document, encode_document
from punchlist_apps.web.routes import ROUTES
from punchlist_schemas.methods import METHODS


def find_references(text: str) -> set[str]:
    return set(re.findall(r'"\$ref":"#/([^"]+)"', text))


def resolve(document: Any, value: dict[str, Any]) -> Any:
    if "$ref" not in value:
        return value
    for step in value["$ref"].removeprefix("#/").split("/"):
        document = document[step]
    return document


def test_document_has_all_routes_and_valid_references() -> None:
    document = build_document()
    for row in ROUTES:
        operation = document["paths"][row.path][row.verb.lower()]
        assert str(row.status) in operation["responses"]
        parameters = [resolve(document, parameter) for parameter in operation["parameters"]]
        names = {(parameter["in"], parameter["name"]) for parameter in parameters}
        assert len(names) == len(parameters)
        in_path = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", row.path))
    operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(operations)) == len(operations)
    for reference in find_references(encode_document().decode()):
        resolve(document, {"$ref": f"#/{reference}"})


def test_body_requires_parameters_not_in_the_path() -> None:
    document = build_document()
    for row in ROUTES:
        if (body := document["paths"][row.path][row.verb.lower()].get("requestBody")) is None:
            continue
        schema = body["content"]["application/json"]["schema"]
        in_path = set(re.findall(r"\{(\w+)\}", row.path))
        params_types = [METHODS[name].params for name in (row.method, row.many) if name]
        for body_schema, params in zip(schema.get("anyOf", [schema]), dict.fromkeys(params_types), strict=True):
            needed = {field.encode_name for field in msgspec.structs.fields(params) if field.required}
            assert set(body_schema.get("required", ())) == needed - in_path, row
            assert {
                name for name, allowed in body_schema.get("properties", {}).items() if allowed is False
            } == in_path, row
            assert "required" not in resolve(document, body_schema), row


def test_shared_parameters_and_bodies_are_references() -> None:
    """Written out in full, the bodies and parameters made the document twice as long as its schemas."""
    document = build_document()
    assert len(msgspec.json.encode(document["paths"])) < len(msgspec.json.encode(document["components"]["schemas"]))
