// A client of the punchlist daemon for Node 18 or newer, without dependencies. docs/protocol.md explains each step, and
// punchlist.d.mts has the types.

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { KINDS } from './methods.mjs'

const RETRY_MS = 200
const PATIENCE_MS = 900 // limit of a call's wait for a daemon

// The daemon rejected a call.
export class Refused extends Error {
  constructor(error) {
    super(error.message)
    this.kind = error.data?.kind
    this.data = error.data ?? {}
  }
}

// No daemon responded to a call.
export class Unavailable extends Error {
  constructor(kind, message) {
    super(message)
    this.kind = kind
  }
}

export function socketPath(env = process.env) {
  if (env.PUNCHLIST_SOCKET) return env.PUNCHLIST_SOCKET
  const runtime = env.XDG_RUNTIME_DIR || `/run/user/${process.getuid()}`
  if (env.XDG_RUNTIME_DIR || existsSync(runtime)) return join(runtime, 'punchlist/daemon.sock')
  return join(env.XDG_DATA_HOME || join(homedir(), '.local/share'), 'punchlist/run/daemon.sock')
}

export class Client {
  #path
  #socket = null // null until the first call
  #isConnected = false
  #reason = '' // error code of the last failed connection
  #rest = ''
  #lastId = 0
  #calls = new Map() // id → call without a response
  #followers = new Map() // subscription → follower
  #isClosed = false

  constructor(path = socketPath()) {
    this.#path = path
  }

  // Calls a method and returns its result. After a lost connection it repeats reads and changes. Changes have a key,
  // so they happen once.
  call(method, params = {}) {
    const kind = KINDS[method]
    if (kind === 'write') params = { key: randomUUID(), ...params }
    return this.#send({ method, params }, { repeats: kind === 'read' || kind === 'write' })
  }

  // Calls `onEvent` for each event of a list from now on, or after `position`, across reconnects. Calls `onLost` when
  // events can no longer be delivered: the log was replaced or is damaged.
  async follow(conversation, onEvent, onLost, position = {}) {
    const follower = { conversation, onEvent, onLost, ...position }
    await this.#subscribe(follower)
    return follower
  }

  // Ends the connection. Calls without a response fail, and so do later calls.
  close() {
    this.#isClosed = true
    this.#followers.clear()
    this.#socket?.destroy()
    for (const call of [...this.#calls.values()]) this.#giveUp(call)
  }

  #connect() {
    const socket = (this.#socket = createConnection(this.#path))
    this.#rest = ''
    socket.setEncoding('utf8') // buffers incomplete characters
    socket.on('connect', () => this.#onConnect())
    socket.on('data', (text) => this.#receive(text))
    socket.on('error', (error) => (this.#reason = error.code)) // 'close' follows
    socket.on('close', () => this.#onClose())
  }

  #onConnect() {
    this.#isConnected = true
    for (const call of this.#calls.values()) this.#write(call)
    const followers = [...this.#followers.values()]
    this.#followers.clear()
    for (const follower of followers) {
      this.#subscribe(follower, Infinity).catch((error) => this.#isClosed || follower.onLost?.(error))
    }
  }

  #onClose() {
    this.#isConnected = false
    this.#socket = null
    for (const call of [...this.#calls.values()]) {
      if (call.isSent && !call.repeats) this.#giveUp(call)
      else this.#limit(call)
    }
    const retry = () => this.#socket || this.#isClosed || this.#connect()
    if (this.#calls.size || this.#followers.size) setTimeout(retry, RETRY_MS)
  }

  #send(request, { repeats = true, patienceMs = PATIENCE_MS, read = (result) => result }) {
    return new Promise((resolve, reject) => {
      const call = { id: ++this.#lastId, request, repeats, patienceMs, reject, isSent: false }
      call.resolve = (result) => resolve(read(result))
      this.#calls.set(call.id, call)
      if (this.#isClosed) return this.#giveUp(call)
      if (this.#isConnected) return this.#write(call)
      this.#limit(call)
      if (!this.#socket) this.#connect()
    })
  }

  #write(call) {
    clearTimeout(call.timer)
    call.timer = undefined
    call.isSent = true
    this.#socket.write(JSON.stringify({ jsonrpc: '2.0', id: call.id, ...call.request }) + '\n')
  }

  // Rejects the call unless a daemon is reached in time.
  #limit(call) {
    if (call.patienceMs !== Infinity) call.timer ??= setTimeout(() => this.#giveUp(call), call.patienceMs)
  }

  #giveUp(call) {
    clearTimeout(call.timer)
    this.#calls.delete(call.id)
    call.reject(this.#explain(call))
  }

  #explain({ isSent, request: { method, params } }) {
    if (!isSent && !this.#isClosed) {
      const message = `No daemon answers on ${this.#path} (${this.#reason}). Start it: punch daemon start`
      return new Unavailable('unavailable', message)
    }
    const who = this.#isClosed ? 'client' : 'daemon'
    const outcome = isSent ? `before it answered ${method}, which may have happened` : `before it sent ${method}`
    const advice = isSent && params.key ? `; repeat it with the key ${params.key}` : ''
    return new Unavailable('connection_lost', `The ${who} closed the connection ${outcome}${advice}.`)
  }

  #receive(text) {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()
    for (const line of lines) this.#take(JSON.parse(line))
  }

  #take({ id, method, params, result, error }) {
    if (method === 'events') return this.#deliver(params)
    if (method === 'end') return this.#end(params)
    const call = this.#calls.get(id)
    if (!call) return
    if (error?.data?.kind === 'shutting_down') {
      call.isSent = false // the daemon closes this connection; the call is sent again over the next one
      return
    }
    this.#calls.delete(id)
    if (error) call.reject(new Refused(error))
    else call.resolve(result)
  }

  #subscribe(follower, patienceMs) {
    const { conversation, after, epoch } = follower
    const params = { conversation, ...(after === undefined ? {} : { after, epoch }) }
    const read = (result) => {
      follower.after = result.seq
      follower.epoch = result.epoch
      this.#followers.set(result.subscription, follower) // before the next line is read: it may be a push
    }
    return this.#send({ method: 'event.subscribe', params }, { patienceMs, read })
  }

  #deliver({ subscription, events }) {
    const follower = this.#followers.get(subscription)
    for (const event of events) {
      follower?.onEvent(event)
      if (follower) follower.after = event.seq
    }
  }

  #end({ subscription, error }) {
    const follower = this.#followers.get(subscription)
    this.#followers.delete(subscription)
    follower?.onLost?.(new Refused(error))
  }
}
