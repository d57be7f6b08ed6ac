"""The Node client, over real sockets."""

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import Raw, Spawned, spawned_daemon
from punchlist_testing.optional import NODE, needs

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "examples/node/punchlist.mjs"
TSC = ROOT / "editors/vscode/node_modules/typescript/bin/tsc"
PATIENCE_S = 30.0

PROXY = """
import net from 'node:net'
import { Client } from process.env.CLIENT
let left = 0
const proxy = net.createServer((peer) => {
  const daemon = net.createConnection(process.env.DAEMON)
  for (const one of [peer, daemon]) one.on('error', () => {}).on('close', () => (peer.destroy(), daemon.destroy()))
  peer.pipe(daemon)
  daemon.on('data', (data) => (left-- > 0 ? peer.destroy() : peer.write(data)))
})
await new Promise((done) => proxy.listen(process.env.PROXY, done))
const client = new Client(process.env.PROXY)
"""
"""A proxy that drops the next `left` replies together with their connections, and a client that uses it."""


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


def run(script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a module in Node."""
    source = script.replace("process.env.CLIENT", json.dumps(str(CLIENT)), 1)
    command = [NODE, "--input-type=module", "--eval", source]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def through_proxy(daemon: Spawned, script: str) -> Any:
    """Return the JSON printed by a script that uses the proxy."""
    script = PROXY + script + "\nclient.close()\nproxy.close()\n"
    ran = run(script, DAEMON=daemon.socket, PROXY=f"{daemon.socket}.proxy")
    assert (ran.returncode, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


def test_client_has_all_methods() -> None:
    contract = json.loads((ROOT / "schemas/json/openrpc.json").read_text("utf-8"))
    kinds = {method["name"]: method["tags"][0]["name"] for method in contract["methods"]}
    told = run(
        f"import {{ KINDS }} from {json.dumps(str(CLIENT.parent / 'methods.mjs'))}; console.log(JSON.stringify(KINDS))"
    )
    assert json.loads(told.stdout) == kinds
    optional_keys = {
        method["name"]
        for method in contract["methods"]
        if any(param["name"] == "key" and not param["required"] for param in method["params"])
    }
    assert {name for name, kind in kinds.items() if kind == "write"} == optional_keys


def test_change_with_a_lost_response_happens_once(daemon: Spawned) -> None:
    script = """
    await client.call('task.add', { conversation: 'c', title: 'one', gate: { yes: true } })
    left = 1
    await client.call('task.note', { conversation: 'c', task: '1', text: 'noted' })
    await client.call('task.set_status', { conversation: 'c', task: '1', status: 'completed' })
    left = 1
    await client.call('task.approve', { conversation: 'c', task: '1' })
    const { task } = await client.call('task.get', { conversation: 'c', task: '1' })
    console.log(JSON.stringify([task.notes.map((note) => note.text), task.status]))
    """
    assert through_proxy(daemon, script) == [["noted"], "completed"]


def test_call_without_a_key_parameter_gets_none(daemon: Spawned) -> None:
    script = """
    const kinds = []
    const failed = (error) => kinds.push(error.kind)
    await client.call('list.share', { conversation: 'c', space: 's' }).catch(failed)
    await client.call('list.join', { conversation: 'c', space: 's' }).catch(failed)
    await client.call('list.leave', { conversation: 'c' }).catch(failed)
    console.log(JSON.stringify(kinds))
    """
    assert through_proxy(daemon, script) == ["not_found"] * 3


def test_unrepeatable_call_is_not_repeated(daemon: Spawned) -> None:
    script = """
    await client.call('daemon.status')
    left = 1
    const error = await client.call('space.list').catch((error) => error)
    console.log(JSON.stringify([error.kind, error.message]))
    """
    kind, message = through_proxy(daemon, script)
    assert kind == "connection_lost"
    assert message.startswith("The daemon closed the connection before it answered space.list")


def test_call_without_a_daemon_fails_soon(tmp_path: Path) -> None:
    script = """
    import { Client } from process.env.CLIENT
    const began = performance.now()
    const client = new Client()
    const kinds = await Promise.all([
      client.call('task.add', { conversation: 'c', title: 'one' }).catch((error) => [error.kind, error.message]),
      client.follow('c', () => {}).catch((error) => [error.kind, error.message]),
    ])
    console.log(JSON.stringify([performance.now() - began, ...kinds]))
    """
    ran = run(script, PUNCHLIST_SOCKET=str(tmp_path / "none"))
    assert (ran.returncode, ran.stderr) == (0, "")
    ms, *told = json.loads(ran.stdout)
    message = f"No daemon answers on {tmp_path}/none (ENOENT). Start it: punch daemon start"
    assert told == [["unavailable", message]] * 2
    assert ms < 5_000


def test_call_waits_for_a_restarting_daemon(daemon: Spawned) -> None:
    """A call in flight is repeated on the next daemon, and a call during the outage waits for that daemon."""
    script = """
    await client.call('task.add', { conversation: 'c', title: 'one' })
    proxy.close()
    const closed = new Promise((done) => proxy.once('close', done))
    left = 1
    const calls = [client.call('task.add', { conversation: 'c', title: 'two' })]
    await closed
    calls.push(client.call('task.add', { conversation: 'c', title: 'three' }))
    await new Promise((done) => proxy.listen(process.env.PROXY, done))
    console.log(JSON.stringify((await Promise.all(calls)).map(({ task }) => task.title)))
    """
    assert through_proxy(daemon, script) == ["two", "three"]


def test_close_ends_waiting_calls(daemon: Spawned) -> None:
    script = """
    await client.call('conversation.open', { conversation: 'c' })
    const waiting = client.call('task.claim', { conversation: 'c', owner: 'ann', wait_ms: 60000 })
    client.close()
    console.log(JSON.stringify(await waiting.catch((error) => error.kind)))
    """
    assert through_proxy(daemon, script) == "connection_lost"


def test_watcher_reports_a_missing_daemon(tmp_path: Path) -> None:
    command = [NODE, str(CLIENT.with_name("watch.mjs")), "--socket", str(tmp_path / "none"), "c"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"unavailable: No daemon answers on {tmp_path}/none")


USE = """
import { Client, Refused, Unavailable, socketPath, type Change, type Follower } from %s
const client = new Client(socketPath({ PUNCHLIST_SOCKET: '/x' }))
const params = { conversation: 'c', title: 't' }
const added = await client.call<{ version: number; task: { id: string } }>('task.add', params)
const id: string = added.task.id
const untyped = await client.call('task.get', { conversation: 'c', task: id })
console.log(untyped.task.title)
const onChange = ({ seq, event }: Change): void => console.log(seq.toFixed(), event.type, event.task)
const position = { after: 1, epoch: 'e' }
const follower: Follower = await client.follow('c', onChange, (error) => console.log(error.kind), position)
console.log(follower.after?.toFixed(), follower.epoch)
try {
  await client.follow('c', () => {})
} catch (error) {
  if (error instanceof Refused) console.log(error.kind, error.data['limit'])
  else if (error instanceof Unavailable) console.log(error.kind === 'unavailable')
}
client.close()
// @ts-expect-error a method has a name
client.call(7)
// @ts-expect-error there is no such member
client.unknown()
"""


@needs("typescript", TSC.exists())
def test_types_match_the_client(tmp_path: Path) -> None:
    (tmp_path / "use.mts").write_text(USE % json.dumps(str(CLIENT)), "utf-8")
    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"]
    roots = ["--typeRoots", str(TSC.parents[2] / "@types")]
    ran = subprocess.run(
        [NODE, str(TSC), *options, *roots, "use.mts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_watcher_resumes_after_a_kill(daemon: Spawned) -> None:
    command = [NODE, str(CLIENT.with_name("watch.mjs")), "--socket", daemon.socket, "website", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "following website\n"
            raw = Raw(daemon.socket)
            raw.result("task.add", conversation="website", title="Write the copy")
            raw.close()
            assert watcher.stdout.readline() == "1 ConversationOpened\n"
            assert watcher.stdout.readline() == "2 TaskAdded\n"
            daemon.restart()
            raw = Raw(daemon.socket)
            raw.result("task.set_status", conversation="website", task="1", status="completed")
            raw.close()
            assert watcher.stdout.readline() == "3 StatusChanged\n"
            assert watcher.wait(20) == 0
        finally:
            watcher.kill()
