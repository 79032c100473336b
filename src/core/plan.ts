import type { Edit } from './edits.ts';
import type { Placement } from './injections.ts';
import { insertBlock } from './item-edits.ts';
import type { Modes } from './modes.ts';
import type { CompressionMode } from './settings.ts';
import type { RequestView } from './view.ts';

/**
 * Decides what is changed in a request: which spans, and what the client is told about it. Pure, so
 * the same facts always give the same bytes. Shortening joins here; today it removes nothing and
 * says so.
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

export interface PlanFacts {
  readonly view: RequestView;
  readonly modes: Modes;
  /** The blocks that this request carries. */
  readonly placements: readonly Placement[];
  /** Estimated tokens above which shortening is considered. */
  readonly inputBudget: number;
  /** The history is kept at the provider: nothing may be changed. */
  readonly hasProviderState: boolean;
  /** 'main' requests alone may be shortened. */
  readonly isMain: boolean;
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

export function makePlan(facts: PlanFacts): Plan {
  const edits: Edit[] = [];
  let recalledTokens = 0;
  for (const { item, block, form, tokens } of facts.placements) {
    const insertion = insertBlock(facts.view, item, { block, form });
    if (insertion.length === 0) continue;
    edits.push(...insertion);
    recalledTokens += tokens;
  }
  const { tokens } = facts.view;
  return {
    edits,
    ...decideContinuity(facts),
    originalTokens: tokens,
    forwardedTokens: tokens + recalledTokens,
    recalledTokens,
    elidedItems: 0,
    elidedTokens: 0,
  };
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

function decideContinuity(facts: PlanFacts): Pick<Plan, 'compressionMode' | 'continuityState'> {
  const { modes, view } = facts;
  if (modes.compression !== 'deterministic') {
    return { compressionMode: modes.compression, continuityState: idleState(modes.compression) };
  }
  if (!facts.isMain || view.tokens <= facts.inputBudget) {
    return { compressionMode: 'deterministic', continuityState: 'not_needed' };
  }
  return { compressionMode: 'passthrough', continuityState: bypassReason(facts) };
}

/** Over the budget, yet everything is forwarded: why. */
function bypassReason({ modes, hasProviderState }: PlanFacts): ContinuityState {
  if (hasProviderState) return 'bypassed_provider_state';
  if (!modes.reads) return 'bypassed_memory_mode';
  return 'bypassed_not_stored';
}

function idleState(mode: 'passthrough' | 'shadow'): ContinuityState {
  return mode === 'shadow' ? 'shadow_only' : 'not_applicable';
}
