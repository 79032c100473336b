import { asList, asRecord, asText, isRecord } from '../bytes/json-fields.ts';
import { elementsOf, memberValue, skipSpace, valueEnd } from '../bytes/json-scan.ts';
import { answeredRounds } from '../conversation/exchanges.ts';
import type { RequestView } from '../conversation/view.ts';
import { type Edit, insertAt } from '../plan/item-edits.ts';
import type { ToolOutput } from './outputs.ts';
import { isElidable, isKeptTool, keptFrom } from './removal.ts';

/**
 * Asks the provider to clear old tool outputs itself, with the setting `boundShortening: "provider"`. The history
 * that client and svc send does not change, so thinking that is bound to it stays valid.
 * Sources: platform.claude.com, "Context editing" (2026-08-22), for the fields, the header, and the rule that
 * `clear_thinking` comes first in the list; "Preserved thinking" (2026-09-26), for the rule that the provider checks
 * the history that was sent.
 */

/** The value of `anthropic-beta` that a request with `context_management` requires. */
export const CLEARING_BETA = 'context-management-2025-06-27';

const FIELD = 'context_management';
const TYPE = 'clear_tool_uses_20250919';
/** Matches every version of this edit. If the client sends any of them, svc adds none. */
const TYPE_OF_ANY_DAY = /^clear_tool_uses_/;
/** The provider clears outputs in requests with at least this many input tokens. */
const TRIGGER_TOKENS = 60_000;
/** Least tokens that the provider clears at once, because each clearing breaks the prompt cache. */
const CLEARED_TOKENS_MIN = 20_000;

/** The outputs that the provider may clear, and the parameters of the edit. */
export interface Clearable {
  readonly outputs: readonly ToolOutput[];
  /** The number of newest tool calls whose outputs stay. */
  readonly keptCalls: number;
  /** The tools whose outputs always stay. */
  readonly keptTools: readonly string[];
}

/**
 * Returns the outputs that the provider may clear. Undefined if none is old, if the provider ran a tool itself, or if
 * an old output must stay although its tool is not in `keptTools`: the provider would clear it too. `outputs`: the
 * result of seenOutputsOf().
 */
export function clearableOutputs(
  view: RequestView,
  outputs: readonly ToolOutput[],
  keepRounds: number,
): Clearable | undefined {
  const { items, bytes } = view;
  // An assistant's item with a result is from a tool that the provider ran. Whether that would be cleared is unknown.
  if (items.some((item) => item.role === 'assistant' && item.toolResultIds.length > 0)) {
    return undefined;
  }
  // The newest round always stays, because the model may not have answered it yet.
  const before = keptFrom(view, answeredRounds(items), Math.max(1, keepRounds));
  const names = new Map(
    items.flatMap(({ toolCalls }) => toolCalls.map(({ id, name }) => [id, name] as const)),
  );
  const known = new Map(outputs.map((output) => [output.callId, output]));
  const keptTools = new Set<string>();
  const old: ToolOutput[] = [];
  for (const id of items.slice(0, before).flatMap(({ toolResultIds }) => toolResultIds)) {
    const name = names.get(id) ?? '';
    const output = known.get(id);
    if (isKeptTool(name)) keptTools.add(name);
    else if (output !== undefined && mayClear(bytes, output)) old.push(output);
    else return undefined;
  }
  if (old.length === 0) return undefined;
  const keptCalls = items.slice(before).reduce((sum, it) => sum + it.toolResultIds.length, 0);
  return { outputs: old, keptCalls, keptTools: [...keptTools] };
}

const QUOTE = 0x22;

/** Says whether an output may be cleared. No reminder of the client may follow it, because it would be cleared too. */
function mayClear(bytes: Buffer, output: ToolOutput): boolean {
  return isElidable(output, 0) && bytes[output.content.end] === QUOTE;
}

/** Returns the edit that asks for clearing; undefined if the client asks already, or wrote FIELD in an unknown form. */
export function clearingEdit(view: RequestView, clearable: Clearable): Edit | undefined {
  const { bytes, shell } = view;
  const asked = textOf(clearable);
  const open = skipSpace(bytes, 0);
  if (!Object.hasOwn(shell.value, FIELD)) {
    return insertAt(open + 1, `"${FIELD}":{"edits":[${asked}]},`);
  }
  const own = shell.value[FIELD];
  const span = memberValue(bytes, open, FIELD);
  if (span === undefined) return undefined;
  if (own === null) return { ...span, bytes: Buffer.from(`{"edits":[${asked}]}`) };
  if (!isRecord(own)) return undefined;
  if (!Object.hasOwn(own, 'edits')) {
    const comma = Object.keys(own).length === 0 ? '' : ',';
    return insertAt(span.start + 1, `"edits":[${asked}]${comma}`);
  }
  if (!Array.isArray(own['edits'])) return undefined;
  const types = asList(own['edits']).map((edit) => asText(asRecord(edit)['type']));
  if (types.some((type) => TYPE_OF_ANY_DAY.test(type))) return undefined;
  const list = memberValue(bytes, span.start, 'edits');
  if (list === undefined) return undefined;
  const last = elementsOf(bytes, list).at(-1);
  if (last === undefined) return insertAt(list.start + 1, asked);
  return insertAt(valueEnd(bytes, last), `,${asked}`);
}

function textOf({ keptCalls, keptTools }: Clearable): string {
  return JSON.stringify({
    type: TYPE,
    trigger: { type: 'input_tokens', value: TRIGGER_TOKENS },
    keep: { type: 'tool_uses', value: keptCalls },
    clear_at_least: { type: 'input_tokens', value: CLEARED_TOKENS_MIN },
    ...(keptTools.length > 0 && { exclude_tools: keptTools }),
  });
}
