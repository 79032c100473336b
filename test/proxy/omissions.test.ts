import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { writeNextOmissionNote, writeOmissionNote } from '../../src/core/shortening/omissions.ts';
import { estimateTokens } from '../../src/core/bytes/tokens.ts';
import type { Memory } from '../../src/ports/memory.ts';
import { bodyOf, plainItem, type PlainItem } from '../support/plain-chat.ts';
import { openProxyStage, type ProxyStage, type StageOptions } from '../support/proxy-stage.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { wrapped } from '../support/wrapped-memory.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

/** Exchanges of one plain text each, and then one more and a question. */
const OLD = 6;

const SETTINGS = { inputBudget: 1_000 };

async function openStage(options: Partial<StageOptions> = {}): Promise<ProxyStage> {
  const settings = { ...SETTINGS, ...options.settings };
  const stage = await openProxyStage({ folder: tempFolder(), ...options, settings });
  onTestFinished(() => stage.stop());
  return stage;
}

function exchangesOf(dialect: Dialect, count: number): PlainItem[] {
  return Array.from({ length: count }, (_, at) => [
    plainItem(dialect, 'user', `Which port does the staging server falcon${at} listen on?`),
    plainItem(
      dialect,
      'assistant',
      `The staging server falcon${at} listens on port ${6400 + at}.\n${longOutput(`f${at}`, 300)}`,
    ),
  ]).flat();
}

const question = 'Remind me: which port does the staging server falcon1 listen on?';

/** Sends the old exchanges, and waits until the memory has them all. */
async function fill(stage: ProxyStage, dialect: Dialect, items = exchangesOf(dialect, OLD)) {
  const last = plainItem(dialect, 'user', 'Thank you for all of these ports, I wrote them down.');
  await stage.send(dialect, bodyOf(dialect, [...items, last]));
  const missing = async (): Promise<number> => {
    const held = await stage.memory.list({ limit: 200 }, AbortSignal.timeout(30_000));
    const texts = new Set(held.map(({ text }) => JSON.stringify(text)));
    const isHeld = (item: PlainItem) => [...texts].some((text) => holds(item, text));
    return [...items, last].filter((item) => !isHeld(item)).length;
  };
  await expect.poll(missing, { timeout: 10_000 }).toBe(0);
}

/** Whether the item says exactly this JSON string, in whichever form its dialect writes it. */
function holds(item: PlainItem, text: string): boolean {
  return JSON.stringify(item).includes(`:${text}`);
}

/** What stays: the exchange that the old ones end with, and the question. */
function newest(dialect: Dialect, asked = question): PlainItem[] {
  return [
    plainItem(dialect, 'user', 'Thank you for all of these ports, I wrote them down.'),
    plainItem(dialect, 'assistant', 'Glad that the list of ports was of use.'),
    plainItem(dialect, 'user', asked),
  ];
}

function wholeBody(dialect: Dialect, asked?: string): Record<string, unknown> {
  return bodyOf(dialect, [...exchangesOf(dialect, OLD), ...newest(dialect, asked)]);
}

