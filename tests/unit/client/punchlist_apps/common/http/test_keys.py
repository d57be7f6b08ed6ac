"""Tickets are valid for one use and one minute, sessions store their rights, and a new secret ends all sessions."""

import base64
import json
import os
from pathlib import Path

import pytest

from punchlist_apps.common.http import keys as module
from punchlist_apps.common.http.keys import EVERYTHING, Keys, Scope
from punchlist_apps.common.http.secret_file import SecretFile


@pytest.fixture
def secret(tmp_path: Path) -> SecretFile:
    return SecretFile(str(tmp_path / "web.token"))


@pytest.fixture
def keys(secret: SecretFile, tmp_path: Path) -> Keys:
    return Keys(secret, tmp_path / "used")


def test_ticket_is_redeemed_by_one_process(keys: Keys, secret: SecretFile, tmp_path: Path) -> None:
    scope = Scope("ro", "plan", "ann")
    ticket = keys.issue_ticket(scope, 60)
    other = Keys(secret, tmp_path / "used")
    session = keys.redeem(ticket)
    assert session is not None and session.scope == scope
    assert keys.read_scope(session.token.encode()) == scope
    assert keys.redeem(ticket) is None
    assert other.redeem(ticket) is None
    assert keys.explain_failure(ticket) == "ticket_used"


def test_tickets_and_sessions_are_not_interchangeable(keys: Keys) -> None:
    session = keys.redeem(keys.issue_ticket())
    assert session is not None
    assert keys.read_scope(keys.issue_ticket().encode()) is None
    assert keys.redeem(session.token) is None


def test_tickets_and_sessions_expire(keys: Keys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = module.time.time()
    late, session = keys.issue_ticket(), keys.redeem(keys.issue_ticket(session_s=100))
    assert session is not None and abs(session.expires_at - (now + 100) * 1000) < 5_000
    monkeypatch.setattr(module.time, "time", lambda: now + module.TICKET_S + 1)
    assert keys.redeem(late) is None
    assert keys.explain_failure(late) == "ticket_late"
    assert keys.explain_failure(session.token) == "ticket_unknown"
    assert keys.read_scope(session.token.encode()) == EVERYTHING
    monkeypatch.setattr(module.time, "time", lambda: now + 3 * module.TICKET_S)
    assert keys.read_scope(session.token.encode()) is None


def test_link_is_redeemed_once_despite_clock_changes(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "MAX_REDEEMED", 4)
    now, ticket = module.time.time(), keys.issue_ticket()
    assert keys.redeem(ticket) is not None
    for later in range(400, 1_000, 100):
        monkeypatch.setattr(module.time, "time", lambda later=later: now + later)
        assert keys.redeem(keys.issue_ticket()) is not None, "newer links are accepted"
    assert len(os.listdir(tmp_path / "used")) == 4
    monkeypatch.setattr(module.time, "time", lambda: now)
    assert keys.redeem(ticket) is None


def test_clock_set_back_does_not_prolong_tokens(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    session, ticket = keys.redeem(keys.issue_ticket(session_s=100)), keys.issue_ticket()
    assert session is not None
    now, up = module.time.time(), module.time.clock_gettime(module.time.CLOCK_MONOTONIC)
    monkeypatch.setattr(module.time, "time", lambda: now - 86_400)
    assert keys.read_scope(session.token.encode()) == EVERYTHING
    monkeypatch.setattr(module, "get_uptime_s", lambda: up + 86_400)
    assert keys.read_scope(session.token.encode()) is None and keys.redeem(ticket) is None


def test_tokens_of_other_secrets_are_rejected(keys: Keys, tmp_path: Path) -> None:
    session = keys.redeem(keys.issue_ticket(Scope("ro")))
    assert session is not None
    body, _, signature = session.token.partition(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims[3]["mode"] = "rw"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    strangers = Keys(SecretFile(str(tmp_path / "other.token")), tmp_path / "used")
    for wrong in (
        "",
        ".",
        "x",
        body,
        f"{body}.",
        f".{signature}",
        f"{forged}.{signature}",
        f"{body}.{signature}=",
        "é.é",
    ):
        assert keys.read_scope(wrong.encode()) is None, wrong
        assert keys.redeem(wrong) is None
    assert keys.read_scope(b"\xff\xfe.\x00") is None
    assert strangers.read_scope(session.token.encode()) is None
    assert strangers.redeem(keys.issue_ticket()) is None


def test_a_new_secret_ends_all_links_and_sessions(keys: Keys, secret: SecretFile, tmp_path: Path) -> None:
    session, ticket, old = keys.redeem(keys.issue_ticket()), keys.issue_ticket(), secret.value
    assert session is not None
    SecretFile(str(tmp_path / "web.token")).rotate()
    assert secret.value != old
    assert (
        keys.read_scope(session.token.encode()) is None and keys.redeem(ticket) is None and keys.read_scope(old) is None
    )
    assert keys.read_scope(secret.value) == EVERYTHING
    assert (tmp_path / "web.token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spoil", ["readable", "gone", "empty"])
def test_exposed_or_missing_secret_rejects_all_tokens(
    keys: Keys, secret: SecretFile, tmp_path: Path, spoil: str
) -> None:
    session, file = keys.redeem(keys.issue_ticket()), tmp_path / "web.token"
    assert session is not None
    if spoil == "readable":
        file.chmod(0o640)
    elif spoil == "gone":
        file.unlink()
    else:
        file.write_text("")
    assert secret.value == b"" and not secret.matches(b"")
    assert keys.read_scope(session.token.encode()) is None and keys.read_scope(b"") is None
    assert keys.redeem(keys.issue_ticket()) is None
