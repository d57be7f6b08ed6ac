"""Selection of the model, and sources of its key."""

import os
import sys
from pathlib import Path

import pytest

from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.settings import BadSettings, ChatSettings, build_model, load_settings, read_key
from punchlist_apps.common.extras import build_install_command


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-env"}


def write_settings(env: dict[str, str], text: str) -> None:
    path = Path(env["HOME"], ".config", "punchlist", "chat.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_key_alone_selects_no_model(env: dict[str, str]) -> None:
    assert load_settings(env) == ChatSettings() and build_model(load_settings(env), env) is None


def test_settings_have_precedence(env: dict[str, str]) -> None:
    write_settings(env, 'model = "of-file"\nbase_url = "http://file/v1"\nfirst_s = 60\nmax_day_tokens = 7\n')
    env["OPENAI_MODEL"] = "of-env"
    settings = load_settings(env, model="of-option")
    assert (settings.model, settings.base_url, settings.first_s) == ("of-option", "http://file/v1", 60.0)
    assert load_settings(env).model == "of-env"
    assert isinstance(build_model(settings, env), Completions)


@pytest.mark.parametrize("text", ["model = 7", "modle = 'x'", "api = 'grpc'", "= =", "api_key = 'sk-never-here'"])
def test_invalid_settings_are_reported_without_key(env: dict[str, str], text: str) -> None:
    write_settings(env, text)
    with pytest.raises(BadSettings, match=r"chat\.toml"):
        load_settings(env)


def test_key_sources(env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    os.chmod(file, 0o600)
    assert read_key(ChatSettings(), env) == "sk-env"
    assert read_key(ChatSettings(key_command="printf sk-command"), env) == "sk-command"
    assert read_key(ChatSettings(key_file=str(file), key_command="false"), env) == "sk-file"
    (tmp_path / "chat-api-key").write_text("sk-systemd")
    env["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    assert read_key(ChatSettings(key_file=str(file)), env) == "sk-systemd"
    assert read_key(ChatSettings(), {}) == ""


@pytest.mark.parametrize("command", ["false", "no-such-command-here", "printf 'two words'", "printf ''", "'"])
def test_key_command_output_is_not_quoted(env: dict[str, str], command: str) -> None:
    with pytest.raises(BadSettings, match="key_command") as told:
        read_key(ChatSettings(key_command=command), env)
    assert "two words" not in str(told.value)


def test_readable_key_file_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file")
    os.chmod(file, 0o644)
    with pytest.raises(BadSettings, match="chmod 600"):
        read_key(ChatSettings(key_file=str(file)), {})
    with pytest.raises(BadSettings, match="No such file"):
        read_key(ChatSettings(key_file=str(tmp_path / "none")), {})


def test_missing_extra_names_install_command(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "punchlist_apps.chat.models.agents_sdk", raising=False)
    with pytest.raises(BadSettings) as refused:
        build_model(load_settings(env, model="m", api="responses"), env)
    assert str(refused.value).endswith(
        f"the extra chat-sdk, which is not installed: {build_install_command('chat-sdk')}"
    )
