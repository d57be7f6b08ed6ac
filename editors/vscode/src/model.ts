// The current state of lists, folded from the daemon's pushes. The cost of a push depends only on the changed rows.

import { Rows } from "../../../client/punchlist_apps/web/page/rows.js";
import type { Connection, Listener } from "./transport.ts";
import { type Card, type CallError, type Counts, type Damage, type Present, type Resolved, type Row, type RowsPush, openCount, wholeCount } from "./wire.ts";

const RETRY_MS = 1000;
const MAX_CARDS = 1000;

/** The effect of a push on a list. */
export interface Change {
  /** Ids of changed tasks and their previous rows; undefined for a new task. */
  before: Map<string, Row | undefined>;
  /** Parents whose children were added, removed or moved; undefined for the top level. */
  groups: Set<string | undefined>;
  /** Whether the whole list was read again. */
  reset: boolean;
}

/** An event with listeners. `listen` returns a function that removes the listener. */
class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>();

  listen(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  emit(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
}

/** A subscription that is renewed on each new connection; the base of lists and the board. */
abstract class Followed implements Listener {
  readonly connection: Connection;
  /** Fired when the state of the connection or of the subscription has changed. */
  readonly stateChanged = new Signal<void>();
  problem: string | null = null;
  ready = false;
  #subscription: string | null = null;
  #again: NodeJS.Timeout | undefined;

  constructor(connection: Connection) {
    this.connection = connection;
    connection.listeners.add(this);
  }

  follow(): void {
    this.connection.open();
    if (this.connection.connected) this.subscribe();
  }

  onConnected(): void {
    this.subscribe();
    this.stateChanged.emit();
  }

  onAway(): void {
    this.#subscription = null;
    this.stateChanged.emit();
  }

  onPush(method: string, params: any): void {
    if (params.subscription !== this.#subscription) return;
    if (method !== "end") return this.fold(params);
    this.#subscription = null;
    this.retryLater(params.error?.message ?? "the subscription ended");
  }

  /** Unsubscribe. */
  dispose(): void {
    clearTimeout(this.#again);
    this.connection.listeners.delete(this);
    if (this.#subscription) this.connection.request("event.unsubscribe", { subscription: this.#subscription }, () => undefined);
    this.#subscription = null;
  }

  protected abstract params(): object;
  protected abstract fold(push: any): void;
  protected abstract onError(error: CallError): void;
  protected abstract onSubscribed(result: any): void;

  protected subscribe(): void {
    this.connection.request("event.subscribe", this.params(), (error, result) => {
      if (error?.kind === "connection") return;
      if (error) return this.onError(error);
      [this.#subscription, this.problem] = [result.subscription, null];
      this.onSubscribed(result);
    });
  }

  protected retryLater(problem: string): void {
    this.problem = problem;
    this.stateChanged.emit();
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      if (this.connection.connected && !this.#subscription) this.subscribe();
    }, RETRY_MS);
  }
}

/** A followed list. */
export class TaskList extends Followed {
  readonly name: string;
  /** Directory for relative places in tasks. */
  readonly root: string | null;
  readonly changed = new Signal<Change>();
  readonly #rows = new Rows();
  #position: { after: number; epoch: string } | null = null;
  #epoch = "";
  #incoming: Change = { before: new Map(), groups: new Set(), reset: false };

  constructor(connection: Connection, name: string, root: string | null = null) {
    super(connection);
    this.name = name;
    this.root = root;
  }

  get version(): number {
    return this.#rows.version;
  }

  get counts(): Counts {
    return this.#rows.counts ?? {};
  }

  get open(): number {
    return openCount(this.counts);
  }

  get size(): number {
    return wholeCount(this.counts);
  }

  get damaged(): Damage | null {
    return this.#rows.damaged;
  }

  get(id: string): Row | undefined {
    return this.#rows.tasks.get(id);
  }

  /** Return the ids in display order. */
  ids(): string[] {
    return this.#rows.ids();
  }

  /** Return the children of a task, or the tasks at the top level. */
  children(parent?: string): Row[] {
    return this.#rows.childrenOf(parent ?? null);
  }

  /** Return the parent under which a task is shown. */
  parent(id: string): string | undefined {
    const above = this.get(id)?.parent;
    return above && this.#rows.tasks.has(above) ? above : undefined;
  }

  protected params(): object {
    this.#rows.begin();
    this.#incoming.reset = false; // Drop an incomplete list, but keep changes from incomplete pushes.
    return { conversation: this.name, view: "rows", ...this.#position };
  }

  protected onSubscribed(result: any): void {
    this.#epoch = result.epoch;
  }

  protected onError(error: CallError): void {
    if (error.kind !== "wrong_epoch" && error.kind !== "gap") return this.retryLater(error.message);
    this.#position = null;
    this.subscribe();
  }

  protected fold(push: RowsPush): void {
    const incoming = this.#incoming;
    incoming.reset ||= push.reset ?? false;
    if (!incoming.reset) this.#recordChanges(push);
    if (!this.#rows.take(push)) return;
    this.#incoming = { before: new Map(), groups: new Set(), reset: false };
    this.#position = { after: push.seq, epoch: this.#epoch };
    this.ready = true;
    this.changed.emit(incoming);
  }

  #recordChanges(push: RowsPush): void {
    const { before, groups } = this.#incoming;
    for (const id of push.gone ?? []) {
      if (!this.get(id)) continue;
      groups.add(this.parent(id));
      if (!before.has(id)) before.set(id, this.get(id));
    }
    for (const row of push.rows) {
      const old = this.get(row.id);
      if (!before.has(row.id)) before.set(row.id, old);
      if (old?.rank === row.rank && old.parent === row.parent) continue;
      if (old) groups.add(this.parent(row.id));
      groups.add(row.parent ?? undefined);
    }
  }
}

/** The other clients that follow a list, by actor. */
export class Presence extends Followed {
  others: Present[] = [];
  readonly #name: string;
  readonly #self: string;

  constructor(connection: Connection, name: string, self: string) {
    super(connection);
    [this.#name, this.#self] = [name, self];
  }

  override onAway(): void {
    this.others = [];
    super.onAway();
  }

  protected params(): object {
    return { conversation: this.#name, view: "presence" };
  }

  protected onSubscribed(): void {}

  protected onError(): void {} // An older daemon has no presence.

  /** Leave out our own connection, which is one of those with our name. */
  protected fold(push: { present: Present[] }): void {
    const others = push.present.map((peer) => (peer.actor === this.#self ? { ...peer, connections: peer.connections - 1 } : peer));
    this.others = others.filter((peer) => peer.connections > 0);
    this.stateChanged.emit();
  }
}

/** All lists, with their tasks in progress. */
export class Board extends Followed {
  readonly changed = new Signal<string[]>();
  readonly #cards = new Map<string, Card>();

  /** Return the lists, most recently changed first. */
  cards(): Card[] {
    return [...this.#cards.values()].sort((a, b) => b.updated_at - a.updated_at || (a.conversation < b.conversation ? -1 : 1));
  }

  get(name: string): Card | undefined {
    return this.#cards.get(name);
  }

  protected params(): object {
    return { view: "board" };
  }

  protected onError(error: CallError): void {
    this.retryLater(error.message);
  }

  protected onSubscribed(): void {
    this.connection.request("conversation.list", { limit: MAX_CARDS }, (error, result) => {
      if (error) return error.kind === "connection" ? undefined : this.retryLater(error.message);
      const names = new Set<string>(result.conversations.map((card: Card) => card.conversation));
      for (const name of this.#cards.keys()) if (!names.has(name) && this.ready) this.#cards.delete(name);
      for (const card of result.conversations) this.#keepNewer(card);
      this.ready = true;
      this.changed.emit([...names]);
    });
  }

  protected fold(push: { card: Card; gone?: boolean }): void {
    if (push.gone) this.#cards.delete(push.card.conversation);
    else this.#keepNewer(push.card);
    this.changed.emit([push.card.conversation]);
  }

  #keepNewer(card: Card): void {
    const old = this.#cards.get(card.conversation);
    if (!old || old.version <= card.version) this.#cards.set(card.conversation, card);
  }
}

/** Return the list that a directory maps to. */
export function resolve(connection: Connection, directory: string): Promise<Resolved> {
  return connection.call("conversation.resolve", { path: directory });
}
