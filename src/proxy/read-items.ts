import { Pace, type Steps } from '../core/bytes/steps.ts';
import type { Exchange } from '../core/conversation/exchanges.ts';
import { type ExchangeTexts, readExchangeTexts } from '../core/shortening/omissions.ts';
import {
  type ItemTools,
  OutputList,
  outputsOf,
  readItemTools,
  seenOutputs,
  type ToolOutput,
} from '../core/shortening/outputs.ts';
import type { Item, RequestView } from '../core/conversation/view.ts';
import type { Texts } from '../ports/texts.ts';

/** Claude Code moves its cache mark within the newest items: these are listed again in each request. */
const UNSETTLED_ITEMS = 6;
/** A step may bring a few dozen results at once. */
const STEP_ITEMS_MAX = 128;

// To mask a text takes some ten times as long as to read it.
const MASKING = 10;

/**
 * Caches the facts read of items and views beyond their traits, as long as their conversation is
 * remembered: its next request has the same items.
 */
export class ReadItems {
  readonly #tools = new WeakMap<Item, ItemTools>();
  /** Lists of a conversation's settled outputs, by the last item that each has read. */
  readonly #lists = new WeakMap<Item, OutputList>();
  readonly #captures: Pick<Texts, 'captureHuman' | 'captureAssistant'>;
  /** By the last item of an exchange: masking its texts is most of the work. */
  readonly #texts = new WeakMap<Item, { readonly texts: ExchangeTexts }>();

  constructor(captures: Pick<Texts, 'captureHuman' | 'captureAssistant'>) {
    this.#captures = captures;
  }

  /**
   * Fills the cache for the other calls in steps, up to the item at `end`: for a long history that is a second
   * of work.
   */
  *readSteps(view: RequestView, end = view.items.length): Steps<void> {
    const pace = new Pace();
    for (let at = this.#listOf(view.items)?.itemCount ?? 0; at < end; at += 1) {
      const item = view.items[at];
      if (item === undefined || this.#tools.has(item)) continue;
      if (item.toolCalls.length + item.toolResultIds.length === 0) continue;
      this.toolsOf(view, item);
      if (pace.isDue(item.end - item.start)) yield;
    }
  }

  /**
   * The same for all that may be left out, and the texts of exchanges too. The outputs of the newest item are
   * read when the request is on its way: the model has not seen them yet.
   */
  *candidateSteps(view: RequestView, exchanges: readonly Exchange[]): Steps<void> {
    yield* this.readSteps(view, view.items.length - 1);
    const pace = new Pace();
    for (const exchange of exchanges) {
      const last = view.items[exchange.end - 1];
      if (exchange.hasToolState || last === undefined || this.#texts.has(last)) continue;
      this.textsOf(view, exchange);
      if (pace.isDue(MASKING * (exchange.humanText.length + exchange.assistantText.length))) yield;
    }
  }

  outputsOf(view: RequestView): readonly ToolOutput[] {
    return this.#outputsBefore(view, view.items.length);
  }

  seenOutputsOf(view: RequestView): readonly ToolOutput[] {
    return seenOutputs(view, (end) => this.#outputsBefore(view, end));
  }

  /** Reads the list of the settled items on, and the newest items on a copy of it. */
  #outputsBefore(view: RequestView, end: number): readonly ToolOutput[] {
    const { items } = view;
    const toolsOf = (item: Item): ItemTools => this.toolsOf(view, item);
    const settled = this.#listOf(items) ?? new OutputList();
    const last = items[settled.itemCount - 1];
    settled.readOn(items, items.length - UNSETTLED_ITEMS, toolsOf);
    const newLast = items[settled.itemCount - 1];
    if (last !== undefined && last !== newLast) this.#lists.delete(last);
    if (newLast !== undefined) this.#lists.set(newLast, settled);
    if (settled.itemCount > end) return outputsOf({ items: items.slice(0, end) }, toolsOf);
    const whole = settled.copy();
    whole.readOn(items, end, toolsOf);
    return whole.list();
  }

  /** The list of the first items of the request; undefined when this process has none. */
  #listOf(items: readonly Item[]): OutputList | undefined {
    const first = Math.max(0, items.length - STEP_ITEMS_MAX);
    for (let at = items.length - 1; at >= first; at -= 1) {
      const item = items[at];
      const list = item === undefined ? undefined : this.#lists.get(item);
      // An item object belongs to one place, after exactly the same items.
      if (list?.itemCount === at + 1) return list;
    }
    return undefined;
  }

  textsOf(view: RequestView, exchange: Exchange): ExchangeTexts {
    const last = view.items[exchange.end - 1];
    const known = last === undefined ? undefined : this.#texts.get(last);
    if (known !== undefined) return known.texts;
    const texts = readExchangeTexts(view, exchange, this.#captures);
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
