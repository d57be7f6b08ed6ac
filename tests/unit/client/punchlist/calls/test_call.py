"""The typed methods compared with the method table: neither may have anything that the other lacks."""

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from punchlist.calls.call import Call, ClientCalls
from punchlist.calls.conversations import ConversationCalls
from punchlist.clients.aio import AsyncClient, AsyncConversation
from punchlist.clients.sync import Client, Conversation
from punchlist_schemas.methods import METHODS

STATUS_WORDS = {"start", "complete", "fail", "pause", "resume", "reopen", "reject"}
"""Shorthands for set_status and approve. Each returns the response under other names."""

DIFFERENT = {
    # Partial tasks and changed rows don't form a task list: `client.call("task.list", ...)` returns them.
    "list": {"fields", "since", "epoch"},
    "delete": {"task"},  # one or many ids, as positional arguments
}
"""Wire parameters that a typed method leaves to the untyped call, and the reasons."""

ONLY_TOOLS = "turn"
"""Wire parameter that only the tools for agents use."""

BY_HAND = {
    *("daemon.hello", "agent.enter", "agent.leave", "rpc.cancel"),
    *("event.subscribe", "event.unsubscribe", "event.wait"),
}
"""Methods that the library calls itself: connections, present agents, cancellation, watches and waits."""

OF_LANGUAGE_CLIENTS = {"$/cancelRequest", "initialize", "initialized", "shutdown", "exit"}
"""Methods for language server clients, which send them automatically."""

ASYNC_ONLY = {"forward", "post", "give_back", "stay_connected"}
"""Methods for servers that forward calls or register agents, for objects collected outside of any coroutine, and for
interrupted calls."""

SAMPLES: dict[str, tuple[Any, ...]] = {
    "add": ("t",), "add_many": (["t"],), "get": ("1",), "edit": ("1",), "set_status": ("1", "paused"),
    "move": ("1",), "delete": ("1",), "replace": ([],), "attach": ("s",), "detach": ("s",),
    "take": ("o",), "renew": ("1", "o"), "release": ("1", "o"), "append_message": ("user", "hi"), "read": (0,),
    "resolve": ("/tmp",), "confirmation": ("t",), "retract": ("m",),
    "backup": ("/b",), "message": ("m",), "find": ("k",), "note": ("1", "seen"),
    "apply": ([{"method": "task.add", "title": "t"}],), "approve": ("1",), "search": ("x",), "spans": (1, 2),
    "reject": ("1", "no"),
    "add_space": ("team", ["tls://a"]), "remove_space": ("team",), "share": ("team",), "join": ("team",),
    "repair_space": ("team",),
}  # fmt: skip


def methods(owner: type) -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in inspect.getmembers(owner, inspect.isfunction) if name[0] != "_"}


BUILDERS = {**methods(ClientCalls), **methods(ConversationCalls)}


def build(name: str, **extra: Any) -> Call[Any]:
    owner = ClientCalls() if name in methods(ClientCalls) else ConversationCalls("c")
    return getattr(owner, name)(*SAMPLES.get(name, ("1",) if name in STATUS_WORDS else ()), **extra)


def parameters(name: str) -> set[str]:
    found = inspect.signature(BUILDERS[name]).parameters
    names = set(found) - {"self"}
    if "write" in names:
        (common,) = get_args(found["write"].annotation)
        names = names - {"write"} | set(common.__annotations__)
    return names


@pytest.mark.parametrize("name", sorted(BUILDERS.keys() - STATUS_WORDS))
def test_typed_method_has_parameters_of_its_call(name: str) -> None:
    call = build(name)
    row = METHODS[call.method]
    assert type(call.request.params) is row.params
    expected = {field.name for field in msgspec.structs.fields(row.params)} - DIFFERENT.get(name, set()) - {ONLY_TOOLS}
    if name in methods(ConversationCalls):
        expected -= {"conversation"}
    assert parameters(name) == expected


def test_every_contract_method_has_typed_method() -> None:
    assert {build(name).method for name in BUILDERS} | BY_HAND | OF_LANGUAGE_CLIENTS == set(METHODS)


@pytest.mark.parametrize("name", sorted(methods(ConversationCalls)))
def test_mutation_has_key_and_facade_actor(name: str) -> None:
    call = build(name)
    if METHODS[call.method].kind != "write":
        return
    named = getattr(ConversationCalls("c", "planner"), name)(*SAMPLES.get(name, ("1",) if name in STATUS_WORDS else ()))
    assert named.request.params.key
    # In an undo, the actor selects whose changes to undo, so the facade's own actor must not be filled in.
    assert named.request.params.actor == (None if name == "undo" else "planner")
    chosen: Any = build(name, key="k", expect_version=4, actor="x").request.params
    assert (chosen.key, chosen.expect_version, chosen.actor) == ("k", 4, "x")


@pytest.mark.parametrize(
    ("calls", "faces"), [(ClientCalls, (Client, AsyncClient)), (ConversationCalls, (Conversation, AsyncConversation))]
)
def test_both_faces_document_every_call(calls: type, faces: tuple[type, ...]) -> None:
    for face in faces:
        for name, builder in methods(calls).items():
            method = getattr(face, name)
            assert inspect.signature(method) == inspect.signature(builder), (face, name)
            assert method.__doc__ == builder.__doc__


@pytest.mark.parametrize(("one", "other"), [(Client, AsyncClient), (Conversation, AsyncConversation)])
def test_both_faces_have_the_same_other_methods(one: type, other: type) -> None:
    twins = {"close": "aclose"}
    for name, method in methods(one).items():
        twin = getattr(other, twins.get(name, name))
        assert list(inspect.signature(method).parameters) == list(inspect.signature(twin).parameters), name
    assert {twins.get(name, name) for name in methods(one)} == set(methods(other)) - ASYNC_ONLY


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_every_method_documents_purpose_and_result(name: str) -> None:
    first = (BUILDERS[name].__doc__ or "").splitlines()[0]
    assert first[0].isupper()
    assert "." in first
    assert "return" in get_type_hints(BUILDERS[name])
