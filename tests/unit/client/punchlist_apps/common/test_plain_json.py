import msgspec
import pytest

from punchlist_apps.common import plain_json


class Members(msgspec.Struct):
    name: str = ""
    on: bool = False
    seq: int | None = None
    many: tuple[str, ...] = ("x",)


def test_missing_members_have_defaults() -> None:
    given = b'  {"name": "a", "seq": 7, "many": ["b", "c"], "other": {"deep": [1]}}\n'
    assert plain_json.read(given, Members) == Members("a", on=False, seq=7, many=("b", "c"))
    assert plain_json.read(b'{"seq": null}', Members) == Members()


@pytest.mark.parametrize(
    "spoiled",
    [
        *(
            b"",
            b"{",
            b"[]",
            b"3",
            b"null",
            b'"name"',
            b"\xff",
            b"[" * 100_000,
            b'{"name": "\\ud800"}',
            b'{"name": "\xff"}',
            b'{"name": "a"} b',
        ),
        *(b'{"name": 3}', b'{"name": null}', b'{"on": 1}', b'{"seq": true}', b'{"seq": "7"}', b'{"many": [1]}'),
        *(b'{"many": "ab"}', b'{"name": "a", "seq": 1.5}'),
    ],
)
def test_invalid_text_gives_all_defaults(spoiled: bytes) -> None:
    assert plain_json.read(spoiled, Members) == Members()
