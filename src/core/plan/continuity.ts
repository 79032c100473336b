import type { Modes } from '../http/modes.ts';
import type { CompressionMode } from '../http/modes.ts';

/**
 * Maps the outcome of shortening to the request's `x-svc-continuity-state`. Every state comes from here; the rest of
 * svc only reports what happened.
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

/** The state of each outcome in deterministic mode. */
const STATES = {
  exchanges_left: 'committed',
  outputs_left: 'elided_tool_output',

  /** Nothing to do: the request belongs to no conversation of the user, or it is short. */
  side_call: 'not_needed',
  within_budget: 'not_needed',
  nothing_old: 'not_needed',
  /** The client summarises its history, so nothing new is left out. */
  compaction: 'not_needed',

  /** The body does not match its dialect, or is larger than svc reads. */
  unparseable: 'bypassed_unparseable',
  too_large: 'bypassed_too_large',
  memory_off: 'bypassed_memory_mode',
  /** The provider keeps the history. */
  provider_state: 'bypassed_provider_state',
  /** The provider recently refused a shortened request of this conversation. */
  provider_refused: 'bypassed_provider_refused',
  elision_off: 'bypassed_protected_context',
  /** No old item is of a kind that may be left out. */
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

/** Returns the mode that took effect: a bypass forwards the whole request, as passthrough does. */
export function effectiveMode(mode: CompressionMode, outcome: Outcome): CompressionMode {
  const isBypassed = continuityState(mode, outcome).startsWith('bypassed_');
  return isBypassed ? 'passthrough' : mode;
}

/** Obstacles to shortening that are known before the request's history is read. */
export interface Obstacles {
  readonly modes: Modes;
  /** True if thinking is bound to the prefix, so that texts left out earlier stay out in every mode. */
  readonly isBound: boolean;
  readonly isOverBudget: boolean;
  readonly hasProviderState: boolean;
  readonly isElisionEnabled: boolean;
}

/**
 * Returns why the request may not be shortened or measured; undefined if it may. A short request is not excluded
 * here: `decide` leaves nothing new out of it, but texts left out earlier stay out.
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
  // Shadow mode needs no memory. In other modes memory being off is reported before properties of the request.
  if (facts.modes.compression === 'deterministic' && !facts.modes.reads) return 'memory_off';
  if (facts.hasProviderState) return 'provider_state';
  return facts.isElisionEnabled ? undefined : 'elision_off';
}

/** The outcome of the recall for a request, as `x-svc-memory-state` shows it. */
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
