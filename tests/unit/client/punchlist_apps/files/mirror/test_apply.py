from typing import Any

import pytest

from punchlist.taskfiles.checklist import Checklist
from punchlist.taskfiles.file_format import Document, Fields, Origin
from punchlist_apps.files.mirror.apply import Foreign, ProposalApplier
from punchlist_testing.mirrors import Place


def document(origin: Origin | None, *titles: str) -> Document:
    said: dict[str, Fields] = {
        f" {index}": {"title": title, "description": "", "done": False} for index, title in enumerate(titles)
    }
    return Document(said, origin, "d", is_whole=True)


async def test_repeated_proposal_adds_its_tasks_once(place: Place) -> None:
    await place.list.add("a")
    epoch = (await place.client.open()).epoch
    said = document(Origin("web", epoch, 2), "new")
    said = Document(
        {"1": {"title": "a", "description": "", "done": False}, **said.tasks}, said.origin, "d", is_whole=True
    )
    assert (await ProposalApplier(place.client, "web", Checklist()).apply("web.json", said)).calls == 1
    # A new process without the first one's state, as after a crash before the file was written again.
    await ProposalApplier(place.client, "web", Checklist()).apply("web.json", said)
    assert await place.titles() == ["a", "new"]


async def test_proposal_is_applied_to_changed_list(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.list.add_many(["a", "b"])
    epoch = (await place.client.open()).epoch
    call = place.client.call
    meddled: list[str] = []

    async def meddling(method: str, params: dict[str, Any] | None = None) -> Any:
        if not meddled:
            meddled.append((await place.list.edit("1", title="meanwhile")).title)
        return await call(method, params)

    monkeypatch.setattr(place.client, "call", meddling)
    fields: Fields = {"title": "A", "description": "", "done": False}
    said = Document({"1": fields, "2": {**fields, "title": "b"}}, Origin("web", epoch, 3), "d", is_whole=True)
    outcome = await ProposalApplier(place.client, "web", Checklist()).apply("web.json", said)
    assert [conflict.member for conflict in outcome.conflicts] == ["title"]
    assert await place.titles() == ["meanwhile", "b"]


@pytest.mark.parametrize("origin", [Origin("web", "other", 1), Origin("other", "", 1)])
async def test_file_of_another_log_is_foreign(place: Place, origin: Origin) -> None:
    with pytest.raises(Foreign):
        await ProposalApplier(place.client, "web", Checklist()).apply("web.json", document(origin, "x"))
    assert await place.titles() == []


async def test_future_version_is_not_a_base(place: Place) -> None:
    await place.list.add("a")
    epoch = (await place.client.open()).epoch
    await ProposalApplier(place.client, "web", Checklist()).apply("web.json", document(Origin("web", epoch, 99), "new"))
    assert await place.titles() == ["a", "new"]
