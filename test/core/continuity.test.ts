import { expect, test } from 'vitest';
import type { Modes } from '../../src/core/http/modes.ts';
import {
  continuityState,
  effectiveMode,
  obstacleOf,
  type Obstacles,
  type Outcome,
} from '../../src/core/plan/continuity.ts';

/** Each thing that can happen, with its state in deterministic mode. */
const TABLE: Readonly<Record<Outcome, string>> = {
  exchanges_left: 'committed',
  outputs_left: 'elided_tool_output',
  side_call: 'not_needed',
  within_budget: 'not_needed',
  nothing_old: 'not_needed',
  compaction: 'not_needed',
  unparseable: 'bypassed_unparseable',
  too_large: 'bypassed_too_large',
  memory_off: 'bypassed_memory_mode',
  provider_state: 'bypassed_provider_state',
  provider_refused: 'bypassed_provider_refused',
  elision_off: 'bypassed_protected_context',
  protected: 'bypassed_protected_context',
  near_window: 'bypassed_protected_context',
  not_stored: 'bypassed_not_stored',
  not_worth_it: 'bypassed_not_worth_it',
  unproven: 'bypassed_unproven_recall',
  unanswered: 'bypassed_recall_degraded',
  recall_degraded: 'bypassed_recall_degraded',
  recall_empty: 'bypassed_empty_recall',
};

const OUTCOMES = Object.keys(TABLE) as Outcome[];

test.each(OUTCOMES)('%s has one state in each mode, and only a bypass changes the mode', (it) => {
  expect(continuityState('deterministic', it)).toBe(TABLE[it]);
  expect(continuityState('shadow', it)).toBe('shadow_only');
  expect(continuityState('passthrough', it)).toBe('not_applicable');
  const isBypassed = TABLE[it].startsWith('bypassed_');
  expect(effectiveMode('deterministic', it)).toBe(isBypassed ? 'passthrough' : 'deterministic');
  expect(effectiveMode('shadow', it)).toBe('shadow');
  expect(effectiveMode('passthrough', it)).toBe('passthrough');
});

const MODES: Modes = { memory: 'read', reads: true, writes: false, compression: 'deterministic' };
const FREE: Obstacles = {
  modes: MODES,
  isBound: false,
  isOverBudget: true,
  hasProviderState: false,
  isElisionEnabled: true,
};
const BLIND = { ...MODES, reads: false };

test.each<[Outcome | undefined, Partial<Obstacles>]>([
  [undefined, {}],
  ['side_call', { modes: { ...MODES, compression: 'passthrough' } }],
  // What left before leaves again, whatever the mode: thinking is bound to it.
  [undefined, { isBound: true, modes: { ...BLIND, compression: 'passthrough' } }],
  ['provider_state', { isBound: true, hasProviderState: true }],
  ['within_budget', { isOverBudget: false, modes: BLIND, hasProviderState: true }],
  ['memory_off', { modes: BLIND, hasProviderState: true, isElisionEnabled: false }],
  ['provider_state', { hasProviderState: true, isElisionEnabled: false }],
  ['elision_off', { isElisionEnabled: false }],
  // Shadow asks no memory.
  [undefined, { modes: { ...BLIND, compression: 'shadow' } }],
  ['provider_state', { modes: { ...BLIND, compression: 'shadow' }, hasProviderState: true }],
])('%s is what stands first in the way of %j', (expected, facts) => {
  expect(obstacleOf({ ...FREE, ...facts })).toBe(expected);
});
