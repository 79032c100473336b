import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Dialect, RequestView } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { applyEdits } from '../../src/core/plan/item-edits.ts';
import type { LeftOut } from '../../src/core/ledger/entries.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { viewRequest } from '../support/view-of.ts';
import {
  isElidable,
  readFacts,
  removalOf,
  type RequestFacts,
  settle,
  type ShorteningFacts,
} from '../../src/core/shortening/removal.ts';
import { stubOf, writeNote } from '../../src/core/shortening/stubs.ts';
import {
  elisionEdits,
  replacementsOf,
  outputsOf,
  type ToolOutput,
} from '../../src/core/shortening/outputs.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

function factsOf(view: RequestView, other: Partial<RequestFacts> = {}): ShorteningFacts {
  const { dialect, tokens } = view;
  return readFacts({
    view,
    batches: [],
    outputs: outputsOf(view),
    textsOf: () => undefined,
    isStored: () => true,
    takesNew: true,
    isBound: false,
    isCacheCold: true,
    keepRounds: 4,
    tokens,
    inputBudget: 0,
    room: undefined,
    prices: cachePrices({ dialect, facts: undefined }),
    ...other,
  });
}

/** As if an earlier request had left these out. */
function batchesOf(outputs: readonly ToolOutput[]): readonly LeftOut[] {
  return [{ before: Infinity, marks: outputs.map(({ mark }) => mark) }];
}

function viewOfRounds(dialect: Dialect, rounds: readonly Round[]): RequestView {
  const view = viewRequest(Buffer.from(JSON.stringify(sessionBody(dialect, rounds))), dialect);
  if (view === undefined) throw new Error('The test body cannot be read.');
  return view;
}

const tools = fc.constantFrom('Bash', 'Read', 'Task', 'Grep', 'Glob', 'mcp__x__"q"]');
const rounds = fc
  .array(
    fc.record({
      tool: tools,
      args: fc.record({
        command: fc.string({ unit: 'binary' }),
        file_path: fc.constantFrom('/a', '/b', ''),
      }),
      size: fc.integer({ min: 0, max: 900 }),
      text: fc.string({ unit: 'binary', maxLength: 30 }),
    }),
    { maxLength: 16 },
  )
  .map((list) =>
    list.map(({ tool, args, size, text }, at): Round => {
      const output = `${text}${size === 0 ? '' : longOutput(`${at}`, size)}`;
      return { id: `call_${at}`, tool, args, output };
    }),
  );
const dialects = fc.constantFrom(...DIALECTS);

function everyProven(outputs: readonly ToolOutput[]): ReadonlySet<string> {
  return new Set(outputs.map(({ digest }) => digest));
}

test('only the texts of chosen outputs change; pairs, ids, reasoning and all else are the same bytes', () => {
  fc.assert(
    fc.property(dialects, rounds, (dialect, list) => {
      const view = viewOfRounds(dialect, list);
      const facts = factsOf(view);
      const { elided } = settle(facts, removalOf(facts), everyProven(facts.outputs));
      const replacements = replacementsOf(elided, { outputFolder: '/data/outputs' });
      const forwarded = Buffer.concat(applyEdits(view.bytes, elisionEdits(replacements)));
      // The oracle: the same session written with stubs for texts, a note behind the first.
      const note = writeNote('/data/outputs');
      const stubs = new Map(
        elided.map((output, at) => [
          output.callId,
          `${stubOf(output).text}${at === 0 ? note : ''}`,
        ]),
      );
      const expected = list.map((one) => ({ ...one, output: stubs.get(one.id) ?? one.output }));
      expect(forwarded.toString()).toBe(JSON.stringify(sessionBody(dialect, expected)));
    }),
    { numRuns: 60 },
  );
});

test('outputs of the last rounds, small ones, unproven ones, and of sub-agents and file lists stay', () => {
  fc.assert(
    fc.property(dialects, rounds, fc.integer({ min: 1, max: 6 }), (dialect, list, keepRounds) => {
      const view = viewOfRounds(dialect, list);
      const facts = factsOf(view, { keepRounds });
      const proven = new Set(
        facts.outputs.filter((_, at) => at % 3 > 0).map(({ digest }) => digest),
      );
      const { elided } = settle(facts, removalOf(facts), proven);
      const last = new Set(list.slice(-keepRounds).map(({ id }) => id));
      for (const output of elided) {
        expect(last.has(output.callId)).toBe(false);
        expect(output.tokens).toBeGreaterThanOrEqual(120);
        expect(['Task', 'Glob']).not.toContain(output.tool);
        expect(proven.has(output.digest)).toBe(true);
      }
    }),
    { numRuns: 60 },
  );
});

