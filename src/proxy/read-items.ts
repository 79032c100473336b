import { Pace, type Steps } from '../core/bytes/steps.ts';
import type { Exchange } from '../core/conversation/exchanges.ts';
import { type ExchangeTexts, readExchangeTexts } from '../core/shortening/omissions.ts';
import {
  type ItemTools,
  outputsOf,
  readItemTools,
  seenOutputsOf,
  type ToolOutput,
} from '../core/shortening/outputs.ts';
import type { Item, RequestView } from '../core/conversation/view.ts';

// To mask a text takes some ten times as long as to read it.
const MASKING = 10;

/**
 * Caches the facts read of items and views beyond their traits, as long as their conversation is
 * remembered: its next request has the same items.
 */
export class ReadItems {
  readonly #tools = new WeakMap<Item, ItemTools>();
  /** By the last item of an exchange: masking its texts is most of the work. */
  readonly #texts = new WeakMap<Item, { readonly texts: ExchangeTexts }>();

  /** Fills the cache for the other calls in steps: for a long history that is a second of work. */
  *readSteps(view: RequestView): Steps<void> {
    const pace = new Pace();
    for (const item of view.items) {
      if (item.toolCalls.length + item.toolResultIds.length === 0 || this.#tools.has(item))
        continue;
      this.toolsOf(view, item);
      if (pace.isDue(item.end - item.start)) yield;
    }
  }

  /** The same for the texts of exchanges that may be left out whole. */
  *textSteps(view: RequestView, exchanges: readonly Exchange[]): Steps<void> {
    const pace = new Pace();
    for (const exchange of exchanges) {
      const last = view.items[exchange.end - 1];
      if (exchange.hasToolState || last === undefined || this.#texts.has(last)) continue;
      this.textsOf(view, exchange);
      if (pace.isDue(MASKING * (exchange.humanText.length + exchange.assistantText.length))) yield;
    }
  }

  outputsOf(view: RequestView): readonly ToolOutput[] {
    return outputsOf(view, (item) => this.toolsOf(view, item));
  }

  seenOutputsOf(view: RequestView): readonly ToolOutput[] {
    return seenOutputsOf(view, (item) => this.toolsOf(view, item));
  }

  textsOf(view: RequestView, exchange: Exchange): ExchangeTexts {
    const last = view.items[exchange.end - 1];
    const known = last === undefined ? undefined : this.#texts.get(last);
    if (known !== undefined) return known.texts;
    const texts = readExchangeTexts(view, exchange);
    if (last !== undefined) this.#texts.set(last, { texts });
    return texts;
  }

  toolsOf(view: RequestView, item: Item): ItemTools {
    const known = this.#tools.get(item);
    if (known !== undefined) return known;
    const tools = readItemTools(view, item);
    this.#tools.set(item, tools);
    return tools;
  }
}
