"""Routes over HTTP, with a real server and a real daemon."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import msgspec

from punchlist_apps.common.http.problem import HTTP_ERRORS, STATUS, Problem
from punchlist_apps.web.routes import ROUTES, UNROUTED
from punchlist_schemas.errors import ERRORS
from punchlist_schemas.methods import METHODS
from punchlist_testing.web import Web, in_process, served

PLAN = "/api/v1/conversations/plan"


async def make_plan(web: Web, *titles: str, **settings: str) -> None:
    await web.ask("PUT", PLAN, {"title": "Plan", "settings": settings})
    await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": title} for title in titles]})


def test_every_method_has_a_route_or_reason() -> None:
    routed = {name for row in ROUTES for name in (row.method, row.many) if name}
    assert routed | set(UNROUTED) == set(METHODS)
    assert not routed & set(UNROUTED)
    for row in ROUTES:
        params = {field.encode_name for field in msgspec.structs.fields(METHODS[row.method].params)}
        assert set(re.findall(r"\{(\w+)\}", row.path)) <= params, row


def test_every_error_kind_has_a_status() -> None:
    assert set(STATUS) == set(ERRORS)
    assert not set(HTTP_ERRORS) & set(ERRORS)
    for kind in (*STATUS, *HTTP_ERRORS):
        status, headers, body = Problem(kind, "why").build_response()
        value = json.loads(body)
        assert (value["type"], value["status"], value["kind"]) == (f"urn:punchlist:{kind}", status, kind)
        assert dict(headers)[b"content-type"] == b"application/problem+json"
    assert Problem("limit_exceeded", facts={"limit": "frame_bytes"}).status == 413


async def test_list_lifecycle_over_http(web: Web) -> None:
    opened = await web.ask("PUT", PLAN, {"title": "Plan"})
    assert (opened.status, opened.value["created"]) == (200, True)
    added = await web.ask("POST", f"{PLAN}/tasks", {"title": "one"})
    assert (added.status, added.value["task"]["id"]) == (201, "1")
    many = await web.ask("POST", f"{PLAN}/tasks", {"tasks": [{"title": "two"}, {"title": "three"}]})
    assert [task["id"] for task in many.value["tasks"]] == ["2", "3"]
    listed = await web.ask("GET", f"{PLAN}/tasks?status=pending&status=failed&limit=2&offset=1&fields=title")
    assert listed.value["tasks"] == [{"id": "2", "title": "two"}, {"id": "3", "title": "three"}]
    assert (await web.ask("GET", f"{PLAN}/tasks?ready=true")).value["total"] == 3
    assert (await web.ask("PATCH", f"{PLAN}/tasks/2", {"title": "zwei"})).value["task"]["title"] == "zwei"
    done = await web.ask("POST", f"{PLAN}/tasks/2/status", {"status": "completed", "result_summary": "yes"})
    assert done.value["task"]["result_summary"] == "yes"
    assert (await web.ask("POST", f"{PLAN}/tasks/3/move", {"before": "1"})).status == 200
    assert (await web.ask("DELETE", f"{PLAN}/tasks/1")).value["deleted"] == ["1"]
    claimed = await web.ask("POST", f"{PLAN}/claim", {"owner": "ann", "keep": True})
    assert claimed.value["task"]["id"] == "3"
    assert (await web.ask("POST", f"{PLAN}/tasks/3/renew", {"owner": "ann"})).status == 200
    assert (await web.ask("POST", f"{PLAN}/tasks/3/release", {"owner": "ann"})).status == 200
    preview = await web.ask("POST", f"{PLAN}/undo", {"preview": True})
    assert len(preview.value["undone"]) == 1
    assert (await web.ask("POST", f"{PLAN}/messages", {"role": "user", "content": "hi"})).status == 201
    assert (await web.ask("GET", f"{PLAN}/messages")).value["messages"][0]["content"] == "hi"
    assert (await web.ask("GET", f"{PLAN}/events?after=0&limit=2")).value["next"] == 2
    assert (await web.ask("PUT", f"{PLAN}/sessions/abc", {})).status == 200
    assert (await web.ask("GET", "/api/v1/conversations/abc")).value["conversation"]["conversation"] == "plan"
    assert (await web.ask("GET", "/api/v1/conversations?query=pla")).value["conversations"][0]["title"] == "Plan"
    refused = await web.ask("DELETE", PLAN)
    assert (refused.status, refused.value["kind"]) == (428, "confirmation_required")
    token = refused.value["token"]
    assert (await web.ask("GET", f"/api/v1/confirmations/{token}")).value["method"] == "conversation.delete"
    assert (await web.ask("DELETE", f"{PLAN}?confirm={token}")).value["deleted"] == "plan"
    assert (await web.ask("GET", "/api/v1/conversations")).value["conversations"] == []
    assert (await web.ask("GET", "/api/v1/status")).value["pid"] > 0


async def test_result_is_unchanged_and_cached_by_etag(web: Web) -> None:
    await make_plan(web, "one")
    listed = await web.ask("GET", f"{PLAN}/tasks")
    assert listed.headers["etag"] == '"2"'
    again = await web.ask("GET", f"{PLAN}/tasks", If_None_Match='"2"')
    assert (again.status, again.body) == (304, b"")
    assert (await web.ask("GET", f"{PLAN}/tasks", If_None_Match='"1", "9"')).status == 200
    head = await web.ask("HEAD", f"{PLAN}/tasks")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", '"2"')
    since = (await web.ask("GET", f"{PLAN}/tasks?since=1")).value
    assert [row["rank"] for row in since["rows"]] == ["a1"]


async def test_headers_carry_key_condition_and_actor(web: Web) -> None:
    await make_plan(web, "one")
    for _ in range(2):
        added = await web.ask("POST", f"{PLAN}/tasks", {"title": "two"}, Idempotency_Key="k1")
        assert added.value["task"]["id"] == "2"
    late = await web.ask("PATCH", f"{PLAN}/tasks/1", {"title": "x"}, If_Match='"2"')
    assert (late.status, late.value["actual"]) == (412, 3)
    assert (
        await web.ask("PATCH", f"{PLAN}/tasks/1", {"title": "x"}, If_Match='"3"', X_Punchlist_Actor="ann")
    ).status == 200
    events = (await web.ask("GET", f"{PLAN}/events?after=0")).value["events"]
    assert [event["actor"] for event in events] == ["punch web", "punch web", "punch web", "ann"]
    late = await web.ask("POST", f"{PLAN}/tasks/1/status", {"status": "failed"}, If_Match='"t2"')
    assert (late.status, late.value["task"], late.value["actual"]) == (412, "1", 4)
    assert (await web.ask("DELETE", f"{PLAN}/tasks/2", If_Match='"t3"')).status == 200
    none = await web.ask("POST", f"{PLAN}/tasks", {"title": "x"}, If_Match='"t3"')
    assert (none.status, none.value["kind"], none.value["field"]) == (422, "invalid_params", "If-Match")
    undone = await web.ask("POST", f"{PLAN}/undo", {}, X_Punchlist_Actor="bob")
    assert len(undone.value["undone"]) == 1, "X-Punchlist-Actor does not select whose calls are undone"


WRONG: list[tuple[str, str, Any, dict[str, str], int, str]] = [
    ("POST", "/tasks", b"title=x", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "content_type"),
    ("POST", "/tasks", b'{"title":"x"}', {"Content-Type": "text/plain"}, 415, "content_type"),
    ("POST", "/tasks", b"{", {}, 400, "parse_error"),
    ("POST", "/tasks", b'{"title":"\xff"}', {}, 400, "parse_error"),
    ("POST", "/tasks", b'{"title":"x","title":"y"}', {}, 400, "parse_error"),
    ("POST", "/tasks", b'{"title":"x","metadata":{"n":9007199254740993}}', {}, 400, "parse_error"),
    ("POST", "/tasks", [], {}, 400, "invalid_request"),
    ("POST", "/tasks", b"[" * 100_000, {}, 422, "limit_exceeded"),
    ("POST", "/tasks", {"title": "x", "prioritt": "low"}, {}, 422, "invalid_params"),
    ("POST", "/tasks", {"title": "x", "conversation": "other"}, {}, 422, "invalid_params"),
    ("POST", "/tasks?title=x", {"title": "x"}, {}, 422, "invalid_params"),
    ("POST", "/tasks", {"title": "x"}, {"If-Match": "zzz"}, 422, "invalid_params"),
    ("POST", "/tasks", {"title": "x"}, {"If-Match": '"99999999999999999999"'}, 422, "invalid_params"),
    ("POST", "/tasks", {"title": "x"}, {"Idempotency-Key": ""}, 422, "invalid_params"),
    ("POST", "/tasks", {"title": "x" * 600}, {}, 422, "invalid_params"),
    ("GET", "/tasks?limit=abc", None, {}, 422, "invalid_params"),
    ("GET", "/tasks?limit=1&limit=2", None, {}, 422, "invalid_params"),
    ("GET", "/tasks?at_version=-1", None, {}, 422, "invalid_params"),
    ("GET", "/tasks?at_version=9007199254740993", None, {}, 422, "invalid_params"),
    ("GET", "/tasks?since=99", None, {}, 410, "wrong_epoch"),
    ("GET", "/tasks/77", None, {}, 404, "not_found"),
    ("POST", "/tasks/1/status", {"status": "flying"}, {}, 422, "invalid_params"),
    ("POST", "/replace", {"tasks": [{"title": "x", "parent": "nobody"}]}, {}, 404, "not_found"),
    ("PUT", "/tasks", {}, {}, 405, "verb"),
    ("GET", "/nowhere", None, {}, 404, "no_such_path"),
    ("GET", "/..%2f..%2fetc%2fpasswd", None, {}, 404, "no_such_path"),
    ("GET", "/tasks%00", None, {}, 404, "no_such_path"),
]


async def test_bad_input_returns_a_problem(web: Web) -> None:
    for verb, path, body, headers, status, kind in WRONG:
        answer = await web.send(verb, PLAN + path, body, {**headers})
        assert answer.headers["content-type"] == "application/problem+json", (verb, path, answer)
        assert (answer.status, answer.value["kind"], answer.value["status"]) == (status, kind, status), answer.value
        assert answer.value["detail"]


async def test_405_lists_the_allowed_methods(web: Web) -> None:
    refused = await web.ask("PUT", f"{PLAN}/tasks", {})
    assert set(refused.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD", "POST", "DELETE"}


async def test_bad_list_name_is_explained(web: Web) -> None:
    refused = await web.ask("GET", "/api/v1/conversations/a%20b/tasks")
    assert (refused.status, refused.value["field"]) == (422, "conversation")


async def test_large_body_is_rejected_while_reading(web: Web) -> None:
    for length in (None, str(2 << 20)):
        headers: dict[str, str | None] = {"Content-Type": "application/json", "Content-Length": length}
        if length is None:
            headers["Transfer-Encoding"] = "chunked"
        body = b'{"title":"' + b"x" * (2 << 20)
        if length is None:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        refused = await web.send("POST", f"{PLAN}/tasks", body, headers)
        assert (refused.status, refused.value["kind"]) == (413, "too_large")


async def test_bad_call_leaves_other_calls_alone(web: Web) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(web.ask, "POST", f"{PLAN}/tasks", b'{"title":"x","metadata":{"n":9007199254740993}}')
            group.start_soon(assert_served, web)


async def assert_served(web: Web) -> None:
    assert (await web.ask("GET", f"{PLAN}/tasks")).status == 200


async def test_absent_daemon_returns_503_with_retry_after(tmp_path: Path) -> None:
    async with served(tmp_path, timeout_s=0.1) as web:
        in_process(web).app.stop()
        for path in ("/api/v1/conversations", "/api/v1/feed?board=1"):
            refused = await web.ask("GET", path)
            assert (refused.status, refused.headers["retry-after"]) == (503, "1"), path
            assert refused.value["kind"] in ("daemon_unavailable", "shutting_down")
