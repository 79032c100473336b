/**
 * Lists the outputs of a conversation, item after item. The list of a conversation's earlier items is
 * continued, not read again: a request that adds two items to a thousand reads two.
 */
import type { Item, RequestView } from '../conversation/view.ts';
import {
  type ItemCall,
  type ItemOutput,
  type ItemTools,
  type ToolOutput,
  UNCHANGED,
} from './outputs.ts';
import { ReadCounts } from './read-counts.ts';

// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const MARK_CHARS = 12;

/** The outputs of the first items of a conversation that are one text, in order. */
export class OutputList {
  /** The calls of the list that this one is a copy of. */
  #earlierCalls: ReadonlyMap<string, ItemCall> | undefined;
  readonly #calls = new Map<string, ItemCall>();
  #counts = new ReadCounts();
  #outputs: ToolOutput[] = [];
  /** The file that the call of each names. */
  #paths: string[] = [];
  #isReferring = false;
  #itemCount = 0;

  /** How many items it has read. */
  get itemCount(): number {
    return this.#itemCount;
  }

  /** A list that is read on while this one stays. A copy is not copied again. */
  copy(): OutputList {
    const copy = new OutputList();
    copy.#earlierCalls = this.#calls;
    copy.#counts = this.#counts.copy();
    copy.#outputs = [...this.#outputs];
    copy.#paths = [...this.#paths];
    copy.#isReferring = this.#isReferring;
    copy.#itemCount = this.#itemCount;
    return copy;
  }

  /** Reads on, up to the item at `end`. `toolsOf` is readItemTools, or something that remembers it. */
  readOn(items: readonly Item[], end: number, toolsOf: (item: Item) => ItemTools): void {
    for (; this.#itemCount < end; this.#itemCount += 1) {
      const item = items[this.#itemCount];
      if (item !== undefined && hasTools(item)) this.#add(toolsOf(item));
    }
  }

  list(): readonly ToolOutput[] {
    return this.#isReferring ? markReferred(this.#outputs, this.#paths) : this.#outputs;
  }

  #add({ calls, outputs }: ItemTools): void {
    for (const call of calls) this.#calls.set(call.id, call);
    for (const output of outputs) {
      const call = this.#calls.get(output.callId) ?? this.#earlierCalls?.get(output.callId);
      const timesRead = this.#counts.count(call?.references ?? [], output.digest);
      const place = { item: this.#itemCount, tool: call?.tool ?? '', timesRead };
      this.#outputs.push(inRequest(output, place));
      this.#paths.push(call?.path ?? '');
      this.#isReferring ||= output.isClientStub && output.text.startsWith(UNCHANGED);
    }
  }
}

/** All outputs of a request that are one text, in order. */
export function outputsOf(
  { items }: Pick<RequestView, 'items'>,
  toolsOf: (item: Item) => ItemTools,
): readonly ToolOutput[] {
  const list = new OutputList();
  list.readOn(items, items.length, toolsOf);
  return list.list();
}

/**
 * All outputs but those of the newest item. The model has not seen those yet, so they are never
 * left out, and svc can read them after the request is sent.
 */
export function seenOutputsOf(
  view: RequestView,
  toolsOf: (item: Item) => ItemTools,
): readonly ToolOutput[] {
  return seenOutputs(view, (end) => outputsOf({ items: view.items.slice(0, end) }, toolsOf));
}

/** seenOutputsOf() for a caller that has the outputs of the items before `end` at hand. */
export function seenOutputs(
  { items, bytes }: RequestView,
  outputsBefore: (end: number) => readonly ToolOutput[],
): readonly ToolOutput[] {
  const newest = items.at(-1);
  if (newest === undefined) return [];
  // It may refer to an earlier one.
  const isReferring = bytes.subarray(newest.start, newest.end).includes(UNCHANGED);
  if (!isReferring) return outputsBefore(items.length - 1);
  return outputsBefore(items.length).filter(({ item }) => item < items.length - 1);
}

// Every member by name: a spread of this many costs several times as much.
function inRequest(
  output: ItemOutput,
  { item, tool, timesRead }: Pick<ToolOutput, 'item' | 'tool' | 'timesRead'>,
): ToolOutput {
  return {
    callId: output.callId,
    content: output.content,
    text: output.text,
    digest: output.digest,
    mark: output.digest.slice(0, MARK_CHARS),
    tokens: output.tokens,
    gist: output.gist,
    isStorable: output.isStorable,
    isClientStub: output.isClientStub,
    item,
    tool,
    timesRead,
    isClients: output.isClientStub,
  };
}

function hasTools({ toolCalls, toolResultIds }: Item): boolean {
  return toolCalls.length > 0 || toolResultIds.length > 0;
}

/**
 * When the client says "unchanged", the model looks at an earlier output of the same file: that
 * output must stay.
 */
function markReferred(
  outputs: readonly ToolOutput[],
  paths: readonly string[],
): readonly ToolOutput[] {
  const referred = new Set<string>();
  const marked = outputs.toReversed().map((output, back) => {
    const path = paths[outputs.length - 1 - back] ?? '';
    if (output.text.startsWith(UNCHANGED)) referred.add(path);
    return path !== '' && referred.has(path) ? { ...output, isClients: true } : output;
  });
  return marked.toReversed();
}
