import json
from typing import Any

import pytest

from punchlist_testing.optional import require_package

require_package("mcp")


async def read(host: Any, uri: str) -> Any:
    return json.loads((await host.session.read_resource(uri)).contents[0].text)


async def test_a_list_and_its_events_can_be_read(connect: Any) -> None:
    async with connect() as host:
        await host.client.conversation("work").add("Copy")
        tasks = await read(host, "punchlist://work/tasks")
        assert [task["title"] for task in tasks["tasks"]] == ["Copy"]
        assert tasks["counts"]["pending"] == 1
        events = await read(host, "punchlist://work/events?after=1")
        assert [one["event"]["type"] for one in events["events"]] == ["TaskAdded"]
        assert events["next"] == tasks["seq"]


async def test_the_conversations_are_listed_with_their_templates(connect: Any) -> None:
    async with connect() as host:
        await host.client.conversation("work").add("Copy")
        listed = (await host.session.list_resources()).resources
        assert [one.uri for one in listed] == ["punchlist://work/tasks"]
        templates = (await host.session.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [
            "punchlist://{conversation}/tasks",
            "punchlist://{conversation}/events{?after}",
        ]


async def test_unknown_resource_is_rejected_with_its_address(connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect() as host:
        with pytest.raises(MCPError) as refused:
            await host.session.read_resource("punchlist://work/nothing")
        assert refused.value.error.code == -32602
        assert refused.value.error.data == {"uri": "punchlist://work/nothing"}


async def test_a_user_sees_no_list_of_another(connect: Any) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect("todo", user="ann") as host:
        await host.client.conversation("secret").open(user="eve")
        await host.client.conversation("secret").add("Hidden")
        assert (await host.session.list_resources()).resources == []
        with pytest.raises(MCPError, match="Unknown resource"):
            await host.session.read_resource("punchlist://secret/tasks")
        refused = await host.session.call_tool("list_todo_tasks", {}, meta={"punchlist/conversation": "secret"})
        assert refused.is_error
        assert "Hidden" not in refused.content[0].text
