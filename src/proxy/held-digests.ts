import type { CleanExchange } from '../core/memory/captures.ts';
import type { Texts } from '../ports/texts.ts';
import { finish, Pace, type Steps } from '../core/bytes/steps.ts';
import type { Exchange } from '../core/conversation/exchanges.ts';
import type { Item } from '../core/conversation/view.ts';

// To mask a text takes some ten times as long as to read it.
const MASKING = 10;

/**
 * The digests of the texts that a request holds. While its conversation is remembered, each
 * exchange is masked and compared once: for a session of 4 MB that takes 60 ms, and every recall
 * needs it.
 */
export class HeldDigests {
  // By the last item of an exchange, which implies all items before it. An item object is kept from
  // request to request as long as nothing in front of it has changed.
  readonly #clean = new WeakMap<Item, CleanExchange>();
  readonly #held = new WeakMap<Item, Held>();
  readonly #texts: Pick<Texts, 'cleanExchange' | 'heldDigests'>;

  constructor(texts: Pick<Texts, 'cleanExchange' | 'heldDigests'>) {
    this.#texts = texts;
  }

  /** `blocks`: the recalled blocks that the request carries. */
  of(
    items: readonly Item[],
    exchanges: readonly Exchange[],
    blocks: readonly string[],
  ): readonly string[] {
    return finish(this.steps(items, exchanges, blocks));
  }

  /** The same in steps, between which other requests may be served. */
  *steps(
    items: readonly Item[],
    exchanges: readonly Exchange[],
    blocks: readonly string[],
  ): Steps<readonly string[]> {
    const heard = blocks.join('\0');
    const pace = new Pace();
    const all: string[] = [];
    for (const exchange of exchanges) {
      const last = items[exchange.end - 1];
      const known = last === undefined ? undefined : this.#held.get(last);
      if (last !== undefined && known?.heard === heard) {
        all.push(...known.digests);
        continue;
      }
      const clean =
        last === undefined ? this.#texts.cleanExchange(exchange) : this.#cleanOf(exchange, last);
      const digests = this.#texts.heldDigests(clean, blocks);
      if (last !== undefined) this.#held.set(last, { heard, digests });
      all.push(...digests);
      if (pace.isDue(MASKING * (exchange.humanText.length + exchange.assistantText.length))) yield;
    }
    return all;
  }

  #cleanOf(exchange: Exchange, last: Item): CleanExchange {
    const known = this.#clean.get(last);
    if (known !== undefined) return known;
    const clean = this.#texts.cleanExchange(exchange);
    this.#clean.set(last, clean);
    return clean;
  }
}

interface Held {
  readonly heard: string;
  readonly digests: readonly string[];
}