test.each(DIALECTS)(
  '[3.2-deterministic] [3.3-committed] in %s exchanges that memory holds are left out once the cache is cold',
  async (dialect) => {
    const folder = tempFolder();
    const first = await openProxyStage({ folder, settings: SETTINGS });
    await fill(first, dialect);
    first.setClockAhead(301_000);
    const answer = await first.send(dialect, wholeBody(dialect));
    expect(answer.status).toBe(200);
    const forwarded = first.forwarded();
    expect(answer.headers).toMatchObject({
      'x-svc-continuity-state': 'committed',
      'x-svc-compression-mode': 'deterministic',
      'x-svc-memory-state': 'recalled',
      'x-svc-elided-items': String(2 * OLD),
    });
    // What is left is what the client wrote, but for one line and the block.
    const note = JSON.stringify(writeOmissionNote(OLD)).slice(1, -1);
    expect(forwarded.split(note)).toHaveLength(2);
    const [, block = ''] = /(<svc-memory .*<\/svc-memory>)/.exec(forwarded) ?? [];
    expect(block).toContain('falcon1 listens on port 6401');
    // The note joins the message's text; the block of a list is a part of its own.
    const isPart = dialect === 'openai_responses';
    const added = isPart ? `,{"type":"input_text","text":"${block}"}` : `\\n\\n${block}`;
    expect(forwarded.replace(`\\n\\n${note}`, '').replace(added, '')).toBe(
      JSON.stringify(bodyOf(dialect, newest(dialect))),
    );
    // The estimates are those of what was received and of what was sent.
    const estimateOf = (name: string) => Number(answer.headers[`x-svc-${name}-tokens`]);
    const original = estimateTokens(Buffer.from(JSON.stringify(wholeBody(dialect))));
    expect(estimateOf('original-input') / original).toBeCloseTo(1, 1);
    const sent = estimateTokens(Buffer.from(forwarded));
    expect(estimateOf('forwarded-input') / sent).toBeCloseTo(1, 1);

    // Law 6: the next request, warm, and one of a new process leave out the same.
    const kept = forwarded.slice(0, forwarded.lastIndexOf(question));
    const longer = bodyOf(dialect, [
      ...exchangesOf(dialect, OLD),
      ...newest(dialect),
      plainItem(dialect, 'assistant', 'It listens on port 6401.'),
      plainItem(dialect, 'user', 'And are there more of them?'),
    ]);
    await first.send(dialect, longer);
    expect(first.rows.at(-1)?.continuityState).toBe('committed');
    expect(first.forwarded().startsWith(kept)).toBe(true);
    const again = first.forwarded();
    await first.stop();
    const second = await openStage({ folder });
    await second.send(dialect, longer);
    expect(second.forwarded()).toBe(again);
    await second.send(dialect, wholeBody(dialect));
    expect(second.forwarded()).toBe(forwarded);
  },
  60_000,
);

