"""The configuration of a space's server: what it must say, and that it gives nobody more than his role needs."""

from punchlist_apps.cli.installing.space_server import (
    ROLES,
    Login,
    Server,
    build_configuration,
    create_login,
    create_secret,
    list_permissions,
)

ANN, BOB, KIM = (
    Login(name, role, f"U{name.upper()}", "SU") for name, role in zip(("ann", "bob", "kim"), ROLES, strict=True)
)


def test_a_server_alone_writes_before_it_acknowledges_and_lets_nobody_in_without_tls_and_key() -> None:
    text = build_configuration("team", [ANN, BOB], [Server("lists.example.org")])
    assert "sync_interval: always" in text
    assert 'tls { cert_file: "/etc/nats/cert.pem", key_file: "/etc/nats/key.pem" }' in text
    assert text.count("nkey: U") == 2 and "nkey: UANN" in text
    assert "cluster" not in text and "no_auth_user" not in text


def test_of_three_servers_each_knows_the_two_others() -> None:
    servers = [Server(f"{name}.example.org") for name in "abc"]
    text = build_configuration("team", [ANN], servers, 1, "s3cret")
    assert 'server_name: "team-2"' in text
    assert 'routes: ["nats://route:s3cret@a.example.org:6222", "nats://route:s3cret@c.example.org:6222"]' in text


def test_a_member_posts_a_reader_only_reads_and_a_keeper_may_also_erase() -> None:
    (member, _), (reader, heard), (keeper, _) = (list_permissions("team", one) for one in (ANN, BOB, KIM))
    assert "pl.team.log.>" in member and "pl.team.bar.UANN.>" in member
    assert {subject.split(".")[0] for subject in reader} == {"$JS"}
    assert not any(verb in subject for subject in reader for verb in ("CREATE", "DELETE", "PURGE", "UPDATE"))
    assert [subject for subject in keeper if "DELETE" in subject] == ["$JS.API.STREAM.MSG.DELETE.punch-team"]
    assert "_INBOX_UBOB.>" in heard and not any(subject.startswith("_INBOX.") for subject in heard)
    for granted in (member, reader, keeper):
        assert not any("new" in subject.split(".") for subject in granted)


def test_each_login_has_a_key_of_its_own_and_a_creds_file_that_holds_the_secret_half() -> None:
    one, other = create_login("ann", "member"), create_login("ann", "member")
    assert one.user != other.user and one.user.startswith("U") and one.seed.startswith("SU")
    assert one.seed in one.creds and one.user not in one.creds
    assert one.seed not in build_configuration("team", [one], [Server("a")])


def test_the_servers_secret_fits_into_an_address() -> None:
    assert all(secret.isalnum() and len(secret) >= 32 for secret in (create_secret() for _ in range(50)))
