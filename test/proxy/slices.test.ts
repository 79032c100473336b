import { describe, expect, test } from 'vitest';
import { finish, type Steps } from '../../src/core/bytes/steps.ts';
import { LOCAL_TENANT } from '../../src/core/ledger/entries.ts';
import { READ_LIMITS, viewSteps } from '../../src/core/request/request-view.ts';
import { viewRequest } from '../support/view-of.ts';
import { Conversations } from '../../src/proxy/conversations.ts';
import { readSteps } from '../../src/proxy/read-request.ts';
import { Slices } from '../../src/proxy/deadline.ts';

const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const MIB = 1 << 20;

/** Longest time for which nothing else was served while the work went on. */
async function longestDelay(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  const look = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  await work();
  look();
  clearInterval(timer);
  return longest;
}

const user = (content: unknown) => ({ role: 'user', content });
const bodyOf = (messages: string, shell = '') =>
  Buffer.from(`{"model":"m"${shell},"messages":${messages}}`);

function callsOf(count: number): Buffer {
  const ids = Array.from({ length: count }, (_, at) => `toolu_${at}`);
  const calls = ids.map((id) => ({
    role: 'assistant',
    content: [{ type: 'tool_use', id, name: 'Bash', input: {} }],
  }));
  const results = ids.map((id) => user([{ type: 'tool_result', tool_use_id: id, content: 'ok' }]));
  return bodyOf(JSON.stringify([...calls, ...results]));
}

const BODIES: readonly (readonly [string, () => Buffer, string])[] = [
  [
    '100,000 messages',
    () => bodyOf(JSON.stringify(Array(100_000).fill(user('hello')))),
    'too_large',
  ],
  ['70,000 calls and their results', () => callsOf(70_000), 'too_large'],
  ['9,000 calls and their results', () => callsOf(9_000), 'read'],
  ['a string of 60 MB', () => bodyOf(`["${'word and '.repeat(7e6)}"]`), 'too_large'],
  [
    'strings of 7 MB',
    () => bodyOf(JSON.stringify([user('word '.repeat(1.4e6)), user('x')])),
    'read',
  ],
  ['instructions of 60 MB', () => bodyOf('[]', `,"system":"${'x'.repeat(60 * MIB)}"`), 'too_large'],
  ['1,000,000 tiny items', () => bodyOf(`[${Array(1e6).fill('1').join(',')}]`), 'too_large'],
  ['lists in lists', () => bodyOf(`[${Array(9_000).fill('[[[]],[[]]]').join(',')}]`), 'read'],
  ['60 MB of white space', () => bodyOf(`[1,${' '.repeat(60 * MIB)}2]`), 'too_large'],
  ['a number of 60 MB', () => bodyOf(`[${'1'.repeat(60 * MIB)}]`), 'too_large'],
  ['depth 100,000', () => bodyOf(`[${'['.repeat(1e5)}${']'.repeat(1e5)}]`), 'unparseable'],
];

// Far above the bar: the machine may be busy. Without slices it is the whole time of the work.
const DELAY_MS = 1_000;

describe('R39: reading a request holds up no other one', () => {
  test.each(BODIES)('%s', async (_name, makeBody, expected) => {
    const request = {
      id: 'req_1',
      route: { kind: 'model', dialect: 'anthropic_messages' } as const,
      method: 'POST',
      target: '/v1/messages',
      headers: [],
      body: makeBody(),
      startedAt: 0,
    };
    const steps = readSteps(new Conversations(), request, { tenant: LOCAL_TENANT });
    let read: unknown;
    const delay = await longestDelay(async () => {
      read = await new Slices(clock).run(steps);
    });
    expect(typeof read === 'string' ? read : 'read').toBe(expected);
    expect(delay).toBeLessThan(DELAY_MS);
  });
});

