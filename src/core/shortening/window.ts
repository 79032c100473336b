import { windowOf } from '../settings/model-windows.ts';

/**
 * Says how much of its model's window a conversation would fill if it were sent whole.
 *
 * A client compacts by the usage that the provider reports, which does not count the text that svc
 * leaves out. So svc sends everything again while the whole still fits: the client sees its true
 * size and can compact, or leave svc, at any moment. Pure.
 */

/** A provider's token count of an earlier request, and svc's estimate for the same request. */
export interface Measure {
  readonly counted: number;
  readonly estimated: number;
}

export interface WindowFacts {
  /** The request's model, whatever type it has. */
  readonly model: unknown;
  /** The tokens that the request keeps free for the answer, whatever type it has. */
  readonly answerTokens: unknown;
  /** The request asks for the longest window that its model has. */
  readonly isLong: boolean;
  /** Estimated tokens of the whole request. */
  readonly tokens: number;
  /** The provider's tokens for one estimated token, where nothing was measured. */
  readonly tokenRatio: number;
  readonly measure: Measure | undefined;
}

export interface Fill {
  /** Something may be left out that was not left out before. */
  readonly hasRoom: boolean;
  /** For each token of the whole, how many more there may be until all comes back. */
  readonly growthLeft: number;
  /** The whole can soon not be sent any more, and now it still can. */
  readonly isAtEdge: boolean;
  /** The whole may be more than the model takes: what is left out must stay out. */
  readonly mayNotFit: boolean;
}

// Claude's models take so much unless the request asks for the long window, whatever is published.
const CLAUDE_WINDOW = 200_000;
const LONG_WINDOW = 1_000_000;

// Above it a conversation ends or is compacted before a new batch pays for itself.
const BATCH_SHARE_MAX = 0.8;

// The edge is the room that the request keeps free for the answer, within these limits. The smaller
// leaves a few more rounds; the larger is enough for clients that ask for the longest answer the
// model has. Claude Code asks for 32,000 to 128,000 of 200,000 tokens, and compacts once it sees
// 155,000 to 168,000.
const EDGE_SHARE_MIN = 0.08;
const EDGE_SHARE_MAX = 0.14;
// Beyond the edge the answer gets shorter. Beyond this there is no room for any.
const FITS_SHARE = 0.96;

// One in ten whole requests of real sessions is further from its estimate than this. With a
// measure, the error is that of the part that the provider has not counted yet.
const ERROR_SHARE = 0.15;
const ERROR_SHARE_MEASURED = 0.05;

export function fillOf(facts: WindowFacts): Fill {
  const { window, edge } = limitsOf(facts);
  const { tokens, careful, atMost } = sizeOf(facts);
  const mayNotFit = atMost > window * FITS_SHARE;
  return {
    growthLeft: Math.max(0, edge - tokens) / Math.max(1, tokens),
    hasRoom: tokens <= Math.min(edge, window * BATCH_SHARE_MAX),
    isAtEdge: careful > edge && !mayNotFit,
    mayNotFit,
  };
}

/**
 * From here on svc records the provider's counts. It judges by the estimate alone, so the past does
 * not matter.
 */
export function isHalfFull(facts: WindowFacts): boolean {
  return facts.tokens * facts.tokenRatio > limitsOf(facts).window / 2;
}

function limitsOf({ model, answerTokens, isLong }: WindowFacts): { window: number; edge: number } {
  const isClaude = typeof model === 'string' && model.includes('claude');
  const known = windowOf(model);
  const window = isLong ? LONG_WINDOW : isClaude ? Math.min(known, CLAUDE_WINDOW) : known;
  const asked = typeof answerTokens === 'number' ? answerTokens / window : 0;
  const share = Math.min(EDGE_SHARE_MAX, Math.max(EDGE_SHARE_MIN, asked));
  return { window, edge: window * (1 - share) };
}

// A ratio outside these limits, which come from real sessions, means that the measure does not fit.
// The provider then counts in another way, or the client edits its history.
const RATIO_MIN = 0.7;
const RATIO_MAX = 2.5;

/** Two counts are alike within these shares: of the provider's tokens, and of the request's size. */
const SAME_RATIO_SHARE = 0.005;
const SAME_SIZE_SHARE = 0.05;

/** Whether the earlier count plus the estimate of the growth matches the newer count. */
export function isSameMeasure(earlier: Measure, newer: Measure): boolean {
  const carried = earlier.counted * (newer.estimated / earlier.estimated);
  const grown = Math.abs(newer.estimated - earlier.estimated);
  return (
    Math.abs(newer.counted - carried) <= SAME_RATIO_SHARE * newer.counted &&
    grown <= SAME_SIZE_SHARE * newer.estimated
  );
}

/** The provider's tokens of the whole. `careful`: as many as to be ready for, measured or not. */
function sizeOf({ tokens, tokenRatio, measure }: WindowFacts): {
  tokens: number;
  careful: number;
  atMost: number;
} {
  const ratio = measure === undefined ? 0 : measure.counted / measure.estimated;
  if (measure === undefined || !(ratio >= RATIO_MIN && ratio <= RATIO_MAX)) {
    const atMost = tokens * tokenRatio * (1 + ERROR_SHARE);
    return { tokens: tokens * tokenRatio, careful: atMost, atMost };
  }
  const rest = Math.max(0, tokens - measure.estimated) * ratio;
  const likely = measure.counted + rest;
  return { tokens: likely, careful: likely, atMost: likely + rest * ERROR_SHARE_MEASURED };
}
