import type { Edit } from './edits.ts';
import type { Placement } from './injections.ts';
import { insertBlock } from './item-edits.ts';
import type { Modes } from './modes.ts';
import type { CompressionMode } from './settings.ts';
import type { ToolOutput } from './outputs.ts';
import { elisionEdits, savedTokens, type Wanted } from './shortening.ts';
import type { RequestView } from './view.ts';

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
  | 'bypassed_provider_refused';

/** What shortening came to in this request. */
export interface Shortening {
  /** Tool outputs that are left out; in shadow, that would be. */
  readonly elided: readonly ToolOutput[];
  readonly state: ContinuityState;
}

export interface PlanFacts {
  readonly view: RequestView;
  readonly modes: Modes;
  /** The blocks that this request carries. */
  readonly placements: readonly Placement[];
  readonly shortening: Shortening;
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

export function makePlan({ view, modes, placements, shortening }: PlanFacts): Plan {
  const elidedTokens = shortening.elided.reduce((sum, output) => sum + savedTokens(output), 0);
  const measured = {
    compressionMode: effectiveMode(modes.compression, shortening.state),
    continuityState: shortening.state,
    originalTokens: view.tokens,
    elidedItems: shortening.elided.length,
    elidedTokens,
  };
  // Measured and forwarded unchanged: not even a recalled block is added.
  if (modes.compression === 'shadow') {
    return { ...measured, edits: [], forwardedTokens: view.tokens, recalledTokens: 0 };
  }
  const edits: Edit[] = [...elisionEdits(shortening.elided)];
  let recalledTokens = 0;
  for (const { item, block, form, tokens } of placements) {
    const insertion = insertBlock(view, item, { block, form });
    if (insertion.length === 0) continue;
    edits.push(...insertion);
    recalledTokens += tokens;
  }
  const forwardedTokens = view.tokens + recalledTokens - elidedTokens;
  return { ...measured, edits, forwardedTokens, recalledTokens };
}

/** The plan for a body that svc cannot read or must not touch: the client's own bytes, all of them. */
export function untouchedPlan(modes: Modes, tokens: number): Plan {
  const isDeterministic = modes.compression === 'deterministic';
  return {
    edits: [],
    compressionMode: isDeterministic ? 'passthrough' : modes.compression,
    continuityState: isDeterministic ? 'bypassed_unparseable' : idleState(modes.compression),
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
  /** 'main' requests alone may be shortened: a compaction must see the whole history. */
  readonly isMain: boolean;
  readonly isOverBudget: boolean;
  /** The history is kept at the provider: nothing may be changed. */
  readonly hasProviderState: boolean;
  /** The provider refused a shortened request of this conversation. */
  readonly isRefused: boolean;
  /** The client must see how large its history is, so that it compacts. */
  readonly isNearWindow: boolean;
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
  if (!facts.isMain || !facts.isOverBudget) return 'not_needed';
  if (facts.hasProviderState) return 'bypassed_provider_state';
  if (facts.isRefused) return 'bypassed_provider_refused';
  return facts.isNearWindow || !facts.isElisionEnabled ? 'bypassed_protected_context' : undefined;
}

const STATE_OF_REASON: Readonly<Record<Wanted['reason'], ContinuityState>> = {
  nothing_old: 'bypassed_protected_context',
  not_stored: 'bypassed_not_stored',
  not_worth_it: 'bypassed_not_worth_it',
};

/** The state of a request that leaves nothing out although it might have. */
export function stateWithout(reason: Wanted['reason']): ContinuityState {
  return STATE_OF_REASON[reason];
}

function effectiveMode(mode: CompressionMode, state: ContinuityState): CompressionMode {
  const isBypassed = state.startsWith('bypassed_');
  return mode === 'deterministic' && isBypassed ? 'passthrough' : mode;
}

function idleState(mode: 'passthrough' | 'shadow'): ContinuityState {
  return mode === 'shadow' ? 'shadow_only' : 'not_applicable';
}
