"""Which model reads messages: by options, the environment, or `chat.toml`, in this order; none unless one is named.

A key is never an option: it comes from systemd's credentials, a file of mode 600, a command, or the environment, and
is only looked for when a model is named.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from punchlist_apps.chat.models.port import Model
from punchlist_schemas import rendezvous

CREDENTIAL = "chat-api-key"
"""Name of the key among systemd's credentials: `LoadCredentialEncrypted=chat-api-key:…`."""

_COMMAND_S = 20.0
_PRIVATE = 0o077


class BadSettings(Exception):
    """The settings can't be used; the text says which, and what would be right."""


class ChatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings in `chat.toml`.

    `max_turn_tokens` and `max_day_tokens` bound what a model may use in a turn and in a day of UTC: 0 is no bound.
    """

    model: str = ""
    base_url: str = ""
    api: Literal["chat", "sdk", "responses"] = "chat"
    key_file: str = ""
    key_command: str = ""
    connect_s: float = 3.0
    first_s: float = 15.0
    silent_s: float = 20.0
    turn_s: float = 90.0
    max_turn_tokens: int = 0
    max_day_tokens: int = 0


_ENV = {
    "model": ("PUNCHLIST_CHAT_MODEL", "OPENAI_MODEL"),
    "base_url": ("PUNCHLIST_CHAT_BASE_URL", "OPENAI_BASE_URL"),
    "api": ("PUNCHLIST_CHAT_API",),
    "key_file": ("PUNCHLIST_CHAT_KEY_FILE",),
    "key_command": ("PUNCHLIST_CHAT_KEY_COMMAND",),
}
_HOSTED = "https://api.openai.com/v1"


def settings_of(env: Mapping[str, str], **options: str | None) -> ChatSettings:
    """The settings: options that are given, then the environment, then the file.

    Raises:
        BadSettings: The file can't be read, or a value is wrong.
    """
    path = file_of(env)
    given: dict[str, Any] = {}
    try:
        if path.exists():
            import tomllib

            given = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadSettings(f"{path}: {error}") from None
    for name, variables in _ENV.items():
        found = next((env[one] for one in variables if env.get(one)), None)
        given |= {name: found} if found else {}
    given |= {name: value for name, value in options.items() if value}
    try:
        return msgspec.convert(given, ChatSettings, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"the settings of the chat ({path}, options, environment): {error}") from None


def file_of(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CONFIG_HOME") or os.path.join(rendezvous.home(env), ".config")
    return Path(home, "punchlist", "chat.toml")


def key_of(settings: ChatSettings, env: Mapping[str, str]) -> str:
    """The key for the model's server, empty if there is none.

    Raises:
        BadSettings: The file is readable by others or can't be read, or the command fails.
    """
    if directory := env.get("CREDENTIALS_DIRECTORY"):
        path = Path(directory, CREDENTIAL)
        if path.exists():
            return _read(path, private=False)
    if settings.key_file:
        return _read(Path(settings.key_file).expanduser(), private=True)
    if settings.key_command:
        return _printed(settings.key_command)
    return env.get("PUNCHLIST_CHAT_KEY") or env.get("OPENAI_API_KEY", "")


def _read(path: Path, *, private: bool) -> str:
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and mode & _PRIVATE:
                raise BadSettings(f"{path} holds a key and can be read by others: chmod 600 {path}")
            return _one_line(file.read(65_536), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _printed(command: str) -> str:
    """What a command prints; what it says is not repeated, since it may hold the key."""
    import shlex
    import subprocess

    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise BadSettings(f"key_command: {type(error).__name__} while it ran") from None
    if done.returncode:
        raise BadSettings(f"key_command ended with exit code {done.returncode}")
    return _one_line(done.stdout.decode(errors="replace"), "key_command")


def _one_line(text: str, where: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise BadSettings(f"{where} holds no key: one word on one line is expected")
    return key


def _check(url: str) -> None:
    """See that a base URL can be one.

    Raises:
        BadSettings: It can't.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if not is_one or not url.isprintable() or " " in url:
        raise BadSettings(f"base_url is {url!r}, and no URL of http or https such as http://127.0.0.1:11434/v1")


def model_of(settings: ChatSettings, env: Mapping[str, str]) -> Model | None:
    """The model that is named; None: the rules alone, and nothing leaves this machine.

    Raises:
        BadSettings: It can't be used.
    """
    if not settings.model:
        return None
    from punchlist_apps.chat.models.requests import Limits  # http and ssl, which the rules alone do not need

    url = settings.base_url or _HOSTED
    _check(url)
    key = key_of(settings, env)
    limits = Limits(settings.connect_s, settings.first_s, settings.silent_s)
    if settings.api == "chat":
        from punchlist_apps.chat.models.completions import Completions

        return Completions(settings.model, url, key, limits)
    try:
        from punchlist_apps.chat.models.agents_sdk import AgentsSdk
    except ImportError:
        from punchlist_apps.common.extras import build_install_command

        raise BadSettings(
            "api = sdk and responses need the extra chat-sdk, which is not installed: "
            f"{build_install_command('chat-sdk')}"
        ) from None
    return AgentsSdk(settings.model, url, key, limits, responses=settings.api == "responses")
