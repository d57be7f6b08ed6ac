"""Which model is asked, and where its key comes from."""

import os
import sys
from pathlib import Path

import pytest

from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.settings import BadSettings, ChatSettings, key_of, model_of, settings_of
from punchlist_apps.common.extras import build_install_command


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-env"}


def written(env: dict[str, str], text: str) -> None:
    path = Path(env["HOME"], ".config", "punchlist", "chat.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_key_that_lies_around_names_no_model(env: dict[str, str]) -> None:
    assert settings_of(env) == ChatSettings() and model_of(settings_of(env), env) is None


def test_an_option_goes_before_the_environment_and_that_before_the_file(env: dict[str, str]) -> None:
    written(env, 'model = "of-file"\nbase_url = "http://file/v1"\nfirst_s = 60\nmax_day_tokens = 7\n')
    env["OPENAI_MODEL"] = "of-env"
    settings = settings_of(env, model="of-option")
    assert (settings.model, settings.base_url, settings.first_s) == ("of-option", "http://file/v1", 60.0)
    assert settings_of(env).model == "of-env"
    assert isinstance(model_of(settings, env), Completions)


@pytest.mark.parametrize("text", ["model = 7", "modle = 'x'", "api = 'grpc'", "= =", "api_key = 'sk-never-here'"])
def test_settings_that_are_wrong_are_told_and_no_key_stands_in_them(env: dict[str, str], text: str) -> None:
    written(env, text)
    with pytest.raises(BadSettings, match=r"chat\.toml"):
        settings_of(env)


def test_a_key_comes_from_credentials_a_private_file_a_command_or_the_environment(
    env: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    os.chmod(file, 0o600)
    assert key_of(ChatSettings(), env) == "sk-env"
    assert key_of(ChatSettings(key_command="printf sk-command"), env) == "sk-command"
    assert key_of(ChatSettings(key_file=str(file), key_command="false"), env) == "sk-file"
    (tmp_path / "chat-api-key").write_text("sk-systemd")
    env["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    assert key_of(ChatSettings(key_file=str(file)), env) == "sk-systemd"
    assert key_of(ChatSettings(), {}) == ""


@pytest.mark.parametrize("command", ["false", "no-such-command-here", "printf 'two words'", "printf ''", "'"])
def test_a_command_that_gives_no_key_is_told_without_what_it_said(env: dict[str, str], command: str) -> None:
    with pytest.raises(BadSettings, match="key_command") as told:
        key_of(ChatSettings(key_command=command), env)
    assert "two words" not in str(told.value)


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file")
    os.chmod(file, 0o644)
    with pytest.raises(BadSettings, match="chmod 600"):
        key_of(ChatSettings(key_file=str(file)), {})
    with pytest.raises(BadSettings, match="No such file"):
        key_of(ChatSettings(key_file=str(tmp_path / "none")), {})


def test_a_format_whose_extra_is_not_installed_says_what_to_install(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "punchlist_apps.chat.models.agents_sdk", raising=False)
    with pytest.raises(BadSettings) as refused:
        model_of(settings_of(env, model="m", api="responses"), env)
    assert str(refused.value).endswith(
        f"the extra chat-sdk, which is not installed: {build_install_command('chat-sdk')}"
    )