test('beside large outputs, what takes no more room than a stub or two stays', () => {
  const small = Array.from({ length: 8 }, (_, at) => longOutput(`${at}`, 30));
  const list = [...small, ...small.map((text, at) => text + longOutput(`large ${at}`, 600))].map(
    (output, at): Round => ({ id: `c${at}`, tool: 'Bash', args: {}, output }),
  );
  const facts = factsOf(viewOfRounds('anthropic_messages', list));
  const tokens = facts.outputs.map((output) => output.tokens);
  expect(Math.max(...tokens.slice(0, 8))).toBeLessThan(120);
  expect(Math.min(...tokens.slice(8))).toBeGreaterThan(120);
  const ids = facts.old.map(({ callId }) => callId);
  expect(ids).toEqual(['c8', 'c9', 'c10', 'c11']);
});

function sessionOf(count: number, tokens: number): RequestView {
  return viewOfRounds(
    'anthropic_messages',
    Array.from({ length: count }, (_, at): Round => {
      return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, tokens) };
    }),
  );
}

test('on a warm cache a batch goes after many requests, and on a cold one at once', () => {
  const batchOf = (view: RequestView, isCacheCold: boolean) =>
    idsOf(removalOf(factsOf(view, { isCacheCold })).batch);
  expect(batchOf(sessionOf(8, 600), true)).toEqual(['c0', 'c1', 'c2', 'c3']);
  expect(batchOf(sessionOf(8, 600), false)).toEqual([]);
  expect(batchOf(sessionOf(40, 500), false)).toHaveLength(36);
});

test('the longer outputs have been carried, the sooner they go, also after an earlier batch', () => {
  const batchAfter = (later: number, isFirst: boolean): number => {
    const sizes = [
      ...Array.from({ length: 8 }, () => 1_600),
      ...Array.from({ length: later }, () => 1),
      ...Array.from({ length: 4 }, () => 4_000),
    ];
    const earlier = isFirst ? [] : Array.from({ length: 30 }, () => 500);
    const list = [...earlier, ...sizes].map((size, at): Round => {
      return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, size) };
    });
    const view = viewOfRounds('anthropic_messages', list);
    const { outputs } = factsOf(view);
    const batches = isFirst ? [] : batchesOf(outputs.slice(0, 30));
    return removalOf(factsOf(view, { isCacheCold: false, batches })).batch.length;
  };
  for (const isFirst of [true, false]) {
    expect(batchAfter(0, isFirst)).toBe(0);
    expect(batchAfter(60, isFirst)).toBe(8);
  }
});

test('near the window, within the budget and beside the conversation nothing new leaves, and what is out stays out', () => {
  const view = sessionOf(40, 500);
  const gone = factsOf(view).outputs.slice(0, 5);
  const batches = batchesOf(gone);
  for (const [other, otherwise] of [
    [{ room: 1_000 }, 'near_window'],
    [{ inputBudget: 1_000_000 }, 'within_budget'],
    [{ takesNew: false }, 'side_call'],
    [{ isBound: true }, 'protected'],
  ] as const) {
    expect(removalOf(factsOf(view, { batches, ...other }))).toEqual({
      repeated: gone,
      omitted: [],
      batch: [],
      omissions: [],
      otherwise,
    });
  }
});

test('in a bound conversation what left stays out without a proof, and elsewhere it comes back', () => {
  const view = sessionOf(40, 500);
  const gone = factsOf(view).outputs.slice(0, 5);
  const leftOut = (isBound: boolean) => {
    const facts = factsOf(view, { batches: batchesOf(gone), isBound, takesNew: false });
    return settle(facts, removalOf(facts), new Set()).elided;
  };
  expect(leftOut(true)).toEqual(gone);
  expect(leftOut(false)).toEqual([]);
});

test('what the memory never acknowledged is not even asked for', () => {
  const list = Array.from({ length: 12 }, (_, at): Round => {
    return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, 600) };
  });
  const facts = factsOf(viewOfRounds('openai_responses', list), { isStored: () => false });
  expect(removalOf(facts)).toMatchObject({ batch: [], otherwise: 'not_stored' });
});

test.each([
  ['<private> text', 'a <private>b</private>'],
  ['half a surrogate pair', 'a \ud83d b'],
  ['a stub of ours', '[svc left out this Bash output'],
])('an output with %s is never left out', (_, text) => {
  const output = `${text}${longOutput('x', 400)}`;
  const view = viewOfRounds('anthropic_messages', [{ id: 'a', tool: 'Bash', args: {}, output }]);
  const { outputs } = factsOf(view);
  expect(outputs).toHaveLength(1);
  expect(outputs.filter((it) => isElidable(it))).toEqual([]);
});

