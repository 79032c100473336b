import { Recent } from '../../../src/core/bytes/recent.ts';
import { MemoryError } from '../../../src/core/errors.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import type { AuditNote } from '../core/audit.ts';
import type { ChangedFact, ChangeOutcome } from '../ports/control-store.ts';
import type { ServiceStore, TenantStore } from '../ports/service-store.ts';

/**
 * Reads the list of changes from the store once a second, and calls listeners, which drop changed facts from their
 * caches. The list also has the changes by other nodes and by commands.
 */

/** Milliseconds between two reads. If reads succeed, a key that another node revokes is refused within two seconds. */
const PERIOD_MS = 1000;
/** Deadline of a read. */
const READ_MS = 900;

/** Is called for each change; undefined means that anything may have changed. */
export type ChangeListener = (fact: ChangedFact | undefined) => void;

export class ChangeWatch {
  readonly #store: Pick<ServiceStore, 'changesSince'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #listeners = new Set<ChangeListener>();
  #after: number | undefined;
  #readAt = -Infinity;
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<boolean> = Promise.resolve(true);

  constructor(parts: {
    readonly store: Pick<ServiceStore, 'changesSince'>;
    readonly clock: Pick<Clock, 'monotonic'>;
  }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /** When the last successful read began, by the clock's monotonic(). -Infinity if there was none. */
  get readAt(): number {
    return this.#readAt;
  }

  onChange(listener: ChangeListener): void {
    this.#listeners.add(listener);
  }

  /** Starts reading every second. */
  start(): void {
    this.#isRunning = true;
    this.#again();
  }

  /** Stops reading. Resolves when no read is running any more. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    clearTimeout(this.#timer);
    await this.#reading;
  }

  /**
   * Reads at once. Call it after a change by this process. If reading fails, listeners drop all facts. Does nothing
   * before `start`.
   */
  async changed(): Promise<void> {
    if (!this.#isRunning) return;
    if (!(await this.look())) this.#tell(undefined);
  }

  /** Reads once. Resolves with false if the store could not be read. Never rejects. */
  look(): Promise<boolean> {
    this.#reading = this.#reading.then(() => this.#read());
    return this.#reading;
  }

  #again(): void {
    this.#timer = setTimeout(() => void this.#readOnce(), PERIOD_MS).unref();
  }

  async #readOnce(): Promise<void> {
    await this.look();
    if (this.#isRunning) this.#again();
  }

  async #read(): Promise<boolean> {
    const begunAt = this.#clock.monotonic();
    try {
      const signal = AbortSignal.timeout(READ_MS);
      const { last, changes } = await this.#store.changesSince(this.#after, signal);
      // The first read returns no changes, so facts that were cached before it may be outdated.
      if (this.#after === undefined || changes === undefined) this.#tell(undefined);
      else for (const fact of changes) this.#tell(fact);
      this.#after = last;
      this.#readAt = begunAt;
      return true;
    } catch {
      return false;
    }
  }

  #tell(fact: ChangedFact | undefined): void {
    for (const listener of this.#listeners) listener(fact);
  }
}

/** Wraps a store so that this process reads its own changes at once. */
export function tellingChanges(store: ServiceStore, changes: ChangeWatch): ServiceStore {
  type Apply<Change> = (change: Change, note: AuditNote) => Promise<ChangeOutcome>;
  const told =
    <Change>(apply: Apply<Change>): Apply<Change> =>
    async (change, note) => {
      const outcome = await apply(change, note);
      await changes.changed();
      return outcome;
    };
  return {
    ...withTenantsChanged(store, (own) => ({ apply: told((...given) => own.apply(...given)) })),
    apply: told((...given) => store.apply(...given)),
  };
}

/** Wraps a store. `change` returns the methods to replace in the store of a tenant. */
export function withTenantsChanged(
  store: ServiceStore,
  change: (own: TenantStore) => Partial<TenantStore>,
): ServiceStore {
  return {
    ...store,
    of: (tenant) => {
      const own = store.of(tenant);
      return { ...own, ...change(own) };
    },
  };
}

/** How long a cached fact stays valid while the store is unavailable. A revoked key works for at most this long. */
const GOOD_MS = 60_000;
/** Deadline of a query. A slower store counts as unavailable, because a request must not wait longer. */
const LOOK_MS = 2_000;
/** Bound on the facts in one cache: the active keys of a large service. */
const NAMES_MAX = 20_000;

export interface ConfirmedOptions<Value> {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly changes: ChangeWatch;
  /** Says whether a change concerns the fact that is cached under this name. */
  readonly concerns: (fact: ChangedFact, name: string, value: Value) => boolean;
}

interface Known<Value> {
  readonly name: string;
  readonly value: Value;
  /** When the store was asked for the value, by the monotonic clock. */
  readonly at: number;
}

/**
 * Caches facts from the store. As long as this process can read the list of changes, it uses a cached fact without a
 * query, and a change drops the fact. If the store becomes unavailable, cached facts are used for GOOD_MS more, so that
 * model requests continue. After that the store's error is thrown.
 */
export class Confirmed<Value> {
  readonly #options: ConfirmedOptions<Value>;
  readonly #known = new Recent<string, Known<Value>>(NAMES_MAX);
  /** Counts changes. An answer is not cached if something changed while it was read. */
  #changes = 0;

  constructor(options: ConfirmedOptions<Value>) {
    this.#options = options;
    options.changes.onChange((fact) => this.#drop(fact));
  }

  /** Returns the cached value, or asks the store. Throws what `look` throws. */
  async ask(name: string, look: () => Promise<Value>): Promise<Value> {
    const { clock, changes } = this.#options;
    const known = this.#known.get(name);
    const isFollowed = clock.monotonic() - changes.readAt <= GOOD_MS;
    if (known !== undefined && isFollowed) return known.value;
    const before = this.#changes;
    const at = clock.monotonic();
    try {
      const value = await withinDeadline(LOOK_MS, look);
      if (value === undefined) this.#known.delete(name);
      else if (before === this.#changes) this.#known.set(name, { name, value, at });
      return value;
    } catch (error) {
      const last = this.#known.get(name);
      if (!(error instanceof MemoryError) || last === undefined) throw error;
      if (clock.monotonic() - Math.max(last.at, changes.readAt) > GOOD_MS) throw error;
      return last.value;
    }
  }

  #drop(fact: ChangedFact | undefined): void {
    this.#changes += 1;
    if (fact === undefined) {
      this.#known.clear();
      return;
    }
    for (const { name, value } of this.#known.values()) {
      if (this.#options.concerns(fact, name, value)) this.#known.delete(name);
    }
  }
}