test('[3.2-shadow] shadow measures the exchanges that could be left out, and forwards them', async () => {
  const dialect = 'anthropic_messages';
  const stage = await openStage({ settings: { compressionMode: 'shadow', memoryMode: 'off' } });
  const body = wholeBody(dialect);
  await stage.send(dialect, body);
  stage.setClockAhead(301_000);
  const answer = await stage.send(dialect, body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(answer.headers).toMatchObject({
    'x-svc-continuity-state': 'shadow_only',
    'x-svc-elided-items': String(2 * OLD),
    'x-svc-forwarded-input-tokens': answer.headers['x-svc-original-input-tokens'],
  });
  expect(Number(answer.headers['x-svc-elided-tokens'])).toBeGreaterThan(1_024);
});

function withHold(change: (hold: Memory['hold']) => Memory['hold']): (memory: Memory) => Memory {
  return (memory) =>
    wrapped(memory, { hold: change((asked, signal) => memory.hold(asked, signal)) });
}

const never = () => new Promise<never>(() => {});

const MEMORIES: readonly (readonly [
  name: string,
  state: string,
  wrap: (memory: Memory) => Memory,
])[] = [
  [
    'proves other bytes',
    'bypassed_unproven_recall',
    withHold(
      (hold) => async (asked, signal) =>
        (await hold(asked, signal)).map((one) => ({ ...one, proof: 'A'.repeat(43) })),
    ),
  ],
  [
    'lies about one text alone',
    'bypassed_unproven_recall',
    withHold(
      (hold) => async (asked, signal) =>
        (await hold(asked, signal)).map((one, at) => (at === 3 ? { ...one, proof: '' } : one)),
    ),
  ],
  [
    'repeats a proof for another question',
    'bypassed_unproven_recall',
    withHold((hold) => (asked, signal) => hold({ ...asked, nonce: new Uint8Array(32) }, signal)),
  ],
  ['holds nothing any more', 'bypassed_not_stored', withHold(() => async () => [])],
  [
    'holds the questions alone',
    'bypassed_not_stored',
    withHold((hold) => async (asked, signal) => {
      const held = await hold(asked, signal);
      return held.filter(({ digest }) => asked.digests.indexOf(digest) % 2 === 0);
    }),
  ],
  ['never proves', 'bypassed_recall_degraded', withHold(() => never)],
  [
    'recalls nothing',
    'bypassed_empty_recall',
    (memory) => wrapped(memory, { recall: async () => ({ passages: [] }) }),
  ],
  ['never recalls', 'bypassed_recall_degraded', (memory) => wrapped(memory, { recall: never })],
];

test.each(MEMORIES)(
  'law 2: of a memory that %s no exchange is left out (%s)',
  async (name, state, wrap) => {
    const dialect = 'anthropic_messages';
    // Only those that never answer may reach their deadline.
    const settings = name.startsWith('never') ? { recallMs: 300 } : {};
    const stage = await openStage({ wrap, settings });
    await fill(stage, dialect);
    stage.setClockAhead(301_000);
    await stage.send(dialect, wholeBody(dialect));
    const row = stage.rows.at(-1);
    expect(row).toMatchObject({
      continuityState: state,
      compressionMode: 'passthrough',
      elidedItems: 0,
    });
    expect(stage.forwarded()).not.toContain('[svc left out');
    const { messages } = JSON.parse(stage.forwarded()) as { messages: unknown[] };
    const whole = wholeBody(dialect)['messages'] as unknown[];
    // A recalled block may stand in the newest message; all before it is the client's own.
    expect(messages.slice(0, -1)).toEqual(whole.slice(0, -1));
  },
);

test('an exchange that was forgotten is sent whole again, the others stay out', async () => {
  const dialect = 'openai_chat_completions';
  const stage = await openStage();
  await fill(stage, dialect);
  stage.setClockAhead(301_000);
  await stage.send(dialect, wholeBody(dialect));
  expect(stage.forwarded()).not.toContain('falcon4 listens');
  const filter = { words: 'falcon4' } as const;
  expect(await stage.memory.forget(filter, AbortSignal.timeout(30_000))).toBeGreaterThan(0);
  await stage.send(dialect, wholeBody(dialect));
  expect(stage.forwarded()).toContain('falcon4 listens on port 6404');
  expect(stage.forwarded()).not.toContain('falcon3 listens');
  // It stands between the exchanges that are gone: four before it, the rest behind.
  expect(stage.forwarded()).toContain(writeOmissionNote(4));
  expect(stage.forwarded()).toContain(writeNextOmissionNote(OLD - 5));
});

test('a question of which nothing is recalled leaves the history whole', async () => {
  const dialect = 'openai_responses';
  const stage = await openStage();
  await fill(stage, dialect);
  stage.setClockAhead(301_000);
  const body = wholeBody(dialect, 'Please write a haiku about autumn leaves.');
  await stage.send(dialect, body);
  expect(stage.rows.at(-1)?.continuityState).toBe('bypassed_empty_recall');
  expect(stage.forwarded()).toBe(JSON.stringify(body));
});

const TOLD = 'The falcon0 crew packed everything and went to Bergen in spring.';

/** A conversation whose first prompt was told a fact of another one, and the provider's answer to it. */
async function startTold(stage: ProxyStage, dialect: Dialect): Promise<PlainItem[]> {
  const record = recordOf(TOLD, { space: 'default', conversation: 'another' });
  await stage.memory.capture([record], AbortSignal.timeout(30_000));
  const items = exchangesOf(dialect, OLD);
  items[0] = plainItem(dialect, 'user', 'Where did the falcon0 crew go to when it had packed?');
  await stage.send(dialect, bodyOf(dialect, items.slice(0, 1)));
  expect(stage.forwarded()).toContain('went to Bergen');
  const answered = async () => {
    const held = await stage.memory.list({ limit: 200 }, AbortSignal.timeout(30_000));
    return held.find(({ role, text }) => role === 'assistant' && text !== TOLD)?.text;
  };
  await expect.poll(answered).toBeDefined();
  items[1] = plainItem(dialect, 'assistant', (await answered()) ?? '');
  await fill(stage, dialect, items);
  expect(stage.forwarded()).toContain('went to Bergen');
  stage.setClockAhead(301_000);
  return items;
}

test.each(DIALECTS)(
  'in %s a fact that was recalled in an exchange is recalled again once the exchange has left',
  async (dialect) => {
    const stage = await openStage();
    const items = await startTold(stage, dialect);
    // Asked for in the very request that leaves the exchange out.
    const first = newest(dialect, 'Where did the falcon0 crew go to in spring?');
    await stage.send(dialect, bodyOf(dialect, [...items, ...first]));
    expect(stage.rows.at(-1)?.continuityState).toBe('committed');
    expect(stage.forwarded().split('went to Bergen')).toHaveLength(2);
  },
  60_000,
);

test('a fact whose exchange left earlier is recalled when it is asked for', async () => {
  const dialect = 'anthropic_messages';
  const stage = await openStage({ settings: { ...SETTINGS, recalledTokensMax: 4_000 } });
  const items = await startTold(stage, dialect);
  await stage.send(dialect, bodyOf(dialect, [...items, ...newest(dialect)]));
  expect(stage.rows.at(-1)?.continuityState).toBe('committed');
  const before = stage.forwarded();
  expect(before).not.toContain('went to Bergen');
  const longer = bodyOf(dialect, [
    ...items,
    ...newest(dialect),
    plainItem(dialect, 'assistant', 'It listens on port 6401.'),
    plainItem(dialect, 'user', 'Where did the falcon0 crew go to in spring?'),
  ]);
  await stage.send(dialect, longer);
  expect(stage.rows.at(-1)?.continuityState).toBe('committed');
  expect(stage.forwarded()).toContain('went to Bergen');
  const kept = before.slice(0, before.lastIndexOf(question));
  expect(stage.forwarded().startsWith(kept)).toBe(true);
  expect(stage.rows.at(-1)?.recalledTokens).toBeLessThanOrEqual(4_000);
});

test.each([
  [false, []],
  [true, [{ name: 'Bash', input_schema: { type: 'object' } }]],
])('a pasted document leaves only where a tool can read it again: %s', async (leaves, tools) => {
  const dialect = 'anthropic_messages';
  const stage = await openStage();
  const items = exchangesOf(dialect, OLD);
  const pasted = `Here is the manual of the falcon servers:\n${longOutput('manual', 3_000)}`;
  items[2] = plainItem(dialect, 'user', pasted);
  await fill(stage, dialect, items);
  stage.setClockAhead(301_000);
  const body = { ...bodyOf(dialect, [...items, ...newest(dialect)]), tools };
  await stage.send(dialect, body);
  expect(stage.rows.at(-1)?.continuityState).toBe('committed');
  expect(stage.forwarded().includes('manual line 200 ')).toBe(!leaves);
  // A block for an agent may quote the answer's first line, not what followed it.
  expect(stage.forwarded()).not.toContain('f4 line 2 of');
});

test('a refused request leaves again whole, and the conversation stays so', async () => {
  const dialect = 'anthropic_messages';
  const stage = await openStage();
  await fill(stage, dialect);
  stage.setClockAhead(301_000);
  stage.provider.failWith({ kind: 'status', status: 400, path: /messages/, nth: [1] });
  const body = wholeBody(dialect);
  expect((await stage.send(dialect, body)).status).toBe(200);
  expect(stage.provider.records.at(-2)?.body.toString()).toContain(writeOmissionNote(OLD));
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  await stage.send(dialect, body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(stage.rows.at(-1)?.continuityState).toBe('bypassed_provider_refused');
});

test('where a tool was called outputs leave and exchanges stay, and a compaction repeats it', async () => {
  const dialect = 'anthropic_messages';
  // Nothing leaves a warm cache whose reads are next to free.
  const stage = await openStage({ cacheRead: 0.001 });
  const rounds = Array.from({ length: 8 }, (_, at): Round => {
    const output = longOutput(`r${at}`, 900);
    return { id: `call_${at}`, tool: 'Bash', args: { command: `step ${at}` }, output };
  });
  const withTools = (items: readonly PlainItem[]) => {
    const body = sessionBody(dialect, rounds, question);
    return { ...body, messages: [...items, ...(body['messages'] as PlainItem[])] };
  };
  const old = exchangesOf(dialect, OLD);
  // Of another session: the question has its block before the batch, which is made in its tool loop.
  const told = 'The staging server falcon1 listens on port 6401 since the move to Bergen.';
  const record = recordOf(told, { space: 'default', conversation: 'another' });
  await stage.memory.capture([record], AbortSignal.timeout(30_000));
  await fill(stage, dialect);
  await stage.send(dialect, wholeBody(dialect));
  expect(stage.forwarded()).toContain('since the move to Bergen');
  expect(stage.forwarded()).toContain('falcon4 listens');
  const body = withTools([...old, ...newest(dialect).slice(0, 2)]);
  await stage.send(dialect, body);
  await stage.settled();
  stage.setClockAhead(301_000);
  await stage.send(dialect, body);
  expect(stage.rows.at(-1)?.continuityState).toBe('elided_tool_output');
  expect(stage.forwarded()).toContain('since the move to Bergen');
  expect(stage.forwarded()).toContain('falcon4 listens');
  const stubs = stage.forwarded().match(/\[svc left out this [^\]]+\]/g);
  expect(stubs?.length).toBe(4);
  await stage.send(dialect, body, ['x-claude-code-request-class', 'compaction']);
  expect(stage.forwarded().match(/\[svc left out this [^\]]+\]/g)).toEqual(stubs);
});

