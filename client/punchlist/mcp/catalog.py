"""Which tools a server offers, under which names."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from punchlist.tools.model import Tool
from punchlist.tools.registry import dialect


class Offer(NamedTuple):
    """A tool of a dialect under the name that clients call."""

    name: str
    dialect: str
    tool: Tool


def catalog(dialects: Iterable[str]) -> dict[str, Offer]:
    """The tools of some dialects by name. Where two dialects use a name, each gets its dialect's before it.

    Raises:
        Problem: There is no such dialect.
    """
    chosen = [dialect(name) for name in dict.fromkeys(dialects)]
    uses = Counter(tool.name for one in chosen for tool in one.tools)
    offers = [
        Offer(tool.name if uses[tool.name] == 1 else f"{one.name}_{tool.name}", one.name, tool)
        for one in chosen
        for tool in one.tools
    ]
    return {offer.name: offer for offer in offers}


def instructions(dialects: Iterable[str]) -> str:
    """What the host should tell the model."""
    parts = [dialect(name).prompt for name in dict.fromkeys(dialects)]
    return "\n\n".join(parts)
