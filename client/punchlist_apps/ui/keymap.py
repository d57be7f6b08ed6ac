"""The keys of `punch ui`: those in `keys.toml`, which all interfaces share, overridden by the user's own file."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

FACE = "ui"
_KeyName = Annotated[str, msgspec.Meta(min_length=1)]
SHARED = Path(__file__).parents[1] / "keys.toml"

_KEY_LABELS = {
    **{"down": "↓", "up": "↑", "enter": "⏎", "escape": "Esc", "space": "Space", "tab": "Tab"},
    **{"pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End"},
}


class BadKeys(ValueError):
    """Invalid key file. The message is for the user."""


class Key(NamedTuple):
    """An action: its keys, its description, and the screens that offer it."""

    name: str
    keys: tuple[str, ...]
    does: str
    screens: tuple[str, ...]
    group: str

    @property
    def shown(self) -> str:
        """The keys in readable form."""
        return " ".join(format_key(key) for key in self.keys)


class Keymap:
    """The actions of the keys on each screen.

    Args:
        keys: All actions of this interface.

    Raises:
        BadKeys: A key has two actions on one screen.
    """

    def __init__(self, keys: list[Key]) -> None:
        self.keys = {row.name: row for row in keys}
        self._actions: dict[tuple[str, str], str] = {}
        for row in keys:
            for place in ((screen, key) for screen in row.screens for key in row.keys):
                if (other := self._actions.setdefault(place, row.name)) != row.name:
                    raise BadKeys(f"the key {place[1]!r} can't be both {other} and {row.name}")

    def find_action(self, screen: str, key: str) -> str | None:
        return self._actions.get((screen, key))

    def hint(self, name: str) -> str:
        """Return the first key of an action in readable form; empty if it has none."""
        row = self.keys.get(name)
        return format_key(row.keys[0]) if row and row.keys else ""


def format_key(key: str) -> str:
    """Return a key in readable form: `Esc`, `^k`, `j`."""
    return _KEY_LABELS.get(key, f"^{key[5:]}" if key.startswith("ctrl+") else key)


def load_keymap(own: Path | None = None) -> Keymap:
    """Load the shared keys. The file `own` overrides them in lines such as `start = "S"` or `down = ["n", "down"]`.

    Raises:
        BadKeys: The file can't be read, names an unknown action, or assigns a key to two actions.
    """
    overrides = _read_own_keys(own) if own is not None else {}
    own_keys = {key for keys in overrides.values() for key in keys}
    keys: list[Key] = []
    for group in tomllib.loads(SHARED.read_text("utf-8"))["group"]:
        for row in group["keys"]:
            if FACE in row.get("faces", (FACE,)):
                shared = tuple(key for key in row["keys"] if not (row.get("yields") and key in own_keys))
                assigned = overrides.pop(row["name"], shared)
                keys.append(Key(row["name"], assigned, row["does"], tuple(row["in"]), group["title"]))
    if overrides:
        name = next(iter(overrides))
        near = get_close_matches(name, [key.name for key in keys], n=1)
        raise BadKeys(f"{own}: unknown action {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
    return Keymap(keys)


def _read_own_keys(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        values: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadKeys(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    keys: dict[str, tuple[str, ...]] = {}
    for name, value in values.items():
        try:
            keys[name] = msgspec.convert([value] if isinstance(value, str) else value, tuple[_KeyName, ...])
        except msgspec.ValidationError:
            raise BadKeys(f"{path}: {name} must be a key or a list of keys") from None
    return keys
