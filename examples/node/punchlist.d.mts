// Types of punchlist.mjs. Results are those of schemas/json/openrpc.json, events those of events.schema.json.

/** The daemon rejected a call, and nothing changed; `kind` is one of schemas/json/errors.json. */
export class Refused extends Error {
  readonly kind: string
  /** Facts, such as `limit` or `blockers`. */
  readonly data: Record<string, any>
}

/**
 * No daemon responded to a call.
 *
 * `unavailable`: no daemon was reached within a second, and the call was not sent.
 * `connection_lost`: the connection ended before the response, so the call may have happened.
 */
export class Unavailable extends Error {
  readonly kind: 'unavailable' | 'connection_lost'
}

/** An event and its position in the log. */
export interface Change {
  /** Its position in the whole log. */
  seq: number
  conversation: string
  /** Its position in the list. */
  version: number
  /** Milliseconds since 1970. */
  at: number
  /** The name under which the change was made. */
  actor: string
  event: { type: string; [member: string]: any }
}

/** A position in the log of the daemon with this epoch. */
export interface Position {
  after?: number
  epoch?: string
}

/** A list that is followed: `after` is the position of the last event delivered. */
export interface Follower extends Position {
  readonly conversation: string
}

/** Where the daemon listens, by the rules of docs/protocol.md. */
export function socketPath(env?: Record<string, string | undefined>): string

/** A connection to the daemon, opened by the first call, and again after it broke. */
export class Client {
  constructor(path?: string)

  /**
   * Call a method of schemas/json/openrpc.json and return its result. A change gets a `key`.
   *
   * After a lost connection reads and changes are repeated; a change happens once.
   *
   * @throws {Refused} The daemon rejected the call.
   * @throws {Unavailable} No daemon responded.
   */
  call<Result = any>(method: string, params?: object): Promise<Result>

  /**
   * Call `onEvent` for each event of a list from now on, or after a position, across restarts of the daemon.
   *
   * `onLost` is called when events can no longer be delivered: the log was replaced or is damaged.
   */
  follow(
    conversation: string,
    onEvent: (change: Change) => unknown,
    onLost?: (error: Refused | Unavailable) => unknown,
    position?: Position,
  ): Promise<Follower>

  /** End the connection. Calls without a response fail, and so do later calls. */
  close(): void
}
