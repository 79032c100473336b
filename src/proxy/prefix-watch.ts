import { createHash } from 'node:crypto';
import { asRecord } from '../core/bytes/json-fields.ts';
import type { RequestView, Shell } from '../core/conversation/view.ts';
import type { ConversationState, KnownPrefix } from './conversation-state.ts';

/**
 * Notices who first changed something that a provider binds thinking to: the client or svc. Only the
 * request log wants to know, so nothing here is kept over a restart.
 */

/** Compares a request with the one before it. To be called once for each main request, in order. */
export function watchPrefix(view: RequestView, state: ConversationState): void {
  const { prefix } = state;
  const last = view.items.at(-1);
  if (last === undefined) return;
  const settings = settingsHash(view.shell);
  // A history without thoughts has nothing that a change could harm: it is new, or was compacted.
  if (!view.items.some(({ hasReasoning }) => hasReasoning)) state.prefixChangedBy = undefined;
  else if (prefix !== undefined && hasChanged(view, prefix, settings)) {
    state.prefixChangedBy ??= 'client';
  }
  state.prefix = { count: view.items.length, fingerprint: last.fingerprint, settings };
}

/** Only a thought behind the whole earlier request was made with all of it in front. */
function hasChanged({ items }: RequestView, prefix: KnownPrefix, settings: string): boolean {
  if (settings !== prefix.settings) return true;
  const isBehind = items.slice(prefix.count).some(({ hasReasoning }) => hasReasoning);
  return isBehind && items[prefix.count - 1]?.fingerprint !== prefix.fingerprint;
}

/** A hundred kilobytes of tools take a millisecond, and requests of one conversation share the shell. */
const HASHES = new WeakMap<Shell, string>();

/**
 * Hashes the members outside the list that count: Anthropic's `system` and `tools`; OpenAI's `instructions`,
 * `tools`, output schema and effort ("Keep the prefix unchanged", 2026-11).
 */
function settingsHash(shell: Shell): string {
  const known = HASHES.get(shell);
  if (known !== undefined) return known;
  const { system, tools, instructions, text, reasoning } = shell.value;
  const bound = [
    system,
    tools,
    instructions,
    asRecord(text)['format'],
    asRecord(reasoning)['effort'],
  ];
  const sum = createHash('sha256').update(JSON.stringify(bound, withoutMarks)).digest('base64url');
  HASHES.set(shell, sum);
  return sum;
}

/** A client may move its cache marks. */
function withoutMarks(name: string, value: unknown): unknown {
  return name === 'cache_control' ? undefined : value;
}
