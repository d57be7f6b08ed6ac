"""Tools, resources and prompts that the conformance suites call by fixed names, mounted on our own server object."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def said(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text(words)])


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, words: str, kind: str = "text/plain") -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=kind, text=words)
    return types.EmbeddedResource(type="resource", resource=resource)


def content(*blocks: types.ContentBlock) -> Tool:
    async def tool(context: Context, params: types.CallToolRequestParams) -> Answer:
        return types.CallToolResult(content=list(blocks))

    return tool


async def fails(context: Context, params: types.CallToolRequestParams) -> Answer:
    words = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=[text(words)], is_error=True)


async def logs(context: Context, params: types.CallToolRequestParams) -> Answer:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        session: Any = context.session  # deprecated, but required by the older suite
        await session.send_log_message("info", words, related_request_id=context.request_id)
        await anyio.sleep(0.05)
    return said("logged")


async def progresses(context: Context, params: types.CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return said("done")


def needs(context: Context, **capabilities: Any) -> None:
    """Reject a client that hasn't declared the capabilities that the tool needs."""
    wanted = types.ClientCapabilities.model_validate(capabilities)
    if not context.session.check_client_capability(wanted):
        data = {"requiredCapabilities": capabilities}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client lacks a capability", data=data)


async def samples(context: Context, params: types.CallToolRequestParams) -> Answer:
    needs(context, sampling={})
    prompt = str((params.arguments or {}).get("prompt"))
    message = types.SamplingMessage(role="user", content=text(prompt))
    session: Any = context.session  # deprecated, but required by the older suite
    result = await session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return said(f"LLM response: {getattr(result.content, 'text', '')}")


async def missing(context: Context, params: types.CallToolRequestParams) -> Answer:
    needs(context, sampling={})
    return said("the client can sample")


def form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def asks(message: str, properties: dict[str, Any], said_as: str) -> Tool:
    async def tool(context: Context, params: types.CallToolRequestParams) -> Answer:
        needs(context, elicitation={})
        words = str((params.arguments or {}).get("message", message))
        result = await context.session.elicit_form(words, form(properties), related_request_id=context.request_id)
        return said(f"{said_as}: action={result.action}, content={json.dumps(result.content)}")

    return tool


def choice(*titled: str) -> list[dict[str, str]]:
    return [{"const": f"value{at}", "title": title} for at, title in enumerate(titled, 1)]


PERSON = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": choice("First Option", "Second Option", "Third Option")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": choice("First Choice", "Second Choice", "Third Choice")}},
}


def elicit(message: str, **properties: Any) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=message, requested_schema=form(properties))
    return types.ElicitRequest(params=params)