test('law 6: what left stays out in a request whose recall misses its deadline, though more could leave', async () => {
  const dialect = 'anthropic_messages';
  let [isLate, late] = [false, 0];
  const stage = await openStage({
    settings: { recallMs: 300, recalledTokensMax: 4_096 },
    wrap: (memory) =>
      wrapped(memory, {
        hold: async (asked, signal) => {
          if (isLate) await sleep(100);
          return memory.hold(asked, signal);
        },
        recall: (...given) => {
          if (!isLate) return memory.recall(...given);
          late += 1;
          return never();
        },
      }),
  });
  await fill(stage, dialect);
  stage.setClockAhead(301_000);
  await stage.send(dialect, wholeBody(dialect));
  expect(stage.rows.at(-1)?.continuityState).toBe('committed');
  const before = stage.forwarded();
  const kept = before.slice(0, before.lastIndexOf(question));
  const more = exchangesOf(dialect, 2 * OLD).slice(2 * OLD);
  const longer = [...exchangesOf(dialect, OLD), ...newest(dialect)];
  longer.push(plainItem(dialect, 'assistant', 'It listens on port 6401.'), ...more);
  const asked = (text: string) => bodyOf(dialect, [...longer, plainItem(dialect, 'user', text)]);
  await stage.send(dialect, asked('Thank you, I wrote these down too.'));
  isLate = true;
  stage.setClockAhead(900_000);
  await stage.send(dialect, asked('And on which port does falcon7 listen?'));
  expect([stage.rows.at(-1)?.continuityState, late]).toEqual(['committed', 1]);
  expect(stage.forwarded().startsWith(kept)).toBe(true);
}, 60_000);
