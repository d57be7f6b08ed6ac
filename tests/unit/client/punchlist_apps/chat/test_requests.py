"""Requests to a model's server that are cancelled while a thread is still running them."""

import http.client
import socket
import threading
from typing import Any

import anyio
import pytest

from punchlist_apps.chat.models.requests import Limits, stream

PATIENCE_S = 30


async def test_abandoned_request_does_not_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    started, abandoned, ended = threading.Event(), threading.Event(), threading.Event()
    errors: list[BaseException] = []
    request = http.client.HTTPConnection.request

    def late(self: http.client.HTTPConnection, *args: Any) -> None:
        started.set()
        abandoned.wait(PATIENCE_S)
        try:
            request(self, *args)
        except http.client.HTTPException as error:
            errors.append(error)
            raise
        finally:
            ended.set()

    monkeypatch.setattr(http.client.HTTPConnection, "request", late)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, stream(url, {}, {}, Limits()))
            await anyio.to_thread.run_sync(started.wait, PATIENCE_S)
            tasks.cancel_scope.cancel()
        abandoned.set()
        assert await anyio.to_thread.run_sync(ended.wait, PATIENCE_S)
        server.accept()[0].close()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert [type(error) for error in errors] == [http.client.NotConnected]
