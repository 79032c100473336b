import type { RequestView } from '../conversation/view.ts';
import { tellsExchanges } from './own-blocks.ts';
import type { Placement } from './injections.ts';

/**
 * Whether the model used the recalled text (block), as far as svc can see. It counts as used if the model read a
 * recalled reference, or if its answer has a word of the block that is nowhere in the client's request: a name of
 * code, a number or a path. A fact that the model only keeps in mind is invisible, so counts of used blocks are lower
 * bounds.
 */
export interface RecallUse {
  /** The number of the prompt's exchange. It identifies the prompt within its conversation. */
  readonly exchange: number;
  /** References of the recalled memories, at most REFS_MAX. */
  readonly refs: readonly string[];
  readonly isUsed: boolean;
  /** True if the block lists earlier sessions and quotes no exchange. */
  readonly isBrief?: true;
}

// Bound on references: a block of 512 tokens has about eight.
const REFS_MAX = 20;
/** Matches references. Blocks for agents have only their first eight letters, see shortReference(). */
const REFERENCES = /\bm_[a-z2-7]{8,16}\b/g;
// Bound on words, because each costs one scan of the request.
const WORDS_MAX = 50;

/** Returns the use of the newest prompt's block; undefined if that prompt has no block. */
export function recallUse(
  view: RequestView,
  placements: readonly Placement[],
  answer: string,
): RecallUse | undefined {
  const newest = view.items.at(-1)?.soFar;
  const prompt = newest?.humans === undefined ? undefined : view.items[newest.humans.index];
  const placed = placements.find(({ item }) => item === prompt);
  if (newest === undefined || prompt === undefined || placed === undefined) return undefined;
  const refs = [...new Set(placed.block.match(REFERENCES) ?? [])].slice(0, REFS_MAX);
  const isUsed = readsOneOf(view, refs) || saysOneOf(view, rareWords(placed.block), answer);
  const brief = tellsExchanges(placed.block) ? {} : { isBrief: true as const };
  return { exchange: newest.exchange.number, refs, isUsed, ...brief };
}

/** Says whether the model's newest step reads a reference. Earlier steps were examined with their own requests. */
function readsOneOf({ items, bytes }: RequestView, refs: readonly string[]): boolean {
  const last = items.findLast(
    ({ role, toolCalls }) => role === 'assistant' || toolCalls.length > 0,
  );
  if (last === undefined || last.toolCalls.length === 0) return false;
  const said = bytes.subarray(last.start, last.end);
  return refs.some((ref) => said.includes(ref));
}

/** Says whether the answer has one of the words although the request has it nowhere. */
function saysOneOf({ bytes }: RequestView, words: readonly string[], answer: string): boolean {
  return words.filter((word) => answer.includes(word)).some((word) => !bytes.includes(word));
}

const WORD = /[\p{L}\p{N}_][\p{L}\p{N}_./-]{3,60}[\p{L}\p{N}_]/gu;
const DATE = /^\d{4}-\d\d-\d\d/;
const CODE_LIKE = /\d|_|[a-z][A-Z]|[./-]/;

/**
 * Returns words of a block that look like names of code, numbers or paths: at most WORDS_MAX, each of five or more
 * characters, without references and dates.
 */
function rareWords(block: string): readonly string[] {
  const words = (block.replaceAll(REFERENCES, ' ').match(WORD) ?? []).filter(
    (word) => CODE_LIKE.test(word) && !DATE.test(word),
  );
  return [...new Set(words)].slice(0, WORDS_MAX);
}
