import { describe, expect, test } from 'vitest';
import { PrefixHistory } from '../../src/core/meter/cache-miss.ts';
import {
  differenceOf,
  droppedThoughts,
  ownDifference,
  sketchOf,
} from '../../src/core/meter/prefix.ts';
import type { PrefixSketch } from '../../src/core/meter/prefix.ts';
import { requestWith, said } from '../support/dialect-wire.ts';
import { viewOf } from '../support/view-of.ts';

/** What differs between two requests, and since which of several threads. */

function sketch(items: readonly unknown[], extra = {}): PrefixSketch {
  return sketchOf(viewOf('anthropic_messages', requestWith('anthropic_messages', items, extra)));
}

const ONE = said('user', 'one');
const TWO = said('assistant', 'two');
const THREE = said('user', 'three');

describe('the first difference', () => {
  test('is none where a request only adds messages, moves a cache mark or writes a text as a list', () => {
    const marked = said('user', [
      { type: 'text', text: 'one', cache_control: { type: 'ephemeral' } },
    ]);
    expect(differenceOf(sketch([marked]), sketch([ONE, TWO, THREE]))).toBeUndefined();
    expect(differenceOf(sketch([ONE, TWO, THREE]), sketch([ONE]))).toBeUndefined();
    const head = 'x-anthropic-billing-header: cch=';
    const system = (cch: string): object => ({
      system: [
        { type: 'text', text: `${head}${cch}` },
        { type: 'text', text: 'Be kind.' },
      ],
    });
    expect(differenceOf(sketch([ONE], system('1')), sketch([ONE], system('2')))).toBeUndefined();
  });

  test.each([
    ['Today is 2026-11-24.', 'Today is 2026-11-25.', 'date'],
    ['It is Tuesday, November 24, 2026.', 'It is Wednesday, November 25, 2026.', 'date'],
    ['Now: 23:59', 'Now: 00:00', 'date'],
    ['Run 17 of 20.', 'Run 18 of 20.', 'number'],
    ['Id 8f14e45f-ceea-467f', 'Id c9f0f895-fb98-ab91', 'number'],
    ['Be kind.', 'Be quick.', 'edited'],
  ])('of the system prompts %j and %j is of the kind %s', (before, after, change) => {
    const differ = differenceOf(
      sketch([ONE], { system: before }),
      sketch([ONE], { system: after }),
    );
    expect(differ).toMatchObject({ place: 'system', change });
    const first = (text: string): PrefixSketch => sketch([said('user', text), TWO]);
    expect(differenceOf(first(before), first(after))).toMatchObject({ place: 'message', change });
  });

  test('names the tool, or the server that all of the tools are of', () => {
    const tools = (...names: readonly string[]): object => ({
      tools: names.map((name) => ({ name })),
    });
    const differ = (one: object, other: object): unknown => {
      return differenceOf(sketch([ONE], one), sketch([ONE], other));
    };
    const added = { place: 'tools', change: 'added' };
    const late = tools('Bash', 'mcp__jira__find', 'mcp__jira__get');
    expect(differ(tools('Bash'), late)).toMatchObject({ ...added, name: 'jira', isServer: true });
    expect(differ(tools('Bash'), tools('Bash', 'Read'))).toMatchObject({ ...added, name: 'Read' });
    expect(differ(tools('Bash', 'Read'), tools('Read', 'Bash'))).toMatchObject({ change: 'order' });
    const deferred = { tools: [{ name: 'Bash' }, { name: 'Late', defer_loading: true }] };
    expect(differ(tools('Bash'), deferred)).toBeUndefined();
  });

  test('of messages is an edit, an insertion, a removal or another order', () => {
    const before = sketch([ONE, TWO, THREE]);
    const change = (...items: readonly unknown[]): unknown => {
      const { place, index, change: how } = differenceOf(before, sketch(items)) ?? {};
      return [place, index, how];
    };
    expect(change(ONE, said('assistant', 'else'), THREE)).toEqual(['message', 1, 'edited']);
    expect(change(ONE, said('user', 'new'), TWO, THREE)).toEqual(['message', 1, 'added']);
    expect(change(ONE, THREE)).toEqual(['message', 1, 'removed']);
    expect(change(ONE, THREE, TWO)).toEqual(['message', 1, 'order']);
  });

  test('counts thinking that the client leaves out', () => {
    const thought = said('assistant', [
      { type: 'thinking', thinking: 'hm', signature: 'signed' },
      { type: 'text', text: 'two' },
    ]);
    const [before, after] = [sketch([ONE, thought, THREE]), sketch([ONE, TWO, THREE])];
    expect(differenceOf(before, after)).toMatchObject({ place: 'thinking', change: 'removed' });
    expect(droppedThoughts(before, after)).toBe(1);
    expect(droppedThoughts(before, sketch([ONE]))).toBe(0);
  });
});

test('what svc sent otherwise counts in front of the end alone', () => {
  const before = new Map([[1, '\nblock text a']]);
  expect(ownDifference(before, new Map(before), 9)).toBeUndefined();
  expect(ownDifference(before, new Map(), 9)).toEqual({ index: 1, what: 'block' });
  expect(ownDifference(before, new Map(), 1)).toBeUndefined();
  const batch = new Map([...before, [3, '\noutputs x 40']]);
  expect(ownDifference(before, batch, 9)).toEqual({ index: 3, what: 'outputs' });
});

const USAGE = { input: 9, cacheRead: 0, cacheWrite: 9_000, output: 1 };

test('threads that run side by side are each compared with their own last request', () => {
  const history = new PrefixHistory();
  const keep = (items: readonly unknown[], at: number): void => {
    const compared = history.compare(sketch(items), at);
    const facts = { own: new Map(), usage: USAGE, answeredAt: at + 1, wallAt: at, lifetimeMs: 300 };
    history.keep({ sketch: compared.sketch, at, ...facts }, compared.before);
  };
  keep([ONE, TWO, THREE], 0);
  keep([ONE, said('assistant', 'other'), THREE], 2);
  const next = sketch([ONE, TWO, THREE, TWO]);
  expect(history.compare(next, 4)).toMatchObject({ difference: undefined, before: { at: 0 } });
  // An answer that has not begun has cached nothing yet.
  expect(history.compare(next, 0).before).toBeUndefined();
});
