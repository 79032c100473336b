import type { CompressionMode, Modes } from '../http/modes.ts';

/**
 * Maps the outcome of shortening to the request's state, which the header `x-svc-continuity-state` shows. The code of
 * shortening itself knows only outcomes.
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

  /**
   * There is nothing to leave out: the request is not of the user's conversation, it is short, or nothing in it is old.
   */
  side_call: 'not_needed',
  within_budget: 'not_needed',
  nothing_old: 'not_needed',
  /** The client summarises its history, so nothing new is left out. */
  compaction: 'not_needed',

  /** The body does not match its dialect, or is larger than svc reads. */
  unparseable: 'bypassed_unparseable',
  too_large: 'bypassed_too_large',
  memory_off: 'bypassed_memory_mode',
  /** The provider stores the history. */
  provider_state: 'bypassed_provider_state',
  /** The provider recently refused a shortened request of this conversation. */
  provider_refused: 'bypassed_provider_refused',
  elision_off: 'bypassed_protected_context',
  /** No old item is of a kind that may be left out, or thinking is bound to the history. */
  protected: 'bypassed_protected_context',
  near_window: 'bypassed_protected_context',
  not_stored: 'bypassed_not_stored',
  not_worth_it: 'bypassed_not_worth_it',

  /** The memory did not prove that it has the texts. */
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

/** Returns the mode that took effect. After a bypass it is passthrough, because nothing was left out. */
export function effectiveMode(mode: CompressionMode, outcome: Outcome): CompressionMode {
  const isBypassed = continuityState(mode, outcome).startsWith('bypassed_');
  return isBypassed ? 'passthrough' : mode;
}

/** The facts from which obstacleOf() decides. They are known before the history is read. */
export interface Obstacles {
  readonly modes: Modes;
  /** True if thinking is bound to its prefix, so that texts left out earlier stay out, except in shadow mode. */
  readonly isBound: boolean;
  readonly isOverBudget: boolean;
  readonly hasProviderState: boolean;
  readonly isElisionEnabled: boolean;
}

/**
 * Returns why the request may not be shortened or measured; undefined if it may. A short request is not excluded for
 * its length: `decide` leaves nothing new out of it, but texts left out earlier stay out. If obstacleInside() excludes
 * a short request, the reported outcome is `within_budget`.
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
  // Shadow mode needs no memory.
  if (facts.modes.compression === 'deterministic' && !facts.modes.reads) return 'memory_off';
  if (facts.hasProviderState) return 'provider_state';
  return facts.isElisionEnabled ? undefined : 'elision_off';
}

/** The outcome of recall, which the header `x-svc-memory-state` shows. */
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
