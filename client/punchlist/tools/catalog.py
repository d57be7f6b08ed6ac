"""Selects the tools that are offered to a model, and their names."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

from punchlist.tools import registry
from punchlist.tools.model import Dialect, Problem


def offered(dialects: str | Dialect | Iterable[str], only: Iterable[str] | None = None) -> tuple[Dialect, ...]:
    """Return the dialects with the offered tools, under the names that models call.

    A tool name used by several dialects gets its dialect's name as a prefix: `queue_add_task`.

    Args:
        dialects: A dialect, its name, or several names.
        only: Offered names of the tools to select. All by default.

    Raises:
        Problem: Unknown dialect, or no such tool in these dialects.
    """
    if isinstance(dialects, Dialect):
        selected = [dialects]
    else:
        requested = [dialects] if isinstance(dialects, str) else dialects
        selected = [registry.dialect(name) for name in dict.fromkeys(requested)]
    uses = Counter(tool.name for dialect in selected for tool in dialect.tools)
    names = {
        (dialect.name, tool.name): tool.name if uses[tool.name] == 1 else f"{dialect.name}_{tool.name}"
        for dialect in selected
        for tool in dialect.tools
    }
    allowed = set(names.values())
    if only is not None:
        allowed = _check_tool_names(only, [dialect.name for dialect in selected], list(names.values()))
    limited = [
        dialect.select_tools(
            {tool.name: name for tool in dialect.tools if (name := names[dialect.name, tool.name]) in allowed}
        )
        for dialect in selected
    ]
    return tuple(dialect for dialect in limited if dialect.tools)


def prompt(dialects: Iterable[Dialect]) -> str:
    """Return instructions for the tools of these dialects."""
    return "\n\n".join(dialect.prompt for dialect in dialects)


def _check_tool_names(only: Iterable[str], dialects: list[str], names: list[str]) -> set[str]:
    """Return the tool names in `only`.

    Raises:
        Problem: A name is unknown, or `only` is empty.
    """
    requested = list(dict.fromkeys(only))
    for name in requested:
        if name not in names:
            raise Problem(
                "unknown_tool", f"there is no tool {name[:60]!r} in {', '.join(dialects)}{_suggest(name, names)}"
            )
    if not requested:
        raise Problem("unknown_tool", f"name at least one tool; available: {', '.join(names)}")
    return set(requested)


def _suggest(name: str, names: list[str]) -> str:
    """Return a hint for an unknown tool: the dialects that contain it, similar names, or all names."""
    prefixed = [other for other in names if name and other.endswith(f"_{name}")]
    elsewhere = [dialect for dialect in registry.names() if registry.dialect(dialect).tool(name)]
    if not prefixed and elsewhere:
        return f": it is a tool of {' and '.join(elsewhere)}"
    folded = {other.lower(): other for other in names}
    close = prefixed or [folded[match] for match in get_close_matches(name.lower(), folded, n=1)]
    return f"; did you mean {' or '.join(close)}?" if close else f"; available: {', '.join(names)}"
