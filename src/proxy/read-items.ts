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

/**
 * Remembers what was read of items and views beyond their traits, as long as their conversation is
 * remembered itself: the next request of it has the same items.
 */
export class ReadItems {
  readonly #tools = new WeakMap<Item, ItemTools>();
  /** By the last item of an exchange: masking its texts is most of the work. */
  readonly #texts = new WeakMap<Item, { readonly texts: ExchangeTexts }>();

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
