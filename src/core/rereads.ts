import { type ItemTools, readItemTools, type ToolOutput } from './outputs.ts';
import { referenceOf } from './reference.ts';
import type { Item, RequestView } from './view.ts';

/**
 * Counts what leaving outputs out costs beside tokens: the calls with which the model got them again.
 * Each call is counted in the one request that brings its answer.
 */
export interface Rereads {
  /** Left-out outputs that were read again by their reference, in whatever way. */
  readonly outputs: number;
  /**
   * Files that were read again with the same tool after what they held was left out. An upper bound:
   * a model also reads a file again because it has changed.
   */
  readonly files: number;
}

const NO_REREADS: Rereads = { outputs: 0, files: 0 };

/** `toolsOf` is readItemTools, or something that remembers what it said. */
export function countRereads(
  view: RequestView,
  elided: readonly ToolOutput[],
  toolsOf: (item: Item) => ItemTools = (item) => readItemTools(view, item),
): Rereads {
  const answered = newestAnswers(view.items);
  if (elided.length === 0 || answered.size === 0) return NO_REREADS;
  const refs = new Set(elided.map(({ digest }) => referenceOf(digest)));
  const ids = new Set(elided.map(({ callId }) => callId));
  const callsOf = (item: Item) =>
    toolsOf(item).calls.map((call) => {
      const tool = item.toolCalls.find(({ id }) => id === call.id)?.name ?? '';
      return { ...call, file: call.path === '' ? '' : `${tool} ${call.path}` };
    });
  const calls = view.items.filter(({ toolCalls }) => toolCalls.length > 0).flatMap(callsOf);
  const files = new Set(calls.filter(({ id }) => ids.has(id)).map(({ file }) => file));
  const newest = calls.filter(({ id }) => answered.has(id));
  return {
    outputs: newest.filter(({ references }) => references.some((ref) => refs.has(ref))).length,
    files: newest.filter(({ id, file }) => file !== '' && !ids.has(id) && files.has(file)).length,
  };
}

/** The calls that the end of the request answers; none when it ends with what a person said. */
function newestAnswers(items: readonly Item[]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { toolResultIds, role } of items.toReversed()) {
    if (toolResultIds.length === 0 || role === 'assistant') break;
    for (const id of toolResultIds) ids.add(id);
  }
  return ids;
}
