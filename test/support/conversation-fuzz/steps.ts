import * as fc from 'fast-check';
import { DIALECTS, type Dialect } from '../../../src/core/conversation/dialect.ts';

/** What can happen to a few conversations of one proxy, as data: a failure can be replayed and shrunk. */

export type Step =
  | { readonly kind: 'begin'; readonly prompt: number; readonly branch: BranchKind }
  | { readonly kind: 'ask' | 'rewind' | 'edit'; readonly on: number; readonly prompt: number }
  | { readonly kind: 'work'; readonly on: number; readonly rounds: number; readonly calls: number }
  | { readonly kind: 'again'; readonly on: number }
  | { readonly kind: 'fork' | 'resume'; readonly on: number; readonly isNamed: boolean }
  | { readonly kind: 'kill-during'; readonly on: number; readonly afterMs: number }
  | { readonly kind: 'learn' | 'restart' | 'kill' | 'lock' | 'import' };

export interface BranchKind {
  readonly dialect: Dialect;
  /** The client states an id. */
  readonly isNamed: boolean;
  readonly space: number;
  /** A chat without tools has nothing but exchanges to leave out. */
  readonly hasTools: boolean;
  readonly isStreamed: boolean;
  /** Prompts and answers are lists of one part. */
  readonly writesParts: boolean;
}

const prompt = fc.nat(99);
// Conversations get long only where most steps go on with the newest few.
const on = fc.nat(2);

const branch: fc.Arbitrary<BranchKind> = fc.record({
  dialect: fc.constantFrom(...DIALECTS),
  isNamed: fc.boolean(),
  space: fc.nat(99),
  hasTools: fc.boolean(),
  isStreamed: fc.boolean(),
  writesParts: fc.boolean(),
});

function only<Kind extends string>(...kinds: readonly Kind[]): fc.Arbitrary<Kind> {
  return fc.constantFrom(...kinds);
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: only('begin'), prompt, branch }) },
  { weight: 24, arbitrary: fc.record({ kind: only('ask'), on, prompt }) },
  { weight: 3, arbitrary: fc.record({ kind: only('rewind', 'edit'), on, prompt }) },
  {
    weight: 20,
    arbitrary: fc.record({
      kind: only('work'),
      on,
      rounds: fc.integer({ min: 1, max: 6 }),
      calls: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: only('again'), on }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: only('fork', 'resume'), on, isNamed: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ kind: only('learn', 'lock') }) },
  { weight: 2, arbitrary: fc.record({ kind: only('restart', 'kill', 'import') }) },
  { weight: 1, arbitrary: fc.record({ kind: only('kill-during'), on, afterMs: fc.nat(20) }) },
);

/** One history: what happens between a new home and its end. */
export function history(): fc.Arbitrary<readonly Step[]> {
  return fc.array(step, { minLength: 60, maxLength: 60, size: 'max' });
}
