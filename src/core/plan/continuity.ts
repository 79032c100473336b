import type { Modes } from '../http/modes.ts';
import type { CompressionMode } from '../http/modes.ts';

/**
 * Maps the outcome of shortening in one request to its `x-svc-continuity-state`. Every state comes
 * from here: the rest of svc only reports what happened.
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

/** The state in deterministic mode of each thing that can happen. */
const STATES = {
  exchanges_left: 'committed',
  outputs_left: 'elided_tool_output',

  /** Nothing is asked of svc: it is no conversation of the person's, or it is short. */
  side_call: 'not_needed',
  within_budget: 'not_needed',
  nothing_old: 'not_needed',
  /** The client summarises its history: nothing leaves for the first time. */
  compaction: 'not_needed',

  /** The body is not what its dialect says, or more than svc reads. */
  unparseable: 'bypassed_unparseable',
  too_large: 'bypassed_too_large',
  memory_off: 'bypassed_memory_mode',
  /** The provider keeps the history. */
  provider_state: 'bypassed_provider_state',
  /** The provider refused a shortened request of this conversation lately. */
  provider_refused: 'bypassed_provider_refused',
  elision_off: 'bypassed_protected_context',
  /** All that is old is of a kind that always stays. */
  protected: 'bypassed_protected_context',
  near_window: 'bypassed_protected_context',
  not_stored: 'bypassed_not_stored',
  not_worth_it: 'bypassed_not_worth_it',

  /** An answer of the memory was wrong. */
  unproven: 'bypassed_unproven_recall',
  /** The memory or the ledger did not answer in time. */
  unanswered: 'bypassed_recall_degraded',
  recall_degraded: 'bypassed_recall_degraded',
  recall_empty: 'bypassed_empty_recall',
} as const satisfies Readonly<Record<string, ContinuityState>>;

export type Outcome = keyof typeof STATES;

export function continuityState(mode: CompressionMode, outcome: Outcome): ContinuityState {
  switch (mode) {
    case 'passthrough':
      return 'not_applicable';
    case 'shadow':
      return 'shadow_only';
    case 'deterministic':
      return STATES[outcome];
  }
}

/** The mode that took effect: a bypass forwards the whole request, as passthrough does. */
export function effectiveMode(mode: CompressionMode, outcome: Outcome): CompressionMode {
  const isBypassed = continuityState(mode, outcome).startsWith('bypassed_');
  return isBypassed ? 'passthrough' : mode;
}

/** The obstacles to shortening a request that are known before its history is read. */
export interface Obstacles {
  readonly modes: Modes;
  /** Text that left before leaves again in every mode, because thinking is bound to it. */
  readonly isBound: boolean;
  readonly isOverBudget: boolean;
  readonly hasProviderState: boolean;
  readonly isElisionEnabled: boolean;
}

/**
 * Undefined when the request may be shortened, or measured. Within the budget nothing leaves it for the
 * first time, which `decide` says: what left before stays out.
 */
export function obstacleOf(facts: Obstacles): Outcome | undefined {
  if (facts.isBound && facts.modes.compression !== 'shadow') {
    return facts.hasProviderState ? 'provider_state' : undefined;
  }
  if (facts.modes.compression === 'passthrough') return 'side_call';
  const obstacle = obstacleInside(facts);
  return obstacle === undefined || facts.isOverBudget ? obstacle : 'within_budget';
}

function obstacleInside(facts: Obstacles): Outcome | undefined {
  // Shadow asks no memory. Elsewhere its mode comes before what the request itself does not allow.
  if (facts.modes.compression === 'deterministic' && !facts.modes.reads) return 'memory_off';
  if (facts.hasProviderState) return 'provider_state';
  return facts.isElisionEnabled ? undefined : 'elision_off';
}

/** The outcome of asking the memory for one request, as `x-svc-memory-state` shows it. */
export type MemoryState =
  | 'off'
  | 'write_only'
  | 'recalled'
  | 'recalled_by_hook'
  | 'empty'
  | 'skipped_side_call'
  | 'skipped_unsupported'
  | 'degraded_timeout'
  | 'degraded_unavailable'
  | 'degraded_denied'
  | 'degraded_rate_limited'
  | 'degraded_invalid';
