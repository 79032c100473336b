import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { DIALECTS, type Dialect } from '../../src/core/conversation/dialect.ts';
import { applyEdits } from '../../src/core/plan/edits.ts';
import { groupExchanges } from '../../src/core/conversation/exchanges.ts';
import { outputsOf } from '../../src/core/shortening/output-list.ts';
import { readItemTools, type ToolOutput } from '../../src/core/shortening/outputs.ts';
import { LOCAL_TENANT, type LeftOut } from '../../src/core/ledger/entries.ts';
import { elisionEntries, repeatedOutputs } from '../../src/core/shortening/elisions.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { viewRequest } from '../../src/core/request/request-view.ts';
import { decide, settle } from '../../src/core/shortening/decide.ts';
import {
  elisionEdits,
  findCandidates,
  isElidable,
  replacementsOf,
  type ShorteningFacts,
} from '../../src/core/shortening/shortening.ts';
import {
  NEWEST_FORM,
  type StubForm,
  writeNote,
  writeStub,
} from '../../src/core/shortening/stubs.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';
import type { Fill } from '../../src/core/shortening/window.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

function factsOf(view: RequestView, other: Partial<ShorteningFacts> = {}): ShorteningFacts {
  const toolsOf = (item: RequestView['items'][number]) => readItemTools(view, item);
  return {
    items: view.items,
    exchanges: groupExchanges(view.items),
    outputs: outputsOf(view, toolsOf),
    repeated: new Map(),
    omittable: [],
    omitted: [],
    isStored: () => true,
    isRefused: () => false,
    isCacheCold: true,
    keepRounds: 4,
    tokens: view.tokens,
    inputBudget: 0,
    prices: cachePrices(view.dialect),
    fill: ROOMY,
    isWholeAgain: false,
    isCompaction: false,
    isOver: false,
    ...other,
  };
}

function asRepeated(outputs: readonly ToolOutput[]): ReadonlyMap<ToolOutput, StubForm> {
  return new Map(outputs.map((output) => [output, NEWEST_FORM]));
}

const ROOMY: Fill = { hasRoom: true, growthLeft: Infinity, isAtEdge: false, mayNotFit: false };

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
      const { elided } = settle(facts, decide(facts), everyProven(facts.outputs));
      const style = { outputFolder: '/data/outputs', forms: facts.repeated };
      const replacements = replacementsOf(elided, style);
      const forwarded = Buffer.concat(applyEdits(view.bytes, elisionEdits(replacements)));
      // The oracle: the same session written with stubs for texts, a note behind the first.
      const note = writeNote('/data/outputs', NEWEST_FORM);
      const stubs = new Map(
        elided.map((output, at) => [
          output.callId,
          `${writeStub(output, NEWEST_FORM)}${at === 0 ? note : ''}`,
        ]),
      );
      const expected = list.map((one) => ({ ...one, output: stubs.get(one.id) ?? one.output }));
      expect(forwarded.toString()).toBe(JSON.stringify(sessionBody(dialect, expected)));
    }),
    { numRuns: 60 },
  );
});

