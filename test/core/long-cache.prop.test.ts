import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyEdits } from '../../src/core/plan/item-edits.ts';
import { viewRequest } from '../support/view-of.ts';
import { afterPause, longCacheEdits, wasServed } from '../../src/core/shortening/long-cache.ts';
import { recordings } from '../support/recordings.ts';

const MINUTE = 60_000;

function edited(text: string): string {
  const view = viewRequest(Buffer.from(text), 'anthropic_messages');
  if (view === undefined) throw new Error('The test body cannot be read.');
  return Buffer.concat(applyEdits(view.bytes, longCacheEdits(view))).toString();
}

interface Marked {
  readonly cache_control?: { readonly ttl?: string } | null;
}

/** Lifetimes of the marks in the order in which the provider reads them. */
function lifetimes(text: string): readonly string[] {
  const body = JSON.parse(text) as { tools?: Marked[]; system?: Marked[] | string };
  const system = typeof body.system === 'string' ? [] : (body.system ?? []);
  return [...(body.tools ?? []), ...system].flatMap(({ cache_control: mark }) =>
    mark === undefined || mark === null ? [] : [mark.ttl ?? '5m'],
  );
}

const bodies = recordings().filter(
  ({ dialect, path }) => dialect === 'anthropic_messages' && !path.includes('count_tokens'),
);

test('of recorded bodies nothing but lifetimes of marks up to the system prompt changes', () => {
  expect(bodies.length).toBeGreaterThan(20);
  let changed = 0;
  for (const { body } of bodies) {
    for (const text of [JSON.stringify(body), JSON.stringify(body, undefined, 1)]) {
      const after = edited(text);
      expect(after.replaceAll(',"ttl":"1h"', '')).toBe(text.replaceAll(',"ttl":"1h"', ''));
      expect(new Set(lifetimes(after)).size).toBeLessThanOrEqual(1);
      const { messages } = JSON.parse(after) as { messages: unknown };
      expect(messages).toEqual(body['messages']);
      if (after !== text) changed += 1;
    }
  }
  expect(changed).toBeGreaterThan(20);
});

const mark = fc.constantFrom(
  undefined,
  '{"type":"ephemeral"}',
  '{ "type" : "ephemeral" }',
  '{"type":"ephemeral","ttl":"5m"}',
  '{"ttl":"1h","type":"ephemeral"}',
  '{"type":"another"}',
  'null',
);
const part = mark.map((it) => `{"text":"a"${it === undefined ? '' : `, "cache_control": ${it}`}}`);
const list = fc.array(part, { maxLength: 5 }).map((parts) => `[${parts.join(' , ')}]`);

test('a long lifetime never stands behind a short one, and what the client says of one stays', () => {
  fc.assert(
    fc.property(list, list, fc.boolean(), (tools, system, isSystemFirst) => {
      const prefix = [`"tools":${tools}`, `"system":${system}`];
      const members = isSystemFirst ? prefix.toReversed() : prefix;
      const text = `{"n":1.0,${members.join(',')},"messages":[{"role":"user","content":"hi"}]}`;
      const after = edited(text);
      const isOurs = (value: string): string => value.replaceAll(',"ttl":"1h"', '');
      expect(isOurs(after)).toBe(isOurs(text));
      const order = lifetimes(after);
      const firstShort = order.indexOf('5m');
      // Where the client itself mixes them the order is its own.
      if (!lifetimes(text).includes('1h') && firstShort !== -1) {
        expect(order.slice(firstShort)).not.toContain('1h');
      }
    }),
    { numRuns: 300 },
  );
});

test('a mark gets the lifetime at its end, whatever its spelling', () => {
  const system = '[{"type":"text","text":"s","cache_control":{ "type" : "ephemeral" }}]';
  expect(edited(`{"system":${system},"messages":[{"role":"user","content":"x"}]}`)).toBe(
    '{"system":[{"type":"text","text":"s","cache_control":{ "type" : "ephemeral","ttl":"1h" }}],' +
      '"messages":[{"role":"user","content":"x"}]}',
  );
});

test('it begins at a pause that an hour bridges, and goes on only where it has paid', () => {
  const begun = afterPause(undefined, 10 * MINUTE);
  expect(begun).toEqual({ isLong: true, bridged: 0, isOver: false });
  expect(afterPause(undefined, 4 * MINUTE)).toBeUndefined();
  expect(afterPause(undefined, 90 * MINUTE)).toBeUndefined();
  expect(afterPause(begun, 2 * MINUTE)).toBeUndefined();
  // Written once and never used: not again.
  expect(afterPause(begun, 90 * MINUTE)).toMatchObject({ isLong: false });
  const paid = afterPause(begun, 20 * MINUTE);
  expect(paid).toEqual({ isLong: true, bridged: 1, isOver: false });
  expect(afterPause(paid, 90 * MINUTE)).toEqual({ isLong: true, bridged: 0, isOver: false });
  const over = { isLong: false, bridged: 0, isOver: true };
  expect(afterPause(over, 10 * MINUTE)).toBeUndefined();
  expect([wasServed(900, 1_000), wasServed(100, 1_000)]).toEqual([true, false]);
});