/** Readings of one text, each after some rounds, and rounds enough to make the last of them old. */
function readings(texts: readonly string[], ref: string, dialect: Dialect): ShorteningFacts {
  const filler = (name: string): Round => {
    return { id: name, tool: 'Bash', args: {}, output: longOutput(name, 30) };
  };
  const read = texts.flatMap((output, at): Round[] => {
    const args = { command: `svc memory get ${ref} --lines 1-100` };
    return [{ id: `r${at}`, tool: 'Bash', args, output }, filler(`f${at}`)];
  });
  const rest = Array.from({ length: 8 }, (_, at) => filler(`c${at}`));
  return factsOf(viewOfRounds(dialect, [...read, ...rest]));
}

const idsOf = (outputs: readonly ToolOutput[]) => outputs.map(({ callId }) => callId);

test.each(DIALECTS)('%s: what was read again may leave again, at most twice', (dialect) => {
  const texts = Array.from({ length: 4 }, (_, at) => longOutput(`part ${at}`, 600));
  const facts = readings(texts, 'm_abcdefghijklmnop', dialect);
  expect(idsOf(facts.old)).toEqual(['r0', 'r1']);
  // What left stays out, and a third copy never does, whatever the ledger says of its text.
  const { repeated } = factsOf(facts.view, { batches: batchesOf(facts.outputs) });
  expect(idsOf(repeated)).not.toContain('r2');
  expect(idsOf(repeated)).toContain('r1');
});

test('a text that comes word for word, or under the reference of its copy, is counted as one', () => {
  const text = longOutput('x', 600);
  const original: Round = { id: 'a', tool: 'Read', args: { file_path: '/x' }, output: text };
  const outputs = (list: readonly Round[]) =>
    factsOf(viewOfRounds('openai_responses', list)).outputs;
  const again = (id: string, of: string, output: string): Round => {
    const ref = referenceOf(outputs([{ ...original, output: of }])[0]?.digest ?? '');
    return { id, tool: 'Bash', args: { command: `svc memory get ${ref}` }, output };
  };
  const part = longOutput('part', 300);
  const list = [original, again('b', text, part), again('c', part, part), again('d', text, text)];
  expect(outputs(list).map(({ timesRead }) => timesRead)).toEqual([0, 1, 2, 3]);
  // Read anew with its own tool it is the same text, read as often.
  const anew = outputs([...list, { ...original, id: 'e' }]).at(-1);
  expect(anew?.timesRead).toBe(3);
});

test('what a client’s own stub refers to stays, and comes back when it was left out before', () => {
  const read = (id: string, output: string): Round => {
    return { id, tool: 'Read', args: { file_path: '/src/a.ts' }, output };
  };
  const rest = Array.from({ length: 8 }, (_, at): Round => {
    return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, 600) };
  });
  const unchanged = 'File unchanged since last read. Refer to that instead of re-reading.';
  const session = [read('a', longOutput('a', 600)), read('b', unchanged), ...rest];
  const facts = factsOf(viewOfRounds('anthropic_messages', session));
  expect(idsOf(facts.old)).toEqual(['c0', 'c1', 'c2', 'c3']);
  const batches = batchesOf(facts.outputs.slice(0, 1));
  expect(factsOf(facts.view, { batches }).repeated).toEqual([]);
  // Where thinking is bound to the stub, it stays.
  expect(idsOf(factsOf(facts.view, { batches, isBound: true }).repeated)).toEqual(['a']);
});

test('140,000 outputs are judged in one go: the work grows as the conversation does', () => {
  const view = viewOfRounds('anthropic_messages', [
    { id: 'a', tool: 'Bash', args: { command: 'ls' }, output: longOutput('x', 400) },
    { id: 'b', tool: 'Bash', args: { command: 'ls' }, output: longOutput('y', 400) },
  ]);
  const [item, output] = [view.items[1], factsOf(view).outputs[0]];
  if (item === undefined || output === undefined) throw new Error('No.');
  const count = 140_000;
  const many = Array.from({ length: count }, (_, at) => ({ ...output, item: 2 * at + 1 }));
  const facts = {
    ...factsOf(view, { isCacheCold: false }),
    view: { ...view, items: Array.from({ length: 2 * count }, () => item) },
    rounds: many.map((one) => one.item),
    outputs: many,
    repeated: many.slice(0, count / 2),
    old: many.slice(count / 2, -4),
  };
  const startedAt = performance.now();
  const removal = removalOf(facts);
  expect(settle(facts, removal, new Set([output.digest])).elided.length).toBe(count - 4);
  // It takes under a second; work with the square of the calls would take minutes.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
