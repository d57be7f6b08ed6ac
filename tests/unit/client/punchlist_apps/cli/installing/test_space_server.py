"""The configuration of a space's server: required settings and minimal permissions."""

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


def test_a_single_server_requires_flush_tls_and_key() -> None:
    text = build_configuration("team", [ANN, BOB], [Server("lists.example.org")])
    assert "sync_interval: always" in text
    assert 'tls { cert_file: "/etc/nats/cert.pem", key_file: "/etc/nats/key.pem" }' in text
    assert text.count("nkey: U") == 2 and "nkey: UANN" in text
    assert "cluster" not in text and "no_auth_user" not in text


def test_each_of_three_servers_has_routes_to_others() -> None:
    servers = [Server(f"{name}.example.org") for name in "abc"]
    text = build_configuration("team", [ANN], servers, 1, "s3cret")
    assert 'server_name: "team-2"' in text
    assert 'routes: ["nats://route:s3cret@a.example.org:6222", "nats://route:s3cret@c.example.org:6222"]' in text


def test_each_role_has_minimal_permissions() -> None:
    (member, _), (reader, subscribed), (keeper, _) = (list_permissions("team", login) for login in (ANN, BOB, KIM))
    assert "pl.team.log.>" in member and "pl.team.bar.UANN.>" in member
    assert {subject.split(".")[0] for subject in reader} == {"$JS"}
    assert not any(verb in subject for subject in reader for verb in ("CREATE", "DELETE", "PURGE", "UPDATE"))
    assert [subject for subject in keeper if "DELETE" in subject] == ["$JS.API.STREAM.MSG.DELETE.punch-team"]
    assert "_INBOX_UBOB.>" in subscribed and not any(subject.startswith("_INBOX.") for subject in subscribed)
    for granted in (member, reader, keeper):
        assert not any("new" in subject.split(".") for subject in granted)


def test_keys_are_unique_and_secret_in_creds() -> None:
    login, other = create_login("ann", "member"), create_login("ann", "member")
    assert login.user != other.user and login.user.startswith("U") and login.seed.startswith("SU")
    assert login.seed in login.creds and login.user not in login.creds
    assert login.seed not in build_configuration("team", [login], [Server("a")])


def test_the_server_secret_is_valid_in_urls() -> None:
    assert all(secret.isalnum() and len(secret) >= 32 for secret in (create_secret() for _ in range(50)))
