// A client of the punchlist daemon for Node 18 or newer, without packages. docs/protocol.md explains each step.

import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'

const MUTATIONS = /^(task\.(add|add_many|edit|set_status|move|delete|claim|renew|release)|list\.|message\.append|conversation\.(open|configure|attach|detach|delete))/
const RETRY_MS = 200

export class Refused extends Error {
  constructor(error) {
    super(error.message)
    this.kind = error.data?.kind
    this.data = error.data
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
  #socket = null
  #rest = ''
  #lastId = 0
  #calls = new Map() // id → { request, resolve, reject }: what has no answer yet
  #followers = new Map() // subscription → follower
  #closed = false

  constructor(path = socketPath()) {
    this.#path = path
    this.#connect()
  }

  // Calls a method and returns its result. It waits for the daemon, and repeats the call after a lost connection: a
  // change has a key, so it happens once.
  call(method, params = {}) {
    if (MUTATIONS.test(method)) params = { key: randomUUID(), ...params }
    return new Promise((resolve, reject) => this.#send({ method, params }, resolve, reject))
  }

  // Calls `onEvent` for each event of a list from now on, or after `position`, across reconnects. `onLost` learns that
  // events can't be delivered any more: the log is another one, or it is damaged.
  async follow(conversation, onEvent, onLost, position = {}) {
    const follower = { conversation, onEvent, onLost, ...position }
    await this.#subscribe(follower)
    return follower
  }

  close() {
    this.#closed = true
    this.#socket?.destroy()
  }

  #connect() {
    this.#rest = ''
    this.#socket = createConnection(this.#path)
    this.#socket.setEncoding('utf8') // holds back half a character
    this.#socket.on('data', (text) => this.#receive(text))
    this.#socket.on('error', () => {}) // 'close' follows
    this.#socket.on('close', () => {
      if (!this.#closed) setTimeout(() => this.#reconnect(), RETRY_MS)
    })
  }

  #reconnect() {
    const followers = [...this.#followers.values()]
    this.#followers.clear()
    this.#connect()
    for (const { request } of this.#calls.values()) this.#write(request)
    for (const follower of followers) this.#subscribe(follower).catch(follower.onLost)
  }

  #send(request, resolve, reject) {
    request = { jsonrpc: '2.0', id: ++this.#lastId, ...request }
    this.#calls.set(request.id, { request, resolve, reject })
    this.#write(request)
  }

  #write(request) {
    this.#socket.write(JSON.stringify(request) + '\n')
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
    if (error?.data?.kind === 'shutting_down') return // the daemon closes this connection, and the next one answers
    this.#calls.delete(id)
    if (error) call.reject(new Refused(error))
    else call.resolve(result)
  }

  #subscribe(follower) {
    const { conversation, after, epoch } = follower
    const params = { conversation, ...(after === undefined ? {} : { after, epoch }) }
    const taken = (result) => {
      follower.after = result.seq
      follower.epoch = result.epoch
      this.#followers.set(result.subscription, follower) // before the next line is read: it may be a push
    }
    return new Promise((resolve, reject) => {
      this.#send({ method: 'event.subscribe', params }, (result) => resolve(taken(result)), reject)
    })
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
