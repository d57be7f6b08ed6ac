"""Settings of the model that reads messages, from options, the environment and `chat.toml`, in this order.

No model is used unless one is named. The API key can't be passed as an option. It comes from systemd's credentials, a
file with mode 600, a command, or the environment, and is read only if a model is named.
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
"""Name of the systemd credential with the API key, as in `LoadCredentialEncrypted=chat-api-key:…`."""

_COMMAND_S = 20.0
_OTHERS = 0o077
"""Permission bits for the group and other users."""


class BadSettings(Exception):
    """Invalid settings; the message is for the user."""


class ChatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings in `chat.toml`.

    Attributes:
        first_s: Seconds to wait for the first byte of a response.
        silent_s: Seconds to wait between chunks of a response.
        max_turn_tokens: Upper limit for one turn; 0 for no limit.
        max_day_tokens: Upper limit for one UTC day; 0 for no limit.
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


def load_settings(env: Mapping[str, str], **options: str | None) -> ChatSettings:
    """Return the settings from options, then the environment, then the file.

    Raises:
        BadSettings: The file can't be read, or a value is invalid.
    """
    path = settings_path(env)
    values: dict[str, Any] = {}
    try:
        if path.exists():
            import tomllib

            values = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadSettings(f"{path}: {error}") from None
    for name, variables in _ENV.items():
        value = next((env[variable] for variable in variables if env.get(variable)), None)
        values |= {name: value} if value else {}
    values |= {name: value for name, value in options.items() if value}
    try:
        return msgspec.convert(values, ChatSettings, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"settings of the chat ({path}, options, environment): {error}") from None


def settings_path(env: Mapping[str, str]) -> Path:
    home = env.get("XDG_CONFIG_HOME") or os.path.join(rendezvous.home(env), ".config")
    return Path(home, "punchlist", "chat.toml")


def read_key(settings: ChatSettings, env: Mapping[str, str]) -> str:
    """Return the API key for the model's server; empty if none is configured.

    Raises:
        BadSettings: The file can't be read or is readable by other users, or the command fails.
    """
    if directory := env.get("CREDENTIALS_DIRECTORY"):
        path = Path(directory, CREDENTIAL)
        if path.exists():
            return _read_key_file(path, private=False)
    if settings.key_file:
        return _read_key_file(Path(settings.key_file).expanduser(), private=True)
    if settings.key_command:
        return _run_key_command(settings.key_command)
    return env.get("PUNCHLIST_CHAT_KEY") or env.get("OPENAI_API_KEY", "")


def _read_key_file(path: Path, *, private: bool) -> str:
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and mode & _OTHERS:
                raise BadSettings(f"{path} contains a key and is readable by other users; run: chmod 600 {path}")
            return _parse_key(file.read(65_536), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _run_key_command(command: str) -> str:
    """Return the key that a command prints. Errors don't quote the output, since it may contain the key."""
    import shlex
    import subprocess

    try:
        process = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise BadSettings(f"key_command: {type(error).__name__} while it ran") from None
    if process.returncode:
        raise BadSettings(f"key_command ended with exit code {process.returncode}")
    return _parse_key(process.stdout.decode(errors="replace"), "key_command")


def _parse_key(text: str, where: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise BadSettings(f"{where} contains no key: expected one word on one line")
    return key


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid or not url.isprintable() or " " in url:
        raise BadSettings(f"base_url {url!r} is not an http or https URL, such as http://127.0.0.1:11434/v1")


def build_model(settings: ChatSettings, env: Mapping[str, str]) -> Model | None:
    """Return the named model, or None if no model is named. In that case only the rules are used, and no data leaves
    this machine.

    Raises:
        BadSettings: The URL or the key is missing or invalid, or the extra isn't installed.
    """
    if not settings.model:
        return None
    from punchlist_apps.chat.models.requests import Limits  # Loads http and ssl, which the rules don't need.

    url = settings.base_url or _HOSTED
    _check_url(url)
    key = read_key(settings, env)
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
