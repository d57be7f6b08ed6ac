import pytest

from punchlist_apps.mcp.uris import Address, format_tasks_uri, parse_uri


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("punchlist://website/tasks", Address("website", "tasks", 0)),
        ("punchlist://a:b.c_d-e/tasks", Address("a:b.c_d-e", "tasks", 0)),
        ("punchlist://website/events", Address("website", "events", 0)),
        ("punchlist://website/events?after=12", Address("website", "events", 12)),
    ],
)
def test_own_addresses_are_parsed(uri: str, address: Address) -> None:
    assert parse_uri(uri) == address


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "punchlist://website",
        "punchlist://website/tasks/",
        "punchlist://website/tasks?after=1",
        "punchlist://website/events?after=-1",
        "punchlist://website/events?after=99999999999999999",
        "punchlist://website/events?after=1&after=2",
        "punchlist:///tasks",
        "punchlist://a/b/tasks",
        "file:///etc/passwd",
        "PUNCHLIST://website/tasks",
        "punchlist://website/tasks\n",
    ],
)
def test_other_addresses_are_rejected(uri: str) -> None:
    assert parse_uri(uri) is None


def test_address_round_trips() -> None:
    for name in ("website", "a:b", "x.y_z-1"):
        assert parse_uri(format_tasks_uri(name)) == Address(name, "tasks", 0)
