import { type ItemCall, type ItemTools, readItemTools, type ToolOutput } from './outputs.ts';
import { referenceOf } from './reference.ts';
import { isSameFile } from './shell-reads.ts';
import type { Item, RequestView } from './view.ts';

/**
 * Counts what leaving outputs out costs beside tokens: the calls with which the model got them again.
 * Each call is counted in the one request that brings its answer.
 */
export interface Rereads {
  /** Left-out outputs that were read again by their reference, in whatever way. */
  readonly outputs: number;
  /**
   * Files that were read again, with the same tool or through a shell, after what they held was left
   * out. An upper bound: a model also reads a file again because it has changed.
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
  const calls = view.items.flatMap((item) => namedCalls(item, toolsOf));
  const gone = calls.filter(({ id }) => ids.has(id));
  const newest = calls.filter(({ id }) => answered.has(id));
  const readsAgain = (call: NamedCall): boolean => gone.some((earlier) => readSame(call, earlier));
  return {
    outputs: newest.filter(({ references }) => references.some((ref) => refs.has(ref))).length,
    files: newest.filter((call) => !ids.has(call.id) && readsAgain(call)).length,
  };
}

interface NamedCall extends ItemCall {
  readonly tool: string;
}

function namedCalls(item: Item, toolsOf: (item: Item) => ItemTools): readonly NamedCall[] {
  if (item.toolCalls.length === 0) return [];
  return toolsOf(item).calls.map((call) => {
    const tool = item.toolCalls.find(({ id }) => id === call.id)?.name ?? '';
    return { ...call, tool };
  });
}

/** Tools that give a file's text and do not change it, by the names that clients have for them. */
const READING_TOOL = /read|view|open/i;

function readSame(one: NamedCall, other: NamedCall): boolean {
  if (one.path !== '' && one.path === other.path && one.tool === other.tool) return true;
  const files = filesRead(other);
  return filesRead(one).some((file) => files.some((earlier) => isSameFile(file, earlier)));
}

function filesRead({ tool, path, prints }: NamedCall): readonly string[] {
  return path !== '' && READING_TOOL.test(tool) ? [path] : prints;
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
