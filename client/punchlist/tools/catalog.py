"""Which tools are offered to a model, of which dialects, and under which names."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

from punchlist.tools import registry
from punchlist.tools.model import Dialect, Problem


def offered(dialects: str | Dialect | Iterable[str], only: Iterable[str] | None = None) -> tuple[Dialect, ...]:
    """The dialects with the tools that are offered, each tool under the name that models call.

    Where two dialects use a name, each tool gets its dialect's name before its own: `queue_add_task`.

    Args:
        dialects: A dialect, its name, or several names.
        only: Names of tools, as they are offered without this argument: only these are. By default all of them.

    Raises:
        Problem: There is no such dialect, or no such tool in these dialects.
    """
    if isinstance(dialects, Dialect):
        chosen = [dialects]
    else:
        wanted = [dialects] if isinstance(dialects, str) else dialects
        chosen = [registry.dialect(name) for name in dict.fromkeys(wanted)]
    uses = Counter(tool.name for one in chosen for tool in one.tools)
    names = {
        (one.name, tool.name): tool.name if uses[tool.name] == 1 else f"{one.name}_{tool.name}"
        for one in chosen
        for tool in one.tools
    }
    kept = set(names.values()) if only is None else _known(only, [one.name for one in chosen], list(names.values()))
    narrowed = [
        one.offering({tool.name: name for tool in one.tools if (name := names[one.name, tool.name]) in kept})
        for one in chosen
    ]
    return tuple(one for one in narrowed if one.tools)


def prompt(dialects: Iterable[Dialect]) -> str:
    """What to tell a model about the tools that it is offered."""
    return "\n\n".join(one.prompt for one in dialects)


def _known(only: Iterable[str], dialects: list[str], names: list[str]) -> set[str]:
    """The names of tools, if there are such tools.

    Raises:
        Problem: One is unknown, or none is given.
    """
    wanted = list(dict.fromkeys(only))
    for name in wanted:
        if name not in names:
            raise Problem(
                "unknown_tool", f"there is no tool {name[:60]!r} in {', '.join(dialects)}{_hint(name, names)}"
            )
    if not wanted:
        raise Problem("unknown_tool", f"name at least one tool; there are: {', '.join(names)}")
    return set(wanted)


def _hint(name: str, names: list[str]) -> str:
    """Where a tool of this name is found, or which one is meant."""
    prefixed = [one for one in names if name and one.endswith(f"_{name}")]
    elsewhere = [one for one in registry.names() if registry.dialect(one).tool(name)]
    if not prefixed and elsewhere:
        return f": it is a tool of {' and '.join(elsewhere)}"
    folded = {one.lower(): one for one in names}
    close = prefixed or [folded[one] for one in get_close_matches(name.lower(), folded, n=1)]
    return f"; did you mean {' or '.join(close)}?" if close else f"; there are: {', '.join(names)}"
