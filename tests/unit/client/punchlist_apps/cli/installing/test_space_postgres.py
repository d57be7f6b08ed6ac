"""The SQL of a space in PostgreSQL: nobody gets more than his role needs, and no password stands in it."""

import re

from punchlist_apps.cli.installing.space_postgres import Login, build_sql, build_verifier, create_login

ANN, BOB, KIM = (create_login(name, role) for name, role in (("ann", "member"), ("bob", "reader"), ("kim", "keeper")))


def test_a_member_adds_a_reader_reads_a_keeper_also_deletes_and_nobody_changes() -> None:
    text = build_sql("team", [ANN, BOB, KIM])
    granted = dict(re.findall(r'GRANT ([A-Z, ]+) ON "punch-team".post TO "(\w+)"', text))
    assert granted == {"SELECT, INSERT": "ann", "SELECT": "bob", "SELECT, INSERT, DELETE": "kim"}
    assert "UPDATE" not in text and "SUPERUSER" not in text and "GRANT ALL" not in text
    assert "PRIMARY KEY (list, n)" in text


def test_it_is_one_transaction_that_stops_at_the_first_error() -> None:
    lines = build_sql("team", [ANN]).splitlines()
    statements = [line for line in lines if not line.startswith("--")]
    assert statements[0] == r"\set ON_ERROR_STOP on"
    assert (statements[1], statements[-1]) == ("BEGIN;", "COMMIT;")


def test_a_password_is_in_the_creds_file_alone_and_each_is_another_one() -> None:
    assert ANN.password != BOB.password and len(ANN.password) >= 32
    assert ANN.password not in build_sql("team", [ANN])
    assert f"db.example.org:*:punchlist:ann:{ANN.password}\n" in ANN.format_creds(["db.example.org"], "punchlist")
    assert build_verifier("one") != build_verifier("one"), "each has a salt of its own"


def test_an_address_of_ipv6_does_not_end_its_field() -> None:
    assert r"\:\:1:*:punchlist:ann:x" in Login("ann", "member", "x").format_creds(["::1"], "punchlist")
