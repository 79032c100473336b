import { type ItemCall, type ItemTools, readItemTools, type ToolOutput } from './outputs.ts';
import { referenceOf } from '../memory/reference.ts';
import { FileNames } from './shell-reads.ts';
import type { Item, RequestView } from '../conversation/view.ts';

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
  toolsOf: ToolsOf = (item) => readItemTools(view, item),
): Rereads {
  if (elided.length === 0) return NO_REREADS;
  const newest = newestCalls(view.items, toolsOf);
  const reading = newest.filter(({ references }) => references.length > 0);
  const naming = newest.filter(({ path, prints }) => path !== '' || prints.length > 0);
  if (reading.length + naming.length === 0) return NO_REREADS;
  const refs = new Set(reading.length === 0 ? [] : elided.map(({ digest }) => referenceOf(digest)));
  const ids = new Set(elided.map(({ callId }) => callId));
  const gone = new GoneReads(naming.length === 0 ? [] : callsWith(view.items, ids, toolsOf));
  return {
    outputs: reading.filter(({ references }) => references.some((ref) => refs.has(ref))).length,
    files: naming.filter((call) => !ids.has(call.id) && gone.hasSameAs(call)).length,
  };
}

type ToolsOf = (item: Item) => ItemTools;

/** Tools that give a file's text and do not change it, by the names that clients have for them. */
const READING_TOOL = /read|view|open/i;

/** The calls whose outputs are left out, found by what they read. */
class GoneReads {
  readonly #byTool = new Set<string>();
  readonly #files = new FileNames();

  constructor(calls: readonly ItemCall[]) {
    for (const call of calls) {
      if (call.path !== '') this.#byTool.add(placeOf(call));
      for (const file of filesRead(call)) this.#files.add(file);
    }
  }

  /** The same place with the same tool, or the same file with any tool that reads. */
  hasSameAs(call: ItemCall): boolean {
    if (call.path !== '' && this.#byTool.has(placeOf(call))) return true;
    return filesRead(call).some((file) => this.#files.has(file));
  }
}

function placeOf({ tool, path }: ItemCall): string {
  return `${tool}\0${path}`;
}

function filesRead({ tool, path, prints }: ItemCall): readonly string[] {
  return path !== '' && READING_TOOL.test(tool) ? [path] : prints;
}

/** The calls that the end of the request answers; none when it ends with what a person said. */
function newestCalls(items: readonly Item[], toolsOf: ToolsOf): readonly ItemCall[] {
  const answered = new Set<string>();
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const { toolResultIds = [], role } = items[at] ?? {};
    if (toolResultIds.length === 0 || role === 'assistant') break;
    for (const id of toolResultIds) answered.add(id);
  }
  return answered.size === 0 ? [] : callsWith(items, answered, toolsOf);
}

function callsWith(
  items: readonly Item[],
  ids: ReadonlySet<string>,
  toolsOf: ToolsOf,
): readonly ItemCall[] {
  const calls: ItemCall[] = [];
  for (const item of items) {
    if (item.toolCalls.length === 0) continue;
    for (const call of toolsOf(item).calls) if (ids.has(call.id)) calls.push(call);
  }
  return calls;
}
