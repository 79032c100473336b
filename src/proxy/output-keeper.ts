import { forgetOldest } from '../core/bytes/recent.ts';
import { spaceKeyOf, type SpaceOwner } from '../core/ledger/entries.ts';
import type { ToolOutput } from '../core/shortening/outputs.ts';
import { isElidable } from '../core/shortening/removal.ts';
import type { Clock } from '../ports/clock.ts';
import type { Memory, MemoryRecord } from '../ports/memory.ts';
import type { ProxyDependencies } from './dependencies.ts';
import { OUTPUT_PLACE } from '../core/memory/reference.ts';
import type { Reading } from './conversations.ts';

/**
 * Gives tool outputs to the memory ahead of need, so that a batch is ready when it pays. It works
 * after the request is on its way, and what it fails to do it does at the next one.
 */

// The memory's own queue is bounded; a capture that takes longer than this is given up.
const KEEP_MS = 10_000;
// Outputs whose fate is known, by tenant, space and digest: some days of work, 200 bytes each. They are
// kept for the whole process, because a fork of a conversation holds the same outputs. The memory is
// asked again about one that is forgotten here.
const KNOWN_MAX = 10_000;
const KNOWN_BYTES = 200;

interface KeepOptions {
  readonly limit: number;
  /** Also those that are too short to be left out by svc itself. */
  readonly keepsShort: boolean;
}

type KeeperDependencies = Pick<ProxyDependencies, 'memory' | 'clock' | 'texts'>;

export class OutputKeeper {
  readonly #memory: Memory;
  readonly #clock: Clock;
  readonly #texts: KeeperDependencies['texts'];
  /** By space and digest. Refused: it holds a secret, was forgotten by the person, or the memory does not take it. */
  readonly #fates = new Map<string, 'underway' | 'stored' | 'refused'>();

  readonly #generationNow: () => number;
  #generation: number;

  /** `generation` changes when what the memory said earlier does not count any more. */
  constructor({ memory, clock, texts }: KeeperDependencies, generation: () => number) {
    this.#memory = memory;
    this.#clock = clock;
    this.#texts = texts;
    this.#generationNow = generation;
    this.#generation = generation();
  }

  /** To be called when a request comes: after a change nothing is known to be stored. */
  refresh(): void {
    const generation = this.#generationNow();
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#fates.clear();
  }

  /** Says of a digest that the memory once held it; whether it still does is proven at each use. */
  storedIn(owner: SpaceOwner): (digest: string) => boolean {
    const space = spaceKeyOf(owner);
    return (digest) => this.#fates.get(space + digest) === 'stored';
  }

  /** The memory no longer holds it: it is stored again. */
  lost(owner: SpaceOwner, digest: string): void {
    const key = spaceKeyOf(owner) + digest;
    if (this.#fates.get(key) === 'stored') this.#fates.delete(key);
  }

  /** An estimate of the memory that it takes. */
  get bytes(): number {
    return KNOWN_BYTES * this.#fates.size;
  }

  /** Keeps at most `limit` outputs that the memory was never given, the oldest first. Never rejects. */
  async keep(reading: Reading, outputs: readonly ToolOutput[], which: KeepOptions): Promise<void> {
    const { place } = reading;
    const space = spaceKeyOf(place);
    const chosen = this.#freshOf(space, outputs, which);
    for (const { digest } of chosen) this.#fates.set(space + digest, 'underway');
    const clean: ToolOutput[] = [];
    for (const output of chosen) {
      // One a round of the event loop: looking for secrets takes 25 ms in 100 kB.
      // oxlint-disable-next-line no-await-in-loop
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#texts.hasSecret(output.text)) this.#fates.set(space + output.digest, 'refused');
      else clean.push(output);
    }
    await this.#capture(reading, clean);
    forgetOldest(this.#fates, KNOWN_MAX);
  }

  /** Outputs that the memory was never given. */
  #freshOf(
    space: string,
    outputs: readonly ToolOutput[],
    { limit, keepsShort }: KeepOptions,
  ): readonly ToolOutput[] {
    const tokensMin = keepsShort ? 0 : undefined;
    const fresh = new Map<string, ToolOutput>();
    for (const output of outputs) {
      if (fresh.size === limit) break;
      if (!isElidable(output, tokensMin) || this.#fates.has(space + output.digest)) continue;
      fresh.set(output.digest, output);
    }
    return [...fresh.values()];
  }

  /** All in one call: each call is a message to the memory and a sync of its disk. */
  async #capture({ place, identity }: Reading, outputs: readonly ToolOutput[]): Promise<void> {
    if (outputs.length === 0) return;
    const at = this.#clock.now();
    const records = outputs.map(({ digest, text }): MemoryRecord => {
      const { space, conversation } = place;
      return { ...OUTPUT_PLACE, digest, space, text, conversation, client: identity.client, at };
    });
    try {
      const states = await this.#memory.capture(records, AbortSignal.timeout(KEEP_MS));
      for (const [index, { digest }] of outputs.entries()) {
        const kept = states[index];
        const isStored = kept === 'stored' || kept === 'duplicate';
        this.#fates.set(spaceKeyOf(place) + digest, isStored ? 'stored' : 'refused');
      }
    } catch {
      // Tried again at the next request.
      for (const { digest } of outputs) this.#fates.delete(spaceKeyOf(place) + digest);
    }
  }
}
