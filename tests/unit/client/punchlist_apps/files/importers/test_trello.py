import json
from typing import Any

import pytest

from punchlist_apps.files.importers.document import Document
from punchlist_apps.files.importers.draft import Draft, Note
from punchlist_apps.files.importers.formats import build_draft
from punchlist_apps.files.importers.wrong import FormatError

BOARD: dict[str, Any] = {
    "name": "Trip",
    "lists": [
        {"id": "l1", "name": "Doing", "pos": 2},
        {"id": "l2", "name": "Ideas", "pos": 1},
        {"id": "l3", "name": "Old", "closed": True},
    ],
    "members": [{"id": "m1", "fullName": "Ann Lee"}, {"id": "m2", "fullName": "Bob"}],
    "cards": [
        {
            **{"id": "card-00000001", "name": "Pack", "desc": "All.", "idList": "l1", "pos": 9, "closed": False},
            **{"due": "2026-12-24T10:00:00.000Z", "dueComplete": False, "idMembers": ["m1", "m2"]},
            **{"labels": [{"name": "home"}, {"name": "", "color": "red"}], "shortUrl": "https://trello.com/c/x"},
            **{"attachments": [{"url": "https://x/a.pdf"}], "customFieldItems": [{"id": "f"}], "badges": {"votes": 1}},
        },
        {"id": "card-00000002", "name": "Book", "idList": "l1", "pos": 3, "dueComplete": True},
        {"id": "card-00000003", "name": "Surf", "idList": "l2", "pos": 1},
        {"id": "card-00000004", "name": "Gone", "idList": "l1", "closed": True},
        {"id": "card-00000005", "name": "Lost", "idList": "l3"},
        {"id": "card-00000006", "name": "Form", "idList": "l1", "isTemplate": True},
    ],
    "checklists": [
        {
            **{"idCard": "card-00000001", "name": "Clothes"},
            "checkItems": [
                {"id": "item-00000001", "name": "Socks", "state": "complete", "pos": 2},
                {"id": "item-00000002", "name": "Hat", "state": "incomplete", "pos": 1, "idMember": "m2"},
            ],
        },
        {"idCard": "card-00000001", "name": "Papers", "checkItems": [{"id": "item-00000003", "name": "Pass"}]},
        {"idCard": "card-00000004", "name": "x", "checkItems": [{"id": "item-00000004", "name": "y"}]},
    ],
    "actions": [
        {
            **{"type": "commentCard", "date": "2026-01-02T00:00:00Z", "memberCreator": {"fullName": "Bob"}},
            "data": {"text": "Warm?", "card": {"id": "card-00000001"}},
        },
        {"type": "createCard", "data": {}},
    ],
}


def load(board: Any) -> Draft:
    return build_draft([Document("board.json", json.dumps(board))])


def test_cards_come_in_the_order_of_the_board() -> None:
    draft = load(BOARD)
    assert draft.source == "trello"
    assert [(item.title, item.key) for item in draft.items] == [
        *[("Surf", "card-00000003"), ("Book", "card-00000002"), ("Pack", "card-00000001")],
        *[("Hat", "item-00000002"), ("Socks", "item-00000001"), ("Pass", "item-00000003")],
    ]
    surf, book, pack, hat, socks, _ = draft.items
    assert pack.members | {"due": 0} == {
        **{"title": "Pack", "description": "All.", "status": "in_progress", "owner": "Ann Lee", "due": 0},
        **{"labels": ["home", "red"]},
        "links": [{"kind": "url", "to": "https://trello.com/c/x"}, {"kind": "url", "to": "https://x/a.pdf"}],
    }
    assert (pack.members["due"], pack.notes) == (1_798_106_400_000, [Note("Warm?", "Bob", 1_767_312_000_000)])
    assert (surf.members["labels"], book.members["status"]) == (["list:Ideas"], "completed")
    assert socks.members == {"title": "Socks", "status": "completed", "labels": ["Clothes"]}
    assert (hat.parent, hat.members["owner"]) == (pack.ref, "Bob")


def test_archived_parts_of_a_board_are_counted() -> None:
    assert {one.text: one.count for one in load(BOARD).skipped.values()} == {
        **{"archived cards": 1, "checklist items of archived cards": 1, "cards of archived lists": 1},
        **{"templates of cards": 1, "assignees beyond the first": 1, "`customFieldItems`": 1},
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lists": 3}, "lists: expected a list"),
        ({"cards": [*BOARD["cards"], 3]}, r"cards\[6\]: expected an object"),
        ({"cards": BOARD["cards"][3:]}, "no tasks found .trello.: skipped 1 × cards of archived lists"),
    ],
)
def test_broken_board_is_rejected(change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        load(BOARD | change)
