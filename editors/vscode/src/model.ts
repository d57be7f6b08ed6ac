// Lists as they are, kept up by the daemon's pushes; each push costs what changed.

import { Rows } from "../../../client/punchlist_apps/web/page/rows.js";
import type { Connection, Listener } from "./transport.ts";
import { type Card, type CallError, type Counts, type Damage, type Present, type Resolved, type Row, type RowsPush, openCount, wholeCount } from "./wire.ts";

const AGAIN_MS = 1000;
const CARDS = 1000;

/** What a push did to a list. */
export interface Change {
  /** Tasks that look different, with what they were; undefined for a new one. */
  before: Map<string, Row | undefined>;
  /** Parents whose children came, went or moved; undefined stands for the top of the list. */
  groups: Set<string | undefined>;
  /** Whether the list was read anew as a whole. */
  reset: boolean;
}

/** Something to call at every change; what `listen` returns ends that. */
class Signal<T> {
  readonly #heard = new Set<(value: T) => void>();

  listen(heard: (value: T) => void): () => void {
    this.#heard.add(heard);
    return () => void this.#heard.delete(heard);
  }

  tell(value: T): void {
    for (const heard of [...this.#heard]) heard(value);
  }
}

/** What lists and the board share: a subscription that is renewed on each new connection. */
abstract class Followed implements Listener {
  readonly connection: Connection;
  /** News of the connection or of the subscription, such as being away. */
  readonly stateChanged = new Signal<void>();
  trouble: string | null = null;
  ready = false;
  #subscription: string | null = null;
  #again: NodeJS.Timeout | undefined;

  constructor(connection: Connection) {
    this.connection = connection;
    connection.listeners.add(this);
  }

  /** Begin to follow. */
  follow(): void {
    this.connection.open();
    if (this.connection.connected) this.subscribe();
  }

  connected(): void {
    this.subscribe();
    this.stateChanged.tell();
  }

  away(): void {
    this.#subscription = null;
    this.stateChanged.tell();
  }

  pushed(method: string, params: any): void {
    if (params.subscription !== this.#subscription) return;
    if (method !== "end") return this.take(params);
    this.#subscription = null;
    this.retryLater(params.error?.message ?? "the subscription ended");
  }

  /** Follow no longer. */
  dispose(): void {
    clearTimeout(this.#again);
    this.connection.listeners.delete(this);
    if (this.#subscription) this.connection.request("event.unsubscribe", { subscription: this.#subscription }, () => undefined);
    this.#subscription = null;
  }

  protected abstract params(): object;
  protected abstract take(push: any): void;
  protected abstract refused(error: CallError): void;
  protected abstract subscribed(result: any): void;

  protected subscribe(): void {
    this.connection.request("event.subscribe", this.params(), (error, result) => {
      if (error?.kind === "connection") return;
      if (error) return this.refused(error);
      [this.#subscription, this.trouble] = [result.subscription, null];
      this.subscribed(result);
    });
  }

  protected retryLater(trouble: string): void {
    this.trouble = trouble;
    this.stateChanged.tell();
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      if (this.connection.connected && !this.#subscription) this.subscribe();
    }, AGAIN_MS);
  }
}

/** One list, followed from now on. */
export class TaskList extends Followed {
  readonly name: string;
  /** The directory that places in tasks are relative to. */
  readonly root: string | null;
  readonly changed = new Signal<Change>();
  readonly #rows = new Rows();
  #position: { after: number; epoch: string } | null = null;
  #epoch = "";
  #coming: Change = { before: new Map(), groups: new Set(), reset: false };

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

  /** The ids as a person reads them, from top to bottom. */
  ids(): string[] {
    return this.#rows.ids();
  }

  /** The parts of a task, or the tasks at the top of the list. */
  children(parent?: string): Row[] {
    return this.#rows.childrenOf(parent ?? null);
  }

  /** The task that this one is shown under. */
  parent(id: string): string | undefined {
    const above = this.get(id)?.parent;
    return above && this.#rows.tasks.has(above) ? above : undefined;
  }

  protected params(): object {
    this.#rows.begin();
    this.#coming.reset = false; // a whole list that was cut comes again; what a cut push changed is told with the rest
    return { conversation: this.name, view: "rows", ...this.#position };
  }

  protected subscribed(result: any): void {
    this.#epoch = result.epoch;
  }

  protected refused(error: CallError): void {
    if (error.kind !== "wrong_epoch" && error.kind !== "gap") return this.retryLater(error.message);
    this.#position = null;
    this.subscribe();
  }

  protected take(push: RowsPush): void {
    const coming = this.#coming;
    coming.reset ||= push.reset ?? false;
    if (!coming.reset) this.#note(push);
    if (!this.#rows.take(push)) return;
    this.#coming = { before: new Map(), groups: new Set(), reset: false };
    this.#position = { after: push.seq, epoch: this.#epoch };
    this.ready = true;
    this.changed.tell(coming);
  }

  #note(push: RowsPush): void {
    const { before, groups } = this.#coming;
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

/** Who else follows a list, by the names that they gave. */
export class Presence extends Followed {
  others: Present[] = [];
  readonly #name: string;
  readonly #self: string;

  constructor(connection: Connection, name: string, self: string) {
    super(connection);
    [this.#name, this.#self] = [name, self];
  }

  override away(): void {
    this.others = [];
    super.away();
  }

  protected params(): object {
    return { conversation: this.#name, view: "presence" };
  }

  protected subscribed(): void {}

  protected refused(): void {} // an older daemon does not know who is there

  /** Our own connection is one of those of our name. */
  protected take(push: { present: Present[] }): void {
    const others = push.present.map((one) => (one.actor === this.#self ? { ...one, connections: one.connections - 1 } : one));
    this.others = others.filter((one) => one.connections > 0);
    this.stateChanged.tell();
  }
}

/** All lists, with what is in progress on each. */
export class Board extends Followed {
  readonly changed = new Signal<string[]>();
  readonly #cards = new Map<string, Card>();

  /** The lists, the one that changed last first. */
  cards(): Card[] {
    return [...this.#cards.values()].sort((one, other) => other.updated_at - one.updated_at || (one.conversation < other.conversation ? -1 : 1));
  }

  get(name: string): Card | undefined {
    return this.#cards.get(name);
  }

  protected params(): object {
    return { view: "board" };
  }

  protected refused(error: CallError): void {
    this.retryLater(error.message);
  }

  protected subscribed(): void {
    this.connection.request("conversation.list", { limit: CARDS }, (error, result) => {
      if (error) return error.kind === "connection" ? undefined : this.retryLater(error.message);
      const there = new Set<string>(result.conversations.map((card: Card) => card.conversation));
      for (const name of this.#cards.keys()) if (!there.has(name) && this.ready) this.#cards.delete(name);
      for (const card of result.conversations) this.#keep(card);
      this.ready = true;
      this.changed.tell([...there]);
    });
  }

  protected take(push: { card: Card; gone?: boolean }): void {
    if (push.gone) this.#cards.delete(push.card.conversation);
    else this.#keep(push.card);
    this.changed.tell([push.card.conversation]);
  }

  #keep(card: Card): void {
    const known = this.#cards.get(card.conversation);
    if (!known || known.version <= card.version) this.#cards.set(card.conversation, card);
  }
}

/** Which list the tasks of a directory are on. */
export function resolve(connection: Connection, directory: string): Promise<Resolved> {
  return connection.call("conversation.resolve", { path: directory });
}
