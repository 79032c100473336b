import { projectInSystem } from '../conversation/stated-project.ts';
import type { ClientOrder, ItemTraits, ToolCall } from '../conversation/view.ts';
import { asText, isRecord, asList, asRecord } from '../bytes/json-fields.ts';
import type { PictureSize } from '../bytes/picture-size.ts';
import type { CachePrices } from './descriptor.ts';

/** Reads what several dialects have: system messages, texts, cache marks, and what OpenAI's two dialects share. */

/** Beginnings of system prompts with which a client, not the user, gives the model a task; see ClientOrder. */
const ORDERS: readonly (readonly [starts: string, order: ClientOrder])[] = [
  ['You are a title generator', 'side'], // opencode
  ['You are now acting as the managed memory', 'side'], // Qwen Code
  ['You are the component that summarizes internal chat history', 'compaction'], // Qwen Code
  ['*Briefly* summarize this partial conversation', 'compaction'], // Aider
  ['You are an expert software engineer that generates concise, one-line Git commit', 'side'], // Aider
  ['You are a context summarization assistant', 'compaction'], // pi
];

/** Reads a system or developer message of any dialect. */
export function readSystemItem(texts: readonly string[]): ItemTraits {
  const clientOrder = orderOfSystem(texts[0] ?? '');
  return {
    ...NO_TRAITS,
    role: 'system',
    ...projectInSystem(texts),
    ...(clientOrder !== undefined && { clientOrder }),
  };
}

export function orderOfSystem(text: string): ClientOrder | undefined {
  const start = text.trimStart();
  return ORDERS.find(([starts]) => start.startsWith(starts))?.[1];
}

/**
 * Returns the texts of a member `content`, `system` or `instructions`: of a string, or of a list of parts. It skips
 * pictures, files and thinking.
 */
export function textsOf(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.filter(isTextPart).map((part) => asText(part['text']));
}

function isTextPart(part: unknown): part is Readonly<Record<string, unknown>> {
  return isRecord(part) && typeof part['text'] === 'string' && !REASONING_PARTS.has(part['type']);
}

/** Part types whose text is the model's thinking, in dialects that put it among the content. */
const REASONING_PARTS: ReadonlySet<unknown> = new Set(
  'thinking reasoning reasoning_text summary_text'.split(' '),
);

/** The facts about an item in a form that svc does not know. The facts about every other item begin with these. */
export const NO_TRAITS: ItemTraits = Object.freeze({
  role: 'other',
  humanText: '',
  assistantText: '',
  toolCalls: [],
  toolResultIds: [],
  hasReasoning: false,
  thoughts: [],
  isInterruption: false,
  isReference: false,
});

/** Returns a call. An id that is no string becomes '', and '' matches no result. */
export function toolCall(id: unknown, name: unknown): ToolCall {
  return { id: asText(id), name: asText(name) };
}

// Prices of OpenAI's cache. Only newer models charge for writing. `tokenRatio`, OpenAI's count of tokens divided by
// svc's estimate, was measured on Codex's usage (bench/README.md).
export const OPENAI_CACHE: CachePrices = {
  read: 0.1,
  write: 1.25,
  writeHour: 1.25,
  isKnown: true,
  tokenRatio: 1.114,
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const OPENAI_MODEL = /(?:^|[/:])gpt-(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)/;

/**
 * Returns how long OpenAI caches a prompt by default, in milliseconds, as its guide says: at least 30 minutes from
 * GPT-5.6 on; 24 hours for GPT-4.1 and for GPT-5 before 5.6. The guide excepts organisations with zero data retention
 * from the 24 hours, which svc cannot see. Any other model has CACHE_DEFAULT_MS.
 */
export function openAiCacheMs(model: string): number {
  const [, major = '0', minor = '0'] = OPENAI_MODEL.exec(model.toLowerCase()) ?? [];
  const version = Number(major) * 100 + Number(minor);
  if (version >= 506) return 30 * MINUTE_MS;
  if (version >= 500 || version === 401) return 24 * HOUR_MS;
  return CACHE_DEFAULT_MS;
}

// OpenAI's vision guide: a picture is scaled down to fit into a square of 2,048 pixels, and then until its shorter edge
// has 768. It has 85 tokens, and 170 for each tile of 512 by 512 pixels.
const SQUARE = 2_048;
const SHORT_EDGE = 768;
const TILE = 512;
const BASE_TOKENS = 85;
const TILE_TOKENS = 170;
/** Tiles of a picture of unknown size: as many as a picture of 768 by 1,536 pixels has. */
const TILES_UNKNOWN = 6;

export function openAiPictureTokens(size: PictureSize | undefined, detail: string): number {
  if (detail === 'low') return BASE_TOKENS;
  if (size === undefined) return BASE_TOKENS + TILES_UNKNOWN * TILE_TOKENS;
  const fit = Math.min(1, SQUARE / Math.max(size.width, size.height));
  const short = Math.min(1, SHORT_EDGE / (Math.min(size.width, size.height) * fit));
  const tiles = (pixels: number): number => Math.max(1, Math.ceil((pixels * fit * short) / TILE));
  return BASE_TOKENS + TILE_TOKENS * tiles(size.width) * tiles(size.height);
}

/**
 * How long a prefix is cached if the request states no lifetime, in milliseconds: by Anthropic, and by OpenAI for
 * models that openAiCacheMs() does not list.
 */
export const CACHE_DEFAULT_MS = 5 * 60_000;

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const LIFETIME = /^(\d{1,6})([smh])$/;

/** Reads a lifetime in s, m or h, such as `30m`, as milliseconds; 0 for anything else. */
export function lifetimeMs(value: unknown): number {
  const [, count = '', unit = ''] = typeof value === 'string' ? (LIFETIME.exec(value) ?? []) : [];
  return Number(count) * (UNIT_MS[unit] ?? 0);
}

/** Returns the longest lifetime that a cache mark of an item or of its content states, in milliseconds; 0 for none. */
export function markedMs(value: unknown): number {
  const { content, cache_control: mark } = asRecord(value);
  let longest = mark === undefined ? 0 : lifetimeMs(asRecord(mark)['ttl']);
  for (const part of asList(content)) longest = Math.max(longest, markedMs(part));
  return longest;
}
