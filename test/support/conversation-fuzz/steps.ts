import * as fc from 'fast-check';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { DIALECTS } from '../../../src/core/dialects/apis.ts';
import type { Thinks } from '../strict-provider/reply.ts';

/** What can happen to a few conversations of one proxy, as data: a failure can be replayed and shrunk. */

export type Step =
  /** The first one: who answers. */
  | { readonly kind: 'provider'; readonly account: 'new' | 'old'; readonly isStrictest: boolean }
  | { readonly kind: 'begin'; readonly prompt: number; readonly branch: BranchKind }
  /** Another client of the project opens with the same words. */
  | { readonly kind: 'twin'; readonly on: number; readonly branch: BranchKind }
  /** The client writes strings as lists of one part from now on, or the other way. */
  | { readonly kind: 'rewrite'; readonly on: number }
  | { readonly kind: 'ask' | 'rewind' | 'edit'; readonly on: number; readonly prompt: number }
  /** A new system prompt, as at midnight, or a tool more, as when an MCP server comes late. */
  | { readonly kind: 'system' | 'tools'; readonly on: number }
  /** The client leaves out what old messages hold. */
  | { readonly kind: 'clear'; readonly on: number; readonly what: Cleared }
  /** The client leaves thinking out, but that of its newest answers. */
  | { readonly kind: 'strip'; readonly on: number; readonly keeps: number }
  /** An item of the client that nobody said goes before the next prompt or behind it. */
  | {
      readonly kind: 'note';
      readonly on: number;
      readonly note: Note;
      readonly isBehind: boolean;
      readonly prompt: number;
    }
  /** The person speaks while tools run: the words go with their results. */
  | { readonly kind: 'steer'; readonly on: number; readonly prompt: number }
  /** The answer ends early, and its beginning stays in the history or not. */
  | {
      readonly kind: 'cut';
      readonly on: number;
      readonly by: 'provider' | 'client';
      readonly isKept: boolean;
      readonly prompt: number;
    }
  /** The provider fails so often; the client asks again, with another model or the same. */
  | {
      readonly kind: 'fail';
      readonly on: number;
      readonly status: number;
      readonly times: number;
      readonly model: number | undefined;
      readonly prompt: number;
    }
  /** The provider compacts the history, and the client keeps what stood before or not. */
  | { readonly kind: 'compact-there'; readonly on: number; readonly isKept: boolean }
  | { readonly kind: 'work'; readonly on: number; readonly rounds: number; readonly calls: number }
  | { readonly kind: 'again' | 'leave' | 'move' | 'compact'; readonly on: number }
  | { readonly kind: 'switch'; readonly on: number; readonly model: number }
  | { readonly kind: 'mode'; readonly on: number; readonly memory: MemoryHeader }
  | { readonly kind: 'probe'; readonly on: number; readonly probe: Probe }
  | { readonly kind: 'fork' | 'resume'; readonly on: number; readonly isNamed: boolean }
  | { readonly kind: 'kill-during'; readonly on: number; readonly afterMs: number }
  /** The clock of the machine is wrong by so many minutes from now on. */
  | { readonly kind: 'clock'; readonly minutes: number }
  /** `fill`: the disk of the state and the memory has no space for a while. */
  | { readonly kind: 'learn' | 'restart' | 'kill' | 'lock' | 'fill' | 'import' | 'forget' };

/** What the client asks of memory from now on; `on` sends no header. */
export type MemoryHeader = 'on' | 'off' | 'write' | 'read';

export type Cleared = 'results' | 'images' | 'inputs';
export type Note = 'effort' | 'reminder' | 'tool';

/** A request that carries the conversation, and after which it continues as if nothing had been. */
export type Probe = 'count' | 'side' | 'passthrough' | 'shadow' | 'state';

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
  /** The model that is asked first: an index in the list of its dialect. */
  readonly model: number;
  /** The client leaves out the thinking of earlier answers when the person asks again. */
  readonly stripsThinking: boolean;
  /** The client asks Anthropic to drop blocks that fail their check. */
  readonly dropsBlocks: boolean;
  readonly thinks: Thinks;
}

/** The windows of all models are so large that no history comes to the edge. */
const UNBOUND: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic_messages: ['gemini-2.5-pro', 'claude-sonnet-5'],
  openai_responses: ['gemini-2.5-pro', 'gpt-5.4'],
  openai_chat_completions: ['gemini-2.5-pro'],
};

/** Thinking of these is bound to what stands before it (test/support/strict-provider). */
const BOUND: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic_messages: ['claude-opus-5-5', 'claude-fable-5-2', 'claude-haiku-5-5'],
  openai_responses: ['gpt-5.6', 'gpt-6.2'],
  openai_chat_completions: [],
};

export function isBinding(dialect: Dialect, model: string): boolean {
  return BOUND[dialect].includes(model);
}

export function modelsOf(dialect: Dialect): readonly string[] {
  return [...UNBOUND[dialect], ...BOUND[dialect]];
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
  model: fc.nat(99),
  stripsThinking: rarely(),
  dropsBlocks: rarely(),
  thinks: only<Thinks>('once', 'twice', 'empty', 'redacted'),
});

function rarely(): fc.Arbitrary<boolean> {
  return fc.nat(3).map((one) => one === 3);
}

function only<Kind extends string>(...kinds: readonly Kind[]): fc.Arbitrary<Kind> {
  return fc.constantFrom(...kinds);
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: only('begin'), prompt, branch }) },
  { weight: 2, arbitrary: fc.record({ kind: only('twin'), on, branch }) },
  { weight: 1, arbitrary: fc.record({ kind: only('rewrite'), on }) },
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
  { weight: 2, arbitrary: fc.record({ kind: only('leave', 'move', 'compact'), on }) },
  { weight: 3, arbitrary: fc.record({ kind: only('switch'), on, model: fc.nat(99) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: only('mode'),
      on,
      memory: only<MemoryHeader>('on', 'off', 'write', 'read'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: only('probe'),
      on,
      probe: only<Probe>('count', 'side', 'passthrough', 'shadow', 'state'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: only('fork', 'resume'), on, isNamed: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ kind: only('learn', 'lock') }) },
  { weight: 3, arbitrary: fc.record({ kind: only('restart', 'kill', 'import', 'forget') }) },
  { weight: 1, arbitrary: fc.record({ kind: only('kill-during'), on, afterMs: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: only('system', 'tools'), on }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: only('clear'),
      on,
      what: only<Cleared>('results', 'images', 'inputs'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: only('strip'), on, keeps: fc.nat(3) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: only('note'),
      on,
      note: only<Note>('effort', 'reminder', 'tool'),
      isBehind: fc.boolean(),
      prompt,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: only('steer'), on, prompt }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: only('cut'),
      on,
      by: only('provider', 'client'),
      isKept: fc.boolean(),
      prompt,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: only('fail'),
      on,
      status: fc.constantFrom(400, 413, 429, 500, 529),
      times: fc.integer({ min: 1, max: 3 }),
      model: fc.option(fc.nat(99), { nil: undefined }),
      prompt,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: only('compact-there'), on, isKept: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: only('fill') }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: only('clock'), minutes: fc.integer({ min: -3_000, max: 3_000 }) }),
  },
);

/** One history: what happens between a new home and its end. */
export function history(): fc.Arbitrary<readonly Step[]> {
  const provider = fc.record({
    kind: only('provider'),
    account: only('new', 'old'),
    isStrictest: fc.boolean(),
  });
  const steps = fc.array(step, { minLength: 60, maxLength: 60, size: 'max' });
  return fc.tuple(provider, steps).map(([first, rest]) => [first, ...rest]);
}
