"""The keys of `punch ui`: those of `keys.toml`, which all faces share, and over them a file of the user's own."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

FACE = "ui"
_KeyName = Annotated[str, msgspec.Meta(min_length=1)]
SHARED = Path(__file__).parents[1] / "keys.toml"

_SIGNS = {
    **{"down": "↓", "up": "↑", "enter": "⏎", "escape": "Esc", "space": "Space", "tab": "Tab"},
    **{"pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End"},
}


class BadKeys(ValueError):
    """A file of keys that can't be used; the message says why."""


class Key(NamedTuple):
    """One action: its keys, what it does in words, and the screens that know it."""

    name: str
    keys: tuple[str, ...]
    does: str
    screens: tuple[str, ...]
    group: str

    @property
    def shown(self) -> str:
        """Its keys as people write them."""
        return " ".join(sign(key) for key in self.keys)


class Keymap:
    """Which key does what.

    Args:
        keys: Every action of this face.

    Raises:
        BadKeys: One key stands for two actions of a screen.
    """

    def __init__(self, keys: list[Key]) -> None:
        self.keys = {row.name: row for row in keys}
        self._actions: dict[tuple[str, str], str] = {}
        for row in keys:
            for place in ((screen, key) for screen in row.screens for key in row.keys):
                if (other := self._actions.setdefault(place, row.name)) != row.name:
                    raise BadKeys(f"the key {place[1]!r} can't be both {other} and {row.name}")

    def action(self, screen: str, key: str) -> str | None:
        """The action of a key on a screen; None: it does nothing there."""
        return self._actions.get((screen, key))

    def hint(self, name: str) -> str:
        """The first key of an action, as people write it."""
        row = self.keys.get(name)
        return sign(row.keys[0]) if row and row.keys else ""


def sign(key: str) -> str:
    """A key as people write it: `Esc`, `^k`, `j`."""
    return _SIGNS.get(key, f"^{key[5:]}" if key.startswith("ctrl+") else key)


def load(own: Path | None = None) -> Keymap:
    """The shared keys, where `own` does not say otherwise: its lines are `start = "S"` or `down = ["n", "down"]`.

    Raises:
        BadKeys: The file can't be read, names no action of this face, or gives one key to two actions.
    """
    replaced = _own(own) if own is not None else {}
    taken = {key for given in replaced.values() for key in given}
    keys: list[Key] = []
    for group in tomllib.loads(SHARED.read_text("utf-8"))["group"]:
        for row in group["keys"]:
            if FACE in row.get("faces", (FACE,)):
                shared = tuple(key for key in row["keys"] if not (row.get("yields") and key in taken))
                given = replaced.pop(row["name"], shared)
                keys.append(Key(row["name"], given, row["does"], tuple(row["in"]), group["title"]))
    if replaced:
        name = next(iter(replaced))
        near = get_close_matches(name, [key.name for key in keys], n=1)
        raise BadKeys(f"{own}: there is no action {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
    return Keymap(keys)


def _own(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        found: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadKeys(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    keys: dict[str, tuple[str, ...]] = {}
    for name, value in found.items():
        try:
            keys[name] = msgspec.convert([value] if isinstance(value, str) else value, tuple[_KeyName, ...])
        except msgspec.ValidationError:
            raise BadKeys(f"{path}: {name} is a key or a list of keys") from None
    return keys
