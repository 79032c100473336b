import { spaceKeyOf, type SpaceOwner } from '../core/ledger/entries.ts';
import type { ToolOutput } from '../core/shortening/outputs.ts';
import { isElidable } from '../core/shortening/removal.ts';
import type { Clock } from '../ports/clock.ts';
import type { Memory, MemoryRecord } from '../ports/memory.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';
import { OUTPUT_PLACE } from '../core/memory/reference.ts';

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
  readonly #stored = new KnownTexts(KNOWN_MAX);
  /** Hold a secret, were forgotten by the person, or are refused by the memory: never asked again. */
  readonly #refused = new KnownTexts(KNOWN_MAX);
  readonly #underway = new KnownTexts(Infinity);

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
    for (const known of [this.#stored, this.#refused]) known.clear();
  }

  /** Says of a digest that the memory once held it; whether it still does is proven at each use. */
  storedIn(owner: SpaceOwner): (digest: string) => boolean {
    const space = spaceKeyOf(owner);
    return (digest) => this.#stored.has(space, digest);
  }

  /** The memory no longer holds it: it is stored again. */
  lost(owner: SpaceOwner, digest: string): void {
    this.#stored.delete(spaceKeyOf(owner), digest);
  }

  /** An estimate of the memory that it takes. */
  get bytes(): number {
    return KNOWN_BYTES * (this.#stored.size + this.#refused.size);
  }

  /** Keeps at most `limit` outputs that the memory was never given, the oldest first. Never rejects. */
  async keep(reading: Reading, outputs: readonly ToolOutput[], which: KeepOptions): Promise<void> {
    const { place } = reading;
    const space = spaceKeyOf(place);
    const chosen = this.#freshOf(space, outputs, which);
    for (const { digest } of chosen) this.#underway.add(space, digest);
    const clean: ToolOutput[] = [];
    for (const output of chosen) {
      // One a round of the event loop: looking for secrets takes 25 ms in 100 kB.
      // oxlint-disable-next-line no-await-in-loop
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#texts.hasSecret(output.text)) this.#refused.add(space, output.digest);
      else clean.push(output);
    }
    await this.#capture(reading, clean);
    for (const { digest } of chosen) this.#underway.delete(space, digest);
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
      if (!isElidable(output, tokensMin) || this.#isKnown(space, output)) continue;
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
        (isStored ? this.#stored : this.#refused).add(spaceKeyOf(place), digest);
      }
    } catch {
      // Tried again at the next request.
    }
  }

  #isKnown(space: string, { digest }: ToolOutput): boolean {
    return [this.#stored, this.#refused, this.#underway].some((it) => it.has(space, digest));
  }
}

/**
 * Digests of texts, by the space that they belong to. A request asks about a hundred of them: to build a
 * key of space and digest for each would cost more than to look it up.
 */
export class KnownTexts {
  readonly #max: number;
  readonly #bySpace = new Map<string, Set<string>>();
  #size = 0;

  /** `max`: digests of all spaces together. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  has(space: string, digest: string): boolean {
    return this.#bySpace.get(space)?.has(digest) === true;
  }

  /** Beyond the limit, the oldest digest of the oldest space makes way. */
  add(space: string, digest: string): void {
    const digests = this.#bySpace.get(space) ?? new Set();
    this.#bySpace.set(space, digests);
    this.#size -= digests.size;
    digests.add(digest);
    this.#size += digests.size;
    if (this.#size > this.#max) this.#forgetOldest();
  }

  delete(space: string, digest: string): void {
    const digests = this.#bySpace.get(space);
    if (digests?.delete(digest) !== true) return;
    this.#size -= 1;
    if (digests.size === 0) this.#bySpace.delete(space);
  }

  clear(): void {
    this.#bySpace.clear();
    this.#size = 0;
  }

  #forgetOldest(): void {
    for (const [space, digests] of this.#bySpace) {
      for (const oldest of digests) {
        this.delete(space, oldest);
        return;
      }
    }
  }
}