test('outputs of the last rounds, small ones, unproven ones, and of late tools for longer, stay', () => {
  fc.assert(
    fc.property(dialects, rounds, fc.integer({ min: 1, max: 6 }), (dialect, list, keepRounds) => {
      const view = viewOfRounds(dialect, list);
      const facts = factsOf(view, { keepRounds });
      const proven = new Set(
        facts.outputs.filter((_, at) => at % 3 > 0).map(({ digest }) => digest),
      );
      const { elided } = settle(facts, decide(facts), proven);
      const last = new Set(list.slice(-keepRounds).map(({ id }) => id));
      for (const output of elided) {
        expect(last.has(output.callId)).toBe(false);
        expect(output.tokens).toBeGreaterThanOrEqual(120);
        if (['Task', 'Glob'].includes(output.tool))
          expect(list.slice(-12)).not.toContainEqual(
            expect.objectContaining({ id: output.callId }),
          );
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
  const ids = findCandidates(facts).map(({ callId }) => callId);
  expect(ids).toEqual(['c8', 'c9', 'c10', 'c11']);
});

test('stubs are written in the form of their batch', () => {
  const view = sessionOf(10, 500);
  const { outputs } = factsOf(view);
  const owner = { tenant: LOCAL_TENANT, space: 's', conversation: 'c' };
  const place = { view, owner, elision: 'real' } as const;
  const entries = elisionEntries({ batch: outputs, omissions: [] }, place, { at: 1 });
  const batches = entries.flatMap((entry) => ('leftOut' in entry ? [entry.leftOut] : []));
  const formsOf = (list: readonly LeftOut[]) => [...repeatedOutputs(outputs, list).values()];
  const all = (form: StubForm) => Array.from({ length: 10 }, () => form);
  expect(formsOf(batches)).toEqual(all(NEWEST_FORM));
  const as = (stubForm: number) =>
    batches.map((it) => (it === 'nothing' ? it : { ...it, stubForm }));
  expect(formsOf(as(1))).toEqual(all(1));
  // Two batches hold the same output: its first words stay.
  expect(formsOf([...batches, ...as(1)])).toEqual(all(1));
  expect(formsOf(as(9))).toEqual(all(NEWEST_FORM));
});

test('without a cold cache a small batch waits, and with one it goes', () => {
  const list = Array.from({ length: 8 }, (_, at): Round => {
    return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, 600) };
  });
  const view = viewOfRounds('anthropic_messages', list);
  expect(decide(factsOf(view, { isCacheCold: false }))).toMatchObject({
    batch: [],
    otherwise: 'not_worth_it',
  });
  expect(decide(factsOf(view)).batch.map(({ callId }) => callId)).toEqual(['c0', 'c1', 'c2', 'c3']);
});

function sessionOf(count: number, tokens: number): RequestView {
  return viewOfRounds(
    'anthropic_messages',
    Array.from({ length: count }, (_, at): Round => {
      return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, tokens) };
    }),
  );
}

test('a batch of half of the messages goes after many requests, and not after a few', () => {
  const batchOf = (view: RequestView, fill = ROOMY) =>
    decide(factsOf(view, { isCacheCold: false, fill })).batch;
  expect(batchOf(sessionOf(40, 500))).toHaveLength(36);
  expect(batchOf(sessionOf(6, 8_000))).toEqual([]);
  // Soon it would come back: what it saves until then is less than what that costs.
  expect(batchOf(sessionOf(40, 500), { ...ROOMY, growthLeft: 0.05 })).toEqual([]);
});

test('after a first batch the next one goes the sooner, the longer its outputs have waited', () => {
  const batchAfter = (later: number): number => {
    const sizes = [
      ...Array.from({ length: 30 }, () => 500),
      ...Array.from({ length: 8 }, () => 1_600),
      ...Array.from({ length: later }, () => 1),
      ...Array.from({ length: 4 }, () => 4_000),
    ];
    const list = sizes.map((size, at): Round => {
      return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, size) };
    });
    const facts = factsOf(viewOfRounds('anthropic_messages', list), { isCacheCold: false });
    return decide({ ...facts, repeated: asRepeated(facts.outputs.slice(0, 30)) }).batch.length;
  };
  expect(batchAfter(0)).toBe(0);
  expect(batchAfter(60)).toBe(8);
});

test('a first batch that its conversation is too short for goes once its outputs have waited', () => {
  const batchAfter = (later: number): number => {
    const sizes = [
      ...Array.from({ length: 8 }, () => 1_600),
      ...Array.from({ length: later }, () => 1),
      ...Array.from({ length: 4 }, () => 4_000),
    ];
    const list = sizes.map((size, at): Round => {
      return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, size) };
    });
    const view = viewOfRounds('anthropic_messages', list);
    return decide(factsOf(view, { isCacheCold: false })).batch.length;
  };
  expect(batchAfter(0)).toBe(0);
  // From 30 requests on no more are expected: by them alone it would never pay.
  expect(batchAfter(30)).toBe(0);
  expect(batchAfter(60)).toBe(8);
});

test('above four fifths of the window nothing more is left out, and what is out stays out', () => {
  const view = sessionOf(40, 500);
  const fill = { ...ROOMY, hasRoom: false };
  for (const isCacheCold of [true, false]) {
    const facts = factsOf(view, { fill, isCacheCold });
    const repeated = asRepeated(facts.outputs.slice(0, 5));
    expect(decide({ ...facts, repeated })).toEqual({
      repeated: [...repeated.keys()],
      omitted: [],
      batch: [],
      omissions: [],
      comesBack: false,
      otherwise: 'near_window',
    });
  }
});

