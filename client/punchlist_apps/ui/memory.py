"""What `punch ui` keeps between its runs: theme, grouping, order and folded groups."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from punchlist_apps.ui.groups import GROUPINGS, SORTS, Arrangement
from punchlist_schemas.rendezvous import home
from punchlist_schemas.system.atomic import atomic_write

_MAX_FOLDED = 200
"""Maximum number of folded groups that are kept."""


class _Kept(msgspec.Struct):
    """The file's content."""

    theme: Literal["dark", "light", "auto"] = "auto"
    group: str = Arrangement().grouping
    sort: str = Arrangement().sort
    folded: Annotated[list[str], msgspec.Meta(max_length=_MAX_FOLDED)] = msgspec.field(
        default_factory=lambda: sorted(Arrangement().folded)
    )


def find_path(env: Mapping[str, str]) -> Path:
    """Return the file, which is below XDG_STATE_HOME. A relative XDG_STATE_HOME is ignored."""
    state = env.get("XDG_STATE_HOME", "")
    return Path(state if os.path.isabs(state) else os.path.join(home(env), ".local/state"), "punchlist", "ui.toml")


class Memory:
    """The kept values. A file that can't be read or understood is ignored, and replaced by the next save.

    Args:
        path: The file; None to keep nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        kept = _Kept()
        if path is not None:
            try:
                kept = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _Kept)
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError):
                pass
        self.theme = kept.theme
        group = kept.group if kept.group in GROUPINGS else GROUPINGS[0]
        self.arrangement = Arrangement(group, kept.sort if kept.sort in SORTS else "order", frozenset(kept.folded))

    def save(self) -> None:
        """Write the file. Errors are ignored, since the values also work without it."""
        if self.path is None:
            return
        how = self.arrangement
        values = {"theme": self.theme, "group": how.grouping, "sort": how.sort, "folded": sorted(how.folded)}
        values["folded"] = values["folded"][:_MAX_FOLDED]
        # TOML has neither surrogates nor an unescaped DEL.
        text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())
        text = text.replace("\x7f", "\\u007f")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(str(self.path), text.encode())
        except OSError:
            pass
