import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from punchlist_schemas import params as p
from punchlist_schemas.methods import METHODS

MUTATIONS = [method for method in METHODS.values() if method.kind == "write"]


def parse(kind: type[p.Params], **members: Any) -> Any:
    return msgspec.json.decode(json.dumps(members).encode(), type=kind)


OF_LANGUAGE_CLIENTS = {"initialize", "initialized", "shutdown", "exit"}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in OF_LANGUAGE_CLIENTS])
def test_every_method_rejects_unknown_params(name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `nonsense`"):
        parse(METHODS[name].params, nonsense=1)


@pytest.mark.parametrize("name", sorted(OF_LANGUAGE_CLIENTS))
def test_other_params_of_language_clients_are_ignored(name: str) -> None:
    assert parse(METHODS[name].params, nonsense=1) == METHODS[name].params()


@pytest.mark.parametrize("method", MUTATIONS, ids=lambda method: method.name)
def test_every_mutation_has_key_version_and_actor(method: Any) -> None:
    assert issubclass(method.params, p.Mutation)
    assert {"conversation", "key", "expect_version", "actor"} <= set(method.params.__struct_fields__)


def test_only_writes_are_mutations() -> None:
    assert {m.name for m in METHODS.values() if issubclass(m.params, p.Mutation)} == {m.name for m in MUTATIONS}


def test_params_are_encoded_without_defaults() -> None:
    params = p.TaskAdd(conversation="c", title="a", blocked_by=("1",))
    sent = msgspec.json.encode(params)
    assert json.loads(sent) == {"conversation": "c", "title": "a", "blocked_by": ["1"]}
    assert msgspec.json.decode(sent, type=p.TaskAdd) == params


def test_edit_distinguishes_null_from_unset() -> None:
    edit = parse(p.TaskEdit, conversation="c", task="1", owner=None)
    assert (edit.owner, edit.parent, edit.metadata) == (None, UNSET, UNSET)
    assert json.loads(msgspec.json.encode(edit)) == {"conversation": "c", "task": "1", "owner": None}
    with pytest.raises(msgspec.ValidationError, match="title"):
        parse(p.TaskEdit, conversation="c", task="1", title=None)


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (p.TaskAdd, {"conversation": "c", "title": "a", "key": ""}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "key": "x" * 129}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "expect_version": -1}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "actor": ""}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "description": "x" * 65_537}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "metadata": []}),
        (p.TaskAdd, {"conversation": "c", "title": "a", "priority": None}),
        (p.TaskAddMany, {"conversation": "c", "tasks": []}),
        (p.TaskAddMany, {"conversation": "c", "tasks": [{"title": "a"}] * 10_001}),
        (p.TaskList, {"conversation": "c", "limit": 10_001}),
        (p.EventRead, {"after": 2**53 + 1}),
        (p.EventWait, {"after": 0, "timeout_ms": 86_400_001}),
        (p.ListUndo, {"conversation": "c", "count": 0}),
        (p.TaskClaim, {"conversation": "c"}),
        (p.TaskClaim, {"conversation": "c", "owner": ""}),
        (p.TaskClaim, {"conversation": "c", "owner": "o", "lease_ms": -1}),
        (p.TaskClaim, {"conversation": "c", "owner": "o", "lease_ms": 999}),
        (p.TaskClaim, {"conversation": "c", "owner": "o", "lease_ms": 86_400_001}),
        (p.TaskClaim, {"conversation": "c", "owner": "o", "wait_ms": -1}),
        (p.TaskClaim, {"conversation": "c", "owner": "o", "count": 0}),
        (p.TaskRenew, {"conversation": "c", "task": "1", "owner": "o", "lease_ms": 0}),
        (p.MessageAppend, {"conversation": "c", "role": "user"}),
        (p.MessageAppend, {"conversation": "c", "role": "", "content": 1}),
        (p.Cancel, {"id": None}),
        (p.Cancel, {"id": 1.5}),
    ],
)
def test_values_out_of_range_are_rejected(kind: type[p.Params], members: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse(kind, **members)


def test_content_of_a_message_can_be_any_json() -> None:
    contents: tuple[Any, ...] = (None, 0, "", [], {"a": [None]})
    for content in contents:
        assert parse(p.MessageAppend, conversation="c", role="user", content=content).content == content
