"""`punch agent tools`: print tool definitions and prompts for models."""

import json

import msgspec

from punchlist.tools import registry, schema
from punchlist.tools.budget import count_tokens, to_json
from punchlist.tools.catalog import offered
from punchlist.tools.model import Problem
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag, parse_names, value
from punchlist_apps.cli.printing.failure import UsageError

COMMANDS = {
    "tools": Usage(
        (
            Argument(
                ("dialect",),
                "the dialect: native, claude, checklist, queue, todo or todo-v1",
                {"metavar": "DIALECT", "nargs": "?"},
            ),
            choice(
                "--format",
                text="write the definitions for this API (default: mcp)",
                choices=("mcp", "openai", "responses", "anthropic", "python"),
                default="mcp",
            ),
            value("--tools", text="print only these tools", metavar="NAME,NAME", type=parse_names),
            flag("--prompt", text="print text for the model's prompt instead"),
        ),
        (
            "punch agent tools",
            "punch agent tools native --format anthropic",
            "punch agent tools queue --tools add_task,list_tasks,complete_task --prompt",
        ),
    ),
}


def run_tools(context: Context) -> int:
    args = context.args
    if args.dialect is None:
        return _show_overview(context)
    try:
        (dialect,) = offered(args.dialect, args.tools)
    except Problem as problem:
        raise UsageError(problem.text) from None
    if args.prompt:
        return context.answer({"dialect": dialect.name, "prompt": dialect.prompt}, [dialect.prompt])
    if args.format == "python":
        source = schema.render_python(dialect)
        return context.answer({"dialect": dialect.name, "python": source}, [source.rstrip()])
    definitions = schema.definitions(dialect, args.format)
    text = msgspec.json.format(json.dumps(definitions, ensure_ascii=False), indent=2)
    return context.answer(definitions, [text])


def _show_overview(context: Context) -> int:
    rows = [
        {
            "dialect": dialect.name,
            "summary": dialect.summary,
            "tools": [tool.name for tool in dialect.tools],
            "tokens": count_tokens(to_json(schema.definitions(dialect, "anthropic"))),
        }
        for dialect in map(registry.dialect, registry.names())
    ]
    lines = [f"{row['dialect']:<10} {row['tokens']:>5} tokens  {row['summary']}" for row in rows]
    return context.answer(
        rows,
        [*lines, "to print the definitions: punch agent tools DIALECT; to print text for the prompt: add --prompt"],
    )
