"""Trello: the JSON export of a board. Cards are tasks, and the items of their checklists are tasks below them."""

from collections.abc import Sequence
from typing import Any

from punchlist_apps.files.importers.document import Document, expect_list, expect_object, parse_json, to_object, to_text
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.fields import Reader

_READ = ("id", "name", "desc", "due", "dueComplete", "start", "closed", "idMembers", "idList", "labels", "attachments")
_KEPT = frozenset(("customFieldItems", "stickers"))
"""Members of a card that are imported, and those that aren't and whose loss is reported. Others concern the display."""


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
        marks = {"archived cards": card.get("closed"), "cards of archived lists": column.get("closed")}
        if kinds := [kind for kind, mark in {**marks, "templates of cards": card.get("isTemplate")}.items() if mark]:
            draft.skip(kinds[0])
            items = sum(len(_get_objects(one, "checkItems")) for one in checklists.get(ident, ()))
            draft.skip(f"checklist items of {kinds[0]}", count=items) if items else None
            continue
        record = {name: card[name] for name in ("id", "name", "desc", "due", "dueComplete", "start") if name in card}
        item = reader.add(
            {
                **record,
                **{name: card[name] for name in _KEPT if card.get(name)},
                "list": column.get("name"),
                "labels": [to_text(label.get("name") or label.get("color")) for label in _get_objects(card, "labels")],
                "members": [members.get(to_text(member), "") for member in card.get("idMembers") or []],
                "url": [card.get("shortUrl"), *(one.get("url") for one in _get_objects(card, "attachments"))],
                "comments": comments.get(ident),
            },
            "cards",
        )
        for checklist in sorted(checklists.get(ident, ()), key=_get_position):
            for entry in sorted(_get_objects(checklist, "checkItems"), key=_get_position):
                owner = members.get(to_text(entry.get("idMember")), "")
                labels = [checklist.get("name")] if len(checklists[ident]) > 1 else []
                record = {"id": entry.get("id"), "name": entry.get("name"), "due": entry.get("due"), "owner": owner}
                done = entry.get("state") == "complete"
                reader.add({**record, "done": done, "labels": labels}, "checkItems", parent=item.ref if item else "")
    return reader.finish()


def _get_objects(record: dict[str, Any], member: str) -> list[dict[str, Any]]:
    value = record.get(member)
    return [to_object(one) for one in value] if isinstance(value, list) else []


def _get_position(record: dict[str, Any]) -> float:
    position = record.get("pos")
    return float(position) if isinstance(position, int | float) else 0.0


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
