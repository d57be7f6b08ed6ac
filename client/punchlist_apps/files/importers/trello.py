"""Trello: the JSON export of a board. Cards are tasks, and the items of their checklists are tasks below them."""

from collections.abc import Sequence
from typing import Any

from punchlist_apps.files.importers.document import (
    Document,
    expect_list,
    expect_object,
    parse_json,
    to_list,
    to_object,
    to_text,
)
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.fields import Reader

_READ = ("id", "name", "desc", "due", "dueComplete", "start", "customFieldItems", "stickers")
"""Members that are passed to the reader, which counts the last two as skipped. Most others concern the display."""


def read(documents: Sequence[Document]) -> Draft:
    """Read the cards in the order of the board. Archived cards and lists are skipped."""
    document = documents[0]
    draft = Draft("trello", document.name)
    board = expect_object(parse_json(document), "the file", document.name)

    def get_records(member: str) -> list[dict[str, Any]]:
        records = expect_list(board.get(member) or [], member, document.name)
        return [expect_object(record, f"{member}[{i}]", document.name) for i, record in enumerate(records)]

    lists = {to_text(one.get("id")): one for one in get_records("lists")}
    members = {to_text(one.get("id")): to_text(one.get("fullName")) for one in get_records("members")}
    comments, checklists = _group_comments(get_records("actions")), _group(get_records("checklists"), "idCard")
    reader = Reader(draft)
    cards = [(lists.get(to_text(card.get("idList")), {}), card) for card in get_records("cards")]
    for column, card in sorted(cards, key=lambda pair: (_get_position(pair[0]), _get_position(pair[1]))):
        ident = to_text(card.get("id"))
        marks = {
            "archived cards": card.get("closed"),
            "cards of archived lists": column.get("closed"),
            "templates of cards": card.get("isTemplate"),
        }
        if kind := next((kind for kind, is_marked in marks.items() if is_marked), ""):
            draft.skip(kind)
            for checklist in checklists.get(ident, ()):
                draft.skip(f"checklist items of {kind}", count=len(_get_objects(checklist, "checkItems")))
            continue
        item = reader.add(
            {
                **{name: card[name] for name in _READ if name in card},
                "list": column.get("name"),
                "labels": [to_text(label.get("name") or label.get("color")) for label in _get_objects(card, "labels")],
                "members": [members.get(to_text(member), "") for member in to_list(card.get("idMembers"))],
                "url": [card.get("shortUrl"), *(one.get("url") for one in _get_objects(card, "attachments"))],
                "comments": comments.get(ident),
            },
            "cards",
        )
        for checklist in sorted(checklists.get(ident, ()), key=_get_position):
            for entry in sorted(_get_objects(checklist, "checkItems"), key=_get_position):
                reader.add(
                    {
                        **{name: entry.get(name) for name in ("id", "name", "due")},
                        "done": entry.get("state") == "complete",
                        "owner": members.get(to_text(entry.get("idMember"))),
                        "labels": [checklist.get("name")] if len(checklists[ident]) > 1 else [],
                    },
                    "checkItems",
                    parent=item.ref if item else "",
                )
    return reader.finish()


def _get_objects(record: dict[str, Any], member: str) -> list[dict[str, Any]]:
    return list(map(to_object, to_list(record.get(member))))


def _get_position(record: dict[str, Any]) -> float:
    position = record.get("pos")
    return position if isinstance(position, int | float) else 0


def _group(records: list[dict[str, Any]], member: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(to_text(record.get(member)), []).append(record)
    return groups


def _group_comments(actions: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the comments of each card, oldest first. The export has them among the last 1,000 actions of the board."""
    comments: list[dict[str, Any]] = []
    for action in reversed(actions):
        data = to_object(action.get("data"))
        if action.get("type") == "commentCard":
            author = to_object(action.get("memberCreator")).get("fullName")
            card = to_object(data.get("card")).get("id")
            comments.append({"card": card, "text": data.get("text"), "author": author, "date": action.get("date")})
    return _group(comments, "card")