def sample(prompt: str, most: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


NAME = {"name": {"type": "string"}}
ASKED: dict[str, dict[str, Any]] = {
    "elicitation": {"user_name": elicit("What is your name?", **NAME)},
    "sampling": {"capital_question": sample("What is the capital of France?", 100)},
    "list_roots": {"client_roots": types.ListRootsRequest()},
    "request_state": {"confirm": elicit("Please confirm", ok={"type": "boolean"})},
    "tampered_state": {"confirm": elicit("Please confirm", ok={"type": "boolean"})},
    "multiple_inputs": {
        "user_name": elicit("What is your name?", **NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    },
    "capabilities": {
        "user_name": elicit("What is your name?", **NAME),
        "greeting": sample("Generate a greeting", 50),
    },
}
STATED = {"request_state", "tampered_state", "multiple_inputs"}
NEEDS: dict[type[Any], dict[str, Any]] = {
    types.ElicitRequest: {"elicitation": {}},
    types.CreateMessageRequest: {"sampling": {}},
    types.ListRootsRequest: {"roots": {}},
}


def allowed(context: Context, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the requests that this client has declared it can answer."""
    return {
        name: request
        for name, request in wanted.items()
        if context.session.check_client_capability(types.ClientCapabilities.model_validate(NEEDS[type(request)]))
    }


def requires(kind: str) -> Tool:
    async def tool(context: Context, params: types.CallToolRequestParams) -> Answer:
        wanted = allowed(context, ASKED[kind]) if kind == "capabilities" else ASKED[kind]
        for request in wanted.values():
            needs(context, **NEEDS[type(request)])
        given = params.input_responses or {}
        if not wanted.keys() <= given.keys() or (kind in STATED and params.request_state is None):
            return types.InputRequiredResult(input_requests=wanted, request_state=kind if kind in STATED else None)
        if kind in STATED and params.request_state != kind:
            raise MCPError(types.INVALID_PARAMS, "The state is not ours")
        answers = {name: getattr(answer, "content", answer) for name, answer in given.items()}
        name: Any = answers.get("user_name")
        if kind == "elicitation" and not (
            isinstance(name, dict) and isinstance(cast("dict[str, Any]", name).get("name"), str)
        ):
            return types.InputRequiredResult(input_requests=wanted)
        return said(f"Hello, {name['name']}!" if isinstance(name, dict) else f"state-ok: {sorted(answers)}")

    return tool


async def rounds(context: Context, params: types.CallToolRequestParams) -> Answer:
    given = params.input_responses or {}
    if params.request_state == "second" and "step2" in given:
        return said("Both answers are there.")
    if params.request_state == "first" and "step1" in given:
        asked: dict[str, Any] = {"step2": elicit("Step 2: What is your favorite color?", color={"type": "string"})}
        return types.InputRequiredResult(input_requests=asked, request_state="second")
    asked = {"step1": elicit("Step 1: What is your name?", **NAME)}
    return types.InputRequiredResult(input_requests=asked, request_state="first")


TOOLS: dict[str, Tool] = {
    "test_simple_text": content(text("This is a simple text response for testing.")),
    "test_image_content": content(image()),
    "test_audio_content": content(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": content(embedded("test://embedded-resource", "This is an embedded resource content.")),
    "test_multiple_content_types": content(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ),
    "test_error_handling": fails,
    "test_tool_with_logging": logs,
    "test_logging_tool": logs,
    "test_tool_with_progress": progresses,
    "test_sampling": samples,
    "test_missing_capability": missing,
    "test_elicitation": asks("Who are you?", PERSON, "User response"),
    "test_streaming_elicitation": progresses,
    "test_elicitation_sep1034_defaults": asks("Defaults", DEFAULTS, "Elicitation completed"),
    "test_elicitation_sep1330_enums": asks("Enums", ENUMS, "Elicitation completed"),
    "test_input_required_result_multi_round": rounds,
    **{f"test_input_required_result_{kind}": requires(kind) for kind in ASKED},
}
PARAMETERS = {"test_sampling": "prompt", "test_elicitation": "message"}

CONTENTS: dict[str, dict[str, str]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched"},
    "test://template/123/data": {
        "mimeType": "application/json",
        "text": '{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    },
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def prompt(params: types.GetPromptRequestParams) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    blocks: dict[str, list[types.ContentBlock]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            embedded(given.get("resourceUri", "test://none"), "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
        "test_input_required_result_prompt": [text(f"With {params.input_responses}")],
    }
    if params.name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
        asked = {"user_context": elicit("What context should the prompt use?", context={"type": "string"})}
        return types.InputRequiredResult(input_requests=dict(asked))
    messages = [types.PromptMessage(role="user", content=block) for block in blocks[params.name]]
    return types.GetPromptResult(messages=messages)


def tool(name: str) -> types.Tool:
    argument = PARAMETERS.get(name)
    schema: dict[str, Any] = form({argument: {"type": "string"}}) if argument else {"type": "object", "properties": {}}
    return types.Tool(name=name, description="Fixture of the conformance suite", input_schema=schema)


Ours = Callable[[Context, Any], Awaitable[Any]]


async def call_tool(ours: Ours, context: Context, params: types.CallToolRequestParams) -> Any:
    found = TOOLS.get(params.name)
    return await (found(context, params) if found else ours(context, params))


async def list_tools(ours: Ours, context: Context, params: Any) -> Any:
    listed: types.ListToolsResult = await ours(context, params)
    return listed.model_copy(update={"tools": [*listed.tools, *map(tool, TOOLS)]})


async def read(ours: Ours, context: Context, params: types.ReadResourceRequestParams) -> Any:
    found = CONTENTS.get(str(params.uri))
    if found is None:
        return await ours(context, params)
    return types.ReadResourceResult.model_validate({"contents": [{"uri": str(params.uri), **found}]})


async def list_resources(ours: Ours, context: Context, params: Any) -> Any:
    listed: types.ListResourcesResult = await ours(context, params)
    more = [
        types.Resource(uri=uri, name=uri, description="Fixture", mime_type=one["mimeType"])
        for uri, one in CONTENTS.items()
    ]
    return listed.model_copy(update={"resources": [*listed.resources, *more]})


async def get_prompt(ours: Ours, context: Context, params: types.GetPromptRequestParams) -> Any:
    return prompt(params) if params.name in PROMPTS else await ours(context, params)


async def list_prompts(ours: Ours, context: Context, params: Any) -> Any:
    listed: types.ListPromptsResult = await ours(context, params)
    more = [
        types.Prompt(
            name=name,
            description="Fixture",
            arguments=[types.PromptArgument(name=one, description="Argument", required=True) for one in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]
    return listed.model_copy(update={"prompts": [*listed.prompts, *more]})


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def set_level(context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


WRAPPED: dict[str, Callable[[Ours, Context, Any], Awaitable[Any]]] = {
    "tools/call": call_tool,
    "tools/list": list_tools,
    "resources/read": read,
    "resources/list": list_resources,
    "prompts/get": get_prompt,
    "prompts/list": list_prompts,
}


def mount(server: Server[Any]) -> None:
    """Make the server answer the suites' fixed names as well."""

    def wrap(method: str) -> None:
        entry = server.get_request_handler(method)
        assert entry is not None, method

        async def handler(context: Context, params: Any) -> Any:
            return await WRAPPED[method](entry.handler, context, params)

        server.add_request_handler(method, entry.params_type, handler)

    for method in WRAPPED:
        wrap(method)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
