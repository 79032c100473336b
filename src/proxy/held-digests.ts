import { cleanExchange, type CleanExchange, heldDigests } from '../core/memory/captures.ts';
import type { Exchange } from '../core/conversation/exchanges.ts';
import type { Item } from '../core/conversation/view.ts';

/**
 * The digests of what a request holds. An exchange is masked and compared once, as long as its
 * conversation is remembered: for a session of 4 MB that is 60 ms, and every question needs it.
 */
export class HeldDigests {
  // By the last item of an exchange, which stands for all before it: items are kept from request to
  // request as far as nothing in front of them has changed.
  readonly #clean = new WeakMap<Item, CleanExchange>();
  readonly #held = new WeakMap<Item, Held>();

  /** `blocks`: the recalled blocks that the request carries. */
  of(
    items: readonly Item[],
    exchanges: readonly Exchange[],
    blocks: readonly string[],
  ): readonly string[] {
    const heard = blocks.join('\0');
    return exchanges.flatMap((exchange) => {
      const last = items[exchange.end - 1];
      if (last === undefined) return heldDigests(cleanExchange(exchange), blocks);
      const known = this.#held.get(last);
      if (known?.heard === heard) return known.digests;
      const digests = heldDigests(this.#cleanOf(exchange, last), blocks);
      this.#held.set(last, { heard, digests });
      return digests;
    });
  }

  #cleanOf(exchange: Exchange, last: Item): CleanExchange {
    const known = this.#clean.get(last);
    if (known !== undefined) return known;
    const clean = cleanExchange(exchange);
    this.#clean.set(last, clean);
    return clean;
  }
}

interface Held {
  readonly heard: string;
  readonly digests: readonly string[];
}