test('at the window’s edge all comes back once; where nothing is out there is nothing to come', () => {
  const view = sessionOf(40, 500);
  const facts = factsOf(view, { fill: { ...ROOMY, hasRoom: false, isAtEdge: true } });
  const repeated = asRepeated(facts.outputs.slice(0, 5));
  expect(decide({ ...facts, repeated })).toMatchObject({ repeated: [], comesBack: true });
  expect(decide(facts)).toMatchObject({ repeated: [], batch: [], comesBack: false });
  // From then on, also with room to spare: the model's cache holds the whole now.
  const after = { ...facts, fill: ROOMY, isWholeAgain: true, repeated };
  expect(decide(after)).toMatchObject({ repeated: [], batch: [], comesBack: false });
});

test('a compaction sees all where that fits, and what was left out stays out where it does not', () => {
  const view = sessionOf(40, 500);
  const fill = { ...ROOMY, hasRoom: false, isAtEdge: true };
  const facts = factsOf(view, { isCompaction: true, fill });
  const repeated = asRepeated(facts.outputs.slice(0, 5));
  expect(decide({ ...facts, repeated })).toMatchObject({ repeated: [], comesBack: false });
  const tooMuch = { ...fill, isAtEdge: false, mayNotFit: true };
  const wanted = decide({ ...facts, repeated, fill: tooMuch });
  expect(wanted).toMatchObject({ repeated: [...repeated.keys()], batch: [], comesBack: false });
});

test('what the memory never acknowledged is not even asked for', () => {
  const list = Array.from({ length: 12 }, (_, at): Round => {
    return { id: `c${at}`, tool: 'Bash', args: {}, output: longOutput(`${at}`, 600) };
  });
  const facts = factsOf(viewOfRounds('openai_responses', list), { isStored: () => false });
  expect(decide(facts)).toEqual({
    repeated: [],
    omitted: [],
    batch: [],
    omissions: [],
    comesBack: false,
    otherwise: 'not_stored',
  });
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
  expect(idsOf(findCandidates(facts))).toEqual(['r0', 'r1']);
  // What left stays out, and a third copy never does, whatever the ledger says of its text.
  const repeated = asRepeated(facts.outputs);
  expect(idsOf(decide({ ...facts, repeated }).repeated)).not.toContain('r2');
  expect(idsOf(decide({ ...facts, repeated }).repeated)).toContain('r1');
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
  expect(findCandidates(facts).map(({ callId }) => callId)).toEqual(['c0', 'c1', 'c2', 'c3']);
  const [referred] = facts.outputs;
  const repeated = asRepeated(referred === undefined ? [] : [referred]);
  expect(decide({ ...facts, repeated }).repeated).toEqual([]);
});

test('140,000 outputs are judged in one go: the work grows as the conversation does', () => {
  const view = viewOfRounds('anthropic_messages', [
    { id: 'a', tool: 'Bash', args: { command: 'ls' }, output: longOutput('x', 400) },
    { id: 'b', tool: 'Bash', args: { command: 'ls' }, output: longOutput('y', 400) },
  ]);
  const { items, exchanges, outputs } = factsOf(view);
  const [item, exchange, output] = [items[1], exchanges[0], outputs[0]];
  if (item === undefined || exchange === undefined || output === undefined) throw new Error('No.');
  const count = 140_000;
  const many = Array.from({ length: count }, (_, at) => ({ ...output, item: 2 * at + 1 }));
  const answered = many.map((one) => ({ calls: [one.item - 1], results: [one.item] }));
  const facts = factsOf(view, {
    items: Array.from({ length: 2 * count }, () => item),
    exchanges: [{ ...exchange, rounds: answered }],
    outputs: many,
    repeated: asRepeated(many.slice(0, count / 2)),
    isCacheCold: false,
  });
  const startedAt = performance.now();
  const removal = decide(facts);
  expect(settle(facts, removal, new Set([output.digest])).elided.length).toBe(count - 4);
  // It takes under a second; work with the square of the calls would take minutes.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
