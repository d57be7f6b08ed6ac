"""The SQL of a space in PostgreSQL: minimal privileges, and no passwords."""

import re

from punchlist_apps.cli.installing.space_postgres import Login, build_sql, build_verifier, create_login

ANN, BOB, KIM = (create_login(name, role) for name, role in (("ann", "member"), ("bob", "reader"), ("kim", "keeper")))


def test_each_role_has_minimal_privileges() -> None:
    text = build_sql("team", [ANN, BOB, KIM])
    granted = dict(re.findall(r'GRANT ([A-Z, ]+) ON "punch-team".post TO "(\w+)"', text))
    assert granted == {"SELECT, INSERT": "ann", "SELECT": "bob", "SELECT, INSERT, DELETE": "kim"}
    assert "UPDATE" not in text and "SUPERUSER" not in text and "GRANT ALL" not in text
    assert "PRIMARY KEY (list, n)" in text


def test_the_sql_is_one_transaction() -> None:
    lines = build_sql("team", [ANN]).splitlines()
    statements = [line for line in lines if not line.startswith("--")]
    assert statements[0] == r"\set ON_ERROR_STOP on"
    assert (statements[1], statements[-1]) == ("BEGIN;", "COMMIT;")


def test_passwords_are_unique_and_only_in_creds() -> None:
    assert ANN.password != BOB.password and len(ANN.password) >= 32
    assert ANN.password not in build_sql("team", [ANN])
    assert f"db.example.org:*:punchlist:ann:{ANN.password}\n" in ANN.format_creds(["db.example.org"], "punchlist")
    assert build_verifier("one") != build_verifier("one"), "each password has its own salt"


def test_ipv6_addresses_are_escaped_in_creds() -> None:
    assert r"\:\:1:*:punchlist:ann:x" in Login("ann", "member", "x").format_creds(["::1"], "punchlist")
