import { asRecord } from '../bytes/json-fields.ts';
import { parseJson } from '../bytes/json-scan.ts';
import { isModelWork } from '../conversation/exchanges.ts';
import type { Item, ItemChain, RequestView } from '../conversation/view.ts';
import { textsOf } from '../dialects/system-text.ts';
import type { AddressOf, ConversationOwner } from '../ledger/entries.ts';
import { textDigest } from '../memory/reference.ts';
import { newestPromptIndex } from '../recall/injections.ts';
import { markedBlocks } from '../recall/own-blocks.ts';

/**
 * Finds what svc's own hooks have put into a request, so that the proxy does not say it again. A mark alone proves nothing:
 * a file or a page may quote one. So it counts only in a message that no tool wrote, where this client puts hook text.
 */

export interface HookTexts {
  /** The blocks of hooks in the request, each with the item that holds it. */
  readonly placed: readonly HookBlock[];
  /** One of them is beside the newest prompt. */
  readonly isAtPrompt: boolean;
}

export interface HookBlock {
  readonly block: string;
  readonly item: Item;
}

const NONE: HookTexts = { placed: [], isAtPrompt: false };
/**
 * The texts of a view that were found before: recall asks for them twice and the capture once, and to read those of 100
 * prompts takes milliseconds. A view is of one request, so its client and key are always the same.
 */
const FOUND = new WeakMap<RequestView, HookTexts>();

/** `keyOf` is asked only where the request has such a text at all. Absent: no client has hooks of svc. */
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

/** In ascending order. */
function indexesOf(newest: ItemChain | undefined): readonly number[] {
  const indexes: number[] = [];
  for (let chain = newest; chain !== undefined; chain = chain.before) indexes.push(chain.index);
  return indexes.toReversed();
}

/** A message of the person or of the client, without the result of a tool. */
function mayHold({ role, toolResultIds }: Item): boolean {
  return (role === 'user' || role === 'system') && toolResultIds.length === 0;
}

function blocksOf(
  { bytes }: RequestView,
  item: Item,
  { client, key }: { readonly client: string; readonly key: string },
): readonly string[] {
  const texts = textsOf(asRecord(parseJson(bytes, item)?.value)['content']);
  return texts
    .filter((text) => isHookPlace(client, item, text))
    .flatMap((text) => markedBlocks(text, key));
}

/** Seen in requests of the real clients on 2026-11-24: Claude Code 2.1.329, Codex 0.169.0, opencode 1.18.33, pi 0.73.1. */
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
 * Where the hooks of a session find a block that the proxy placed in it: at a prompt, or behind it in its tool loop. They
 * know the words of the prompt, and no fingerprint of the request.
 */
export function proxyBlockAddress(
  { tenant, conversation }: ConversationOwner,
  humanText: string,
  form: 'prompt' | 'look',
): AddressOf<'own-block'> {
  const fingerprint = `${form}-${textDigest('user', humanText)}`;
  return { kind: 'own-block', tenant, conversation, fingerprint };
}