describe('R39: the limits', () => {
  const dialect = 'anthropic_messages';
  const READ_AS = { dialect, hasFrames: () => false } as const;

  test('as many items as the limit are read, one more is not', () => {
    const itemsOf = (count: number) => bodyOf(JSON.stringify(Array(count).fill(user(''))));
    expect(viewRequest(itemsOf(READ_LIMITS.items), dialect)?.items.length).toBe(READ_LIMITS.items);
    expect(finish(viewSteps(itemsOf(READ_LIMITS.items + 1), READ_AS, undefined))).toBe('too_large');
  });

  test('as many prompts as the limit are read, one more is not', () => {
    const promptsOf = (count: number) => bodyOf(JSON.stringify(Array(count).fill(user('hello'))));
    const { humans } = READ_LIMITS;
    expect(viewRequest(promptsOf(humans), dialect)?.items.length).toBe(humans);
    const more = promptsOf(humans + 1);
    expect(finish(viewSteps(more, READ_AS, undefined))).toBe('too_large');
    // As many also where the first ones are known already.
    expect(viewRequest(more, dialect, viewRequest(promptsOf(humans), dialect))).toBeUndefined();
  });

  test('an item as long as the limit is read, one byte more is not', () => {
    const itemOf = (bytes: number) => bodyOf(`["${'x'.repeat(bytes - 2)}",1]`);
    expect(viewRequest(itemOf(READ_LIMITS.itemBytes), dialect)?.items.length).toBe(2);
    const longer = itemOf(READ_LIMITS.itemBytes + 1);
    expect(finish(viewSteps(longer, READ_AS, undefined))).toBe('too_large');
  });

  test('tools as long as the limit are read by their elements, as JSON.parse reads them', () => {
    const tools = Array.from({ length: 40_000 }, (_, at) => ({
      name: `tool ${at}`,
      n: [1.0, null],
    }));
    const shell = { tools, '__proto__ ': 1, metadata: { a: 'x'.repeat(70_000) } };
    const text = JSON.stringify({ ...shell, messages: [] }).replace('__proto__ ', '__proto__');
    const view = viewRequest(Buffer.from(`${text} \n`), dialect);
    expect(view?.shell.value).toEqual(JSON.parse(text));
    for (const broken of [
      `${text} 1`,
      text.replace('},{', '},,{'),
      text.replace('null]', 'nul]'),
    ]) {
      expect(viewRequest(Buffer.from(broken), dialect)).toBeUndefined();
    }
  });
});

describe('slices', () => {
  const NO_STEPS: readonly undefined[] = [];

  function* busySteps(count: number, log: string[], name: string): Steps<string> {
    for (let at = 0; at < count; at += 1) {
      const until = performance.now() + 9;
      while (performance.now() < until);
      log.push(name);
      yield;
    }
    return name;
  }

  test('long works take turns, and other work goes between', async () => {
    const slices = new Slices(clock);
    const log: string[] = [];
    const works = [slices.run(busySteps(4, log, 'a')), slices.run(busySteps(4, log, 'b'))];
    const other = new Promise<void>((resolve) => {
      setImmediate(() => {
        log.push('other');
        resolve();
      });
    });
    expect(await Promise.all([...works, other])).toEqual(['a', 'b', undefined]);
    expect(log.filter((name) => name !== 'other')).toEqual([
      'a',
      'b',
      'a',
      'b',
      'a',
      'b',
      'a',
      'b',
    ]);
    expect(log.indexOf('other')).toBeLessThan(5);
  });

  test('short work is done at once, and what a step throws is thrown', async () => {
    const slices = new Slices(clock);
    let isDone = false;
    const short = slices.run(
      (function* () {
        isDone = true;
        yield* NO_STEPS;
      })(),
    );
    expect(isDone).toBe(true);
    await short;
    const failing = slices.run(
      (function* (): Steps<void> {
        yield* NO_STEPS;
        throw new Error('step');
      })(),
    );
    await expect(failing).rejects.toThrow('step');
  });
});
