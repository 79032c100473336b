import type { Edit } from './edits.ts';
import type { MemoryState } from './memory-state.ts';
import type { Placement } from '../recall/injections.ts';
import { insertBlock } from './item-edits.ts';
import type { Modes } from '../http/modes.ts';
import { isOmitted, omit, type Omission } from '../shortening/omissions.ts';
import type { CompressionMode } from '../settings/settings.ts';
import { elisionEdits, type Replacement, type Wanted } from '../shortening/shortening.ts';
import type { RequestView } from '../conversation/view.ts';

/**
 * Decides what is changed in a request: which spans, and what the client is told about it. Pure, so
 * the same facts always give the same bytes.
 */

export type ContinuityState =
  | 'committed'
  | 'elided_tool_output'
  | 'not_needed'
  | 'shadow_only'
  | 'not_applicable'
  | 'bypassed_not_stored'
  | 'bypassed_unproven_recall'
  | 'bypassed_empty_recall'
  | 'bypassed_recall_degraded'
  | 'bypassed_memory_mode'
  | 'bypassed_protected_context'
  | 'bypassed_provider_state'
  | 'bypassed_not_worth_it'
  | 'bypassed_unparseable'
  | 'bypassed_too_large'
  | 'bypassed_provider_refused';

/** What shortening came to in this request. */
export interface Shortening {
  /** Tool outputs that are left out; in shadow, that would be. */
  readonly elided: readonly Replacement[];
  /** Whole exchanges that are left out. */
  readonly omitted: readonly Omission[];
  readonly state: ContinuityState;
}

export interface PlanFacts {
  readonly view: RequestView;
  readonly modes: Modes;
  /** The blocks that this request carries. */
  readonly placements: readonly Placement[];
  readonly shortening: Shortening;
  /** Lifetimes in the client's cache marks; see longCacheEdits. */
  readonly cacheMarks: readonly Edit[];
}

export interface Plan {
  readonly edits: readonly Edit[];
  /** Effective: after any safe fallback. */
  readonly compressionMode: CompressionMode;
  readonly continuityState: ContinuityState;
  readonly originalTokens: number;
  readonly forwardedTokens: number;
  readonly recalledTokens: number;
  readonly elidedItems: number;
  readonly elidedTokens: number;
}

export function makePlan({ view, modes, placements, ...facts }: PlanFacts): Plan {
  const { shortening, cacheMarks } = facts;
  const omitting = omit(view, shortening.omitted);
  const elidedTokens = shortening.elided.reduce((sum, { saved }) => sum + saved, omitting.saved);
  const measured = {
    compressionMode: effectiveMode(modes.compression, shortening.state),
    continuityState: shortening.state,
    originalTokens: view.tokens,
    elidedItems: shortening.elided.length + omitting.items,
    elidedTokens,
  };
  // Measured and forwarded unchanged: not even a recalled block is added.
  if (modes.compression === 'shadow') {
    return { ...measured, edits: [], forwardedTokens: view.tokens, recalledTokens: 0 };
  }
  const edits: Edit[] = [...elisionEdits(shortening.elided), ...omitting.edits, ...cacheMarks];
  let recalledTokens = 0;
  for (const { item, block, form, tokens } of placements) {
    // What stands in an exchange goes with it.
    if (isOmitted(item, shortening.omitted)) continue;
    const insertion = insertBlock(view, item, { block, form });
    if (insertion.length === 0) continue;
    edits.push(...insertion);
    recalledTokens += tokens;
  }
  const forwardedTokens = view.tokens + recalledTokens - elidedTokens;
  return { ...measured, edits, forwardedTokens, recalledTokens };
}

/** Why a body was not read: it is not what its dialect says, or more than svc reads. */
export type Unread = 'unparseable' | 'too_large';

/**
 * The plan for a body that svc did not read, or could not change because something failed: the client's
 * own bytes, all of them.
 */
export function untouchedPlan(modes: Modes, tokens: number, why: Unread | 'recall_degraded'): Plan {
  const isDeterministic = modes.compression === 'deterministic';
  return {
    edits: [],
    compressionMode: isDeterministic ? 'passthrough' : modes.compression,
    continuityState: isDeterministic ? `bypassed_${why}` : idleState(modes.compression),
    originalTokens: tokens,
    forwardedTokens: tokens,
    recalledTokens: 0,
    elidedItems: 0,
    elidedTokens: 0,
  };
}

/** What stands in the way of shortening this request at all. */
export interface Obstacles {
  readonly modes: Modes;
  /** 'main' requests alone may be shortened, and compactions that would not fit the window whole. */
  readonly isOpen: boolean;
  readonly isOverBudget: boolean;
  /** The history is kept at the provider: nothing may be changed. */
  readonly hasProviderState: boolean;
  /** The provider refused a shortened request of this conversation. */
  readonly isRefused: boolean;
  readonly isElisionEnabled: boolean;
}

/** The state of a request that is not to be shortened; undefined when it may be. */
export function stateBefore(facts: Obstacles): ContinuityState | undefined {
  const { modes } = facts;
  if (modes.compression === 'passthrough') return 'not_applicable';
  if (modes.compression === 'shadow')
    return obstacleOf(facts) === undefined ? undefined : 'shadow_only';
  const obstacle = obstacleOf(facts);
  if (obstacle === 'not_needed') return obstacle;
  // What the memory may not do comes before what the request does not allow.
  return modes.reads ? obstacle : 'bypassed_memory_mode';
}

function obstacleOf(facts: Obstacles): ContinuityState | undefined {
  if (!facts.isOpen || !facts.isOverBudget) return 'not_needed';
  if (facts.hasProviderState) return 'bypassed_provider_state';
  if (facts.isRefused) return 'bypassed_provider_refused';
  return facts.isElisionEnabled ? undefined : 'bypassed_protected_context';
}

const STATE_OF_REASON: Readonly<Record<Wanted['reason'], ContinuityState>> = {
  nothing_old: 'bypassed_protected_context',
  not_stored: 'bypassed_not_stored',
  not_worth_it: 'bypassed_not_worth_it',
  near_window: 'bypassed_protected_context',
};

/** The state of a request that leaves nothing out although it might have. */
export function stateWithout(reason: Wanted['reason']): ContinuityState {
  return STATE_OF_REASON[reason];
}

/**
 * Why these exchanges may not be left out of a request for the first time, whose recall came to this;
 * undefined when they may. Only what is recalled can stand for them.
 */
export function stateWithoutRecall(
  { placements, state }: { readonly placements: readonly Placement[]; readonly state: MemoryState },
  omissions: readonly Omission[],
): ContinuityState | undefined {
  if (state.startsWith('degraded_')) return 'bypassed_recall_degraded';
  const isCovered = placements.some(({ item }) => !isOmitted(item, omissions));
  return isCovered ? undefined : 'bypassed_empty_recall';
}

function effectiveMode(mode: CompressionMode, state: ContinuityState): CompressionMode {
  const isBypassed = state.startsWith('bypassed_');
  return mode === 'deterministic' && isBypassed ? 'passthrough' : mode;
}

function idleState(mode: 'passthrough' | 'shadow'): ContinuityState {
  return mode === 'shadow' ? 'shadow_only' : 'not_applicable';
}
