import { asRecord } from '../bytes/json-fields.ts';
import { parseSpan } from '../bytes/json-scan.ts';
import { isModelWork } from '../conversation/exchanges.ts';
import type { Item, ItemChain, RequestView } from '../conversation/view.ts';
import { textsOf } from '../dialects/common.ts';
import type { AddressOf, ConversationOwner } from '../ledger/entries.ts';
import { textDigest } from '../memory/reference.ts';
import { newestPromptIndex } from '../recall/injections.ts';
import { markedBlocks } from '../recall/own-blocks.ts';

/**
 * Finds the texts of svc's own hooks in a request, so that the proxy does not repeat them. They are blocks with a mark
 * (see recall/own-blocks.ts). Because a file or a page may quote a block, a block counts only in a message that no tool
 * wrote, at a place where this client puts the text of a hook.
 */

export interface HookTexts {
  readonly placed: readonly HookBlock[];
  /** True if one of the blocks is beside the newest prompt. */
  readonly isAtPrompt: boolean;
}

export interface HookBlock {
  readonly block: string;
  readonly item: Item;
}

const NONE: HookTexts = { placed: [], isAtPrompt: false };
/**
 * The hook texts of each view, because recall needs them twice and capture once, and reading those of 100 prompts takes
 * milliseconds. A view belongs to one request, so every call for it has the same client and key.
 */
const FOUND = new WeakMap<RequestView, HookTexts>();

/** Returns the hook texts. `keyOf`: returns the key of the marks; undefined if svc has no hooks here. */
export function hookTextsIn(
  view: RequestView,
  client: string,
  keyOf: (() => string | undefined) | undefined,
): HookTexts {
  const marked = view.items.at(-1)?.soFar.hookMarks;
  if (marked === undefined || keyOf === undefined) return NONE;
  const known = FOUND.get(view);
  if (known !== undefined) return known;
  const key = keyOf();
  const texts = key === undefined ? NONE : findTexts(view, marked, { client, key });
  FOUND.set(view, texts);
  return texts;
}

function findTexts(
  view: RequestView,
  marked: ItemChain,
  by: { readonly client: string; readonly key: string },
): HookTexts {
  const found = indexesOf(marked).flatMap((at) => {
    const item = view.items[at];
    if (item === undefined || !mayHold(item)) return [];
    return blocksOf(view, item, by).map((block) => ({ block, item, at }));
  });
  const prompt = newestPromptIndex(view);
  const end = view.items.findIndex((item, at) => at > prompt && isModelWork(item));
  return {
    placed: found,
    isAtPrompt: found.some(({ at }) => at >= prompt && (end === -1 || at < end) && prompt !== -1),
  };
}

function indexesOf(newest: ItemChain | undefined): readonly number[] {
  const indexes: number[] = [];
  for (let chain = newest; chain !== undefined; chain = chain.before) indexes.push(chain.index);
  return indexes.toReversed();
}

/** Says whether an item is a message with the role `user` or `system`, and has no tool results. */
function mayHold({ role, toolResultIds }: Item): boolean {
  return (role === 'user' || role === 'system') && toolResultIds.length === 0;
}

function blocksOf(
  { bytes }: RequestView,
  item: Item,
  { client, key }: { readonly client: string; readonly key: string },
): readonly string[] {
  const texts = textsOf(asRecord(parseSpan(bytes, item))['content']);
  return texts
    .filter((text) => isHookPlace(client, item, text))
    .flatMap((text) => markedBlocks(text, key));
}

/**
 * Says whether this client puts the text of a hook into a message with this role and text. Seen in requests of the real
 * clients on 2026-11-24: Claude Code 2.1.329, Codex 0.169.0, opencode 1.18.33, pi 0.73.1.
 */
function isHookPlace(client: string, { role }: Item, text: string): boolean {
  switch (client) {
    case 'claude-code':
      return role === 'system' || text.startsWith('<system-reminder>');
    case 'codex':
      return role === 'system';
    case 'opencode':
    case 'copilot':
    case 'pi':
      return role === 'user' && text.trimEnd().endsWith('</svc-memory>');
    default:
      return false;
  }
}

/**
 * Returns the ledger address at which a session's hooks find the proxy's block for a prompt, or for the second look
 * after it. The address has a digest of the prompt's words, because hooks do not know a request's fingerprints.
 */
export function proxyBlockAddress(
  { tenant, conversation }: ConversationOwner,
  humanText: string,
  form: 'prompt' | 'look',
): AddressOf<'own-block'> {
  const fingerprint = `${form}-${textDigest('user', humanText)}`;
  return { kind: 'own-block', tenant, conversation, fingerprint };
}
