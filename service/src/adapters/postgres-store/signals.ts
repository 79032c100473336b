import { setTimeout as sleep } from 'node:timers/promises';
import { forgetOldest } from '../../../../src/core/bytes/recent.ts';
import { SIGNALS_MAX } from '../../../../src/core/recall/running-share.ts';
import type { SharedSignals } from '../../../../src/adapters/store/exchange-search.ts';
import { waitFor } from '../../../../src/adapters/store/steps.ts';
import type { Connections } from './connections.ts';
import type { Rows } from './rows.ts';
import { MEMORY } from './statements/memory.ts';

/** A prompt of a space that was compared. */
export interface HeardSignal {
  readonly space: number;
  readonly prompt: string;
  readonly signal: number;
}

/** Spaces whose last prompt is remembered, some 2 kB each. */
const SPACES_MAX = 100;
const WAIT_MS = 50;

/**
 * How much the last prompts of each space shared with the memory; a new prompt is compared with
 * them. They are written after the answer, so no request waits; only the next recall of this node
 * does. A lost entry makes a share of 200 slightly less exact.
 */
export class TenantSignals {
  readonly #tenant: string;
  /** The last counted prompt of each space. A repeated prompt is not counted again. */
  readonly #lastPrompts = new Map<number, string>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** For one recall. `heard`: gets what is to be written after it. */
  in(rows: Rows, heard: HeardSignal[]): SharedSignals {
    return {
      of: (space) => waitFor(this.#of(rows, space)),
      add: (space, prompt, signal) => heard.push({ space, prompt, signal }),
    };
  }

  /** A moment at most: an answer is worth more than an exact share. */
  written(): Promise<unknown> {
    return Promise.race([this.#writing, sleep(WAIT_MS, undefined, { ref: false })]);
  }

  write(connections: Connections, heard: readonly HeardSignal[]): void {
    const fresh = heard.filter(({ space, prompt }) => this.#lastPrompts.get(space) !== prompt);
    if (fresh.length === 0) return;
    for (const { space, prompt } of fresh) {
      this.#lastPrompts.delete(space);
      this.#lastPrompts.set(space, prompt);
    }
    forgetOldest(this.#lastPrompts, SPACES_MAX);
    const written = connections.write((rows) => this.#note(rows, fresh));
    this.#writing = written.catch(() => undefined);
  }

  async #of(rows: Rows, space: number): Promise<readonly number[]> {
    const found = await rows.all<{ signal: number }>(MEMORY.signals, this.#tenant, space);
    return found.map(({ signal }) => signal);
  }

  async #note(rows: Rows, heard: readonly HeardSignal[]): Promise<void> {
    for (const { space, signal } of heard) {
      // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
      await rows.run(MEMORY.addSignal, this.#tenant, space, signal);
      // oxlint-disable-next-line no-await-in-loop
      await rows.run(MEMORY.dropSignals, this.#tenant, space, SIGNALS_MAX);
    }
  }
}
