import { expect, onTestFinished, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { REFERENCES } from '../../src/core/memory/reference.ts';
import type { Memory } from '../../src/ports/memory.ts';
import { openProxyStage, type ProxyStage, type StageOptions } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

async function openStage(options: Partial<StageOptions> = {}): Promise<ProxyStage> {
  const stage = await openProxyStage({ folder: tempFolder(), ...options });
  onTestFinished(() => stage.stop());
  return stage;
}

function roundsOf(count: number, tokens = 900): Round[] {
  return Array.from({ length: count }, (_, at): Round => {
    return {
      id: `call_${at}`,
      tool: 'Bash',
      args: { command: `step ${at}` },
      output: longOutput(`r${at}`, tokens),
    };
  });
}

/** Sends the session as it grows, a request after each round, as a client does. */
async function playRounds(
  stage: ProxyStage,
  { dialect = 'anthropic_messages', from = 0, to, tokens = 900, model }: PlayedRounds,
): Promise<string[]> {
  const rounds = roundsOf(to, tokens);
  const forwarded: string[] = [];
  for (let count = from; count <= to; count += 1) {
    // oxlint-disable no-await-in-loop -- A client waits for each answer.
    const body = sessionBody(dialect, rounds.slice(0, count));
    const named = model === undefined ? body : { ...body, model };
    const answer = await stage.send(dialect, named);
    expect(answer.status).toBe(200);
    forwarded.push(stage.forwarded());
    await stage.settled();
    // oxlint-enable no-await-in-loop
  }
  return forwarded;
}

interface PlayedRounds {
  readonly dialect?: Dialect;
  readonly from?: number;
  readonly to: number;
  readonly tokens?: number;
  readonly model?: string;
}

function stubsIn(body: string): string[] {
  return [...body.matchAll(/\[svc left out this [^\]]+\]/g)].map(([stub]) => stub);
}

function stateOf(stage: ProxyStage): string | undefined {
  return stage.rows.at(-1)?.continuityState;
}

test.each(DIALECTS)(
  '[3.3-elided_tool_output] a 40-round session in %s is shortened in batches, and between them its prefix stays',
  async (dialect) => {
    const stage = await openStage();
    const bodies = await playRounds(stage, { dialect, to: 40 });
    const counts = bodies.map((body) => stubsIn(body).length);
    const batches = counts.filter((count, at) => count > (counts[at - 1] ?? 0));
    expect(batches.length).toBeGreaterThanOrEqual(2);
    expect(batches.length).toBeLessThanOrEqual(5);
    const key = dialect === 'openai_responses' ? 'input' : 'messages';
    const lists = bodies.map((body) => (JSON.parse(body) as Record<string, unknown[]>)[key] ?? []);
    for (const [at, list] of lists.entries()) {
      const before = lists[at - 1] ?? [];
      if (counts[at] !== counts[at - 1]) continue;
      expect(JSON.stringify(list.slice(0, before.length))).toBe(JSON.stringify(before));
    }
    // Every stub can be read again, word for word.
    const rounds = roundsOf(40);
    const last = bodies.at(-1) ?? '';
    const stubs = stubsIn(last);
    expect(stubs.length).toBeGreaterThan(20);
    const texts = await Promise.all(
      stubs.map(async (stub) => {
        const [ref = ''] = stub.match(REFERENCES) ?? [];
        return (await stage.memory.retrieve({ ref }, AbortSignal.timeout(30_000)))?.text;
      }),
    );
    expect(texts).toEqual(rounds.slice(0, stubs.length).map(({ output }) => output));
    expect(stage.rows.at(-1)).toMatchObject({
      continuityState: 'elided_tool_output',
      compressionMode: 'deterministic',
      elidedItems: stubs.length,
    });
  },
  60_000,
);

test('[9-elision-protections] law 6: a restart, a fork under a new name and a step back repeat the very same bytes', async () => {
  const folder = tempFolder();
  const first = await openProxyStage({ folder });
  const bodies = await playRounds(first, { to: 24 });
  await first.stop();
  expect(stubsIn(bodies.at(-1) ?? '').length).toBeGreaterThan(0);
  const second = await openStage({ folder });
  await playRounds(second, { from: 24, to: 24 });
  expect(second.forwarded()).toBe(bodies.at(-1));
  const fork = ['x-claude-code-session-id', 'another-session'];
  await second.send('anthropic_messages', sessionBody('anthropic_messages', roundsOf(24)), fork);
  expect(second.forwarded()).toBe(bodies.at(-1));
  // Before the batch nothing was left out, and so it is when the person goes back there.
  await playRounds(second, { from: 6, to: 6 });
  expect(second.forwarded()).toBe(bodies[6]);
});

test.each(DIALECTS)(
  '%s: a stub replaces what the tool said; what a person typed at its end stays byte for byte',
  async (dialect) => {
    const stage = await openStage();
    const typed =
      '\n\n<system-reminder>\nThe user sent the following message:\n' +
      'never touch the file prod.env\n</system-reminder>';
    const rounds = roundsOf(10).map((round, at) =>
      at === 1 ? { ...round, output: `${round.output}${typed}` } : round,
    );
    for (const ahead of [0, 301_000]) {
      stage.setClockAhead(ahead);
      // oxlint-disable-next-line no-await-in-loop
      await stage.send(dialect, sessionBody(dialect, rounds));
      // oxlint-disable-next-line no-await-in-loop
      await stage.settled();
    }
    const stubs = stubsIn(stage.forwarded());
    expect(stubs).toHaveLength(6);
    const written = `${stubs[1]}${JSON.stringify(typed).slice(1)}`;
    expect(stage.forwarded().includes(written)).toBe(true);
  },
);

test('a cold cache is used to leave out what does not pay on a warm one', async () => {
  const stage = await openStage();
  await playRounds(stage, { to: 10 });
  expect(stateOf(stage)).toMatch(/^bypassed_/);
  stage.setClockAhead(301_000);
  await playRounds(stage, { from: 10, to: 10 });
  expect(stateOf(stage)).toBe('elided_tool_output');
  expect(stubsIn(stage.forwarded())).toHaveLength(6);
});

test.each(DIALECTS)(
  '%s: a client’s first request needs nothing, and a long history that nobody stored is not stored',
  async (dialect) => {
    const stage = await openStage({ settings: { inputBudget: 100 } });
    await stage.send(dialect, sessionBody(dialect, roundsOf(2)));
    expect(stateOf(stage)).toBe('not_needed');
    expect(stage.rows.at(-1)?.compressionMode).toBe('deterministic');
    const other = sessionBody(dialect, roundsOf(20), 'Read all of the twenty files of the parser.');
    await stage.send(dialect, other, ['x-claude-code-session-id', 'another']);
    expect(stateOf(stage)).toBe('bypassed_not_stored');
  },
);

test.each([
  ['anthropic_messages', { cache_control: { type: 'ephemeral', ttl: '1h' } }],
  ['openai_responses', { prompt_cache_retention: '24h' }],
  ['openai_chat_completions', { model: 'gpt-5.6' }],
] as const)('%s: a cache that lives longer by %j is not cold after five minutes', async (...of) => {
  const [dialect, fields] = of;
  const stage = await openStage();
  await playRounds(stage, { dialect, to: 10 });
  stage.setClockAhead(301_000);
  const body = { ...sessionBody(dialect, roundsOf(10)), ...fields };
  await stage.send(dialect, body);
  expect(stage.forwarded() === JSON.stringify(body)).toBe(true);
  expect(stateOf(stage)).toMatch(/^bypassed_/);
});

/** A memory whose answers about possession are changed on their way. */
function lying(change: (hold: Memory['hold']) => Memory['hold']): (memory: Memory) => Memory {
  return (memory) => ({
    supports: memory.supports,
    recall: (question, signal) => memory.recall(question, signal),
    capture: (records, signal) => memory.capture(records, signal),
    retrieve: (key, signal) => memory.retrieve(key, signal),
    list: (filter, signal) => memory.list(filter, signal),
    references: (start, signal) => memory.references(start, signal),
    forget: (filter, signal) => memory.forget(filter, signal),
    hold: change((question, signal) => memory.hold(question, signal)),
    close: () => memory.close(),
  });
}

const LIES: readonly (readonly [
  name: string,
  state: string,
  change: (hold: Memory['hold']) => Memory['hold'],
])[] = [
  [
    'proves other bytes',
    'bypassed_unproven_recall',
    (hold) => async (question, signal) =>
      (await hold(question, signal)).map((one) => ({ ...one, proof: 'A'.repeat(43) })),
  ],
  [
    'lies about one output alone',
    'bypassed_unproven_recall',
    (hold) => async (question, signal) =>
      (await hold(question, signal)).map((one, at) => (at === 1 ? { ...one, proof: '' } : one)),
  ],
  [
    'repeats a proof for another question',
    'bypassed_unproven_recall',
    (hold) => (question, signal) => hold({ ...question, nonce: new Uint8Array(32) }, signal),
  ],
  [
    'answers twice',
    'bypassed_unproven_recall',
    (hold) => async (question, signal) => {
      const held = await hold(question, signal);
      return [...held, ...held];
    },
  ],
  ['holds nothing any more', 'bypassed_not_stored', () => async () => []],
  ['never answers', 'bypassed_recall_degraded', () => () => new Promise(() => {})],
  ['fails', 'bypassed_recall_degraded', () => () => Promise.reject(new Error('down'))],
];

test.each(LIES)(
  '[1.3-safe-to-drop] law 2: a memory that %s has nothing left out (%s)',
  async (name, state, change) => {
    // Only the one that never answers may reach its deadline.
    const settings = name === 'never answers' ? { recallMs: 300 } : {};
    const stage = await openStage({ wrap: lying(change), settings });
    await playRounds(stage, { to: 10 });
    stage.setClockAhead(301_000);
    const body = sessionBody('anthropic_messages', roundsOf(10));
    await stage.send('anthropic_messages', body);
    expect(stage.forwarded()).toBe(JSON.stringify(body));
    expect(stage.rows.at(-1)).toMatchObject({
      continuityState: state,
      compressionMode: 'passthrough',
    });
  },
);

test('an output that the memory has lost is sent whole again, the others stay out', async () => {
  const stage = await openStage();
  await playRounds(stage, { to: 10 });
  stage.setClockAhead(301_000);
  await playRounds(stage, { from: 10, to: 10 });
  const [ref = ''] = stubsIn(stage.forwarded())[2]?.match(REFERENCES) ?? [];
  expect(await stage.memory.forget({ refs: [ref] }, AbortSignal.timeout(30_000))).toBe(1);
  await playRounds(stage, { from: 10, to: 10 });
  expect(stage.forwarded()).not.toContain(ref);
  expect(stubsIn(stage.forwarded())).toHaveLength(5);
});

test('R26: an output with a secret is neither kept nor left out', async () => {
  const stage = await openStage();
  const rounds = roundsOf(10).map((round, at) =>
    at === 2
      ? {
          ...round,
          output: `${round.output}\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzz12345678AB`,
        }
      : round,
  );
  const body = sessionBody('anthropic_messages', rounds);
  for (const ahead of [0, 301_000, 602_000]) {
    stage.setClockAhead(ahead);
    // oxlint-disable-next-line no-await-in-loop
    await stage.send('anthropic_messages', body);
    // oxlint-disable-next-line no-await-in-loop
    await stage.settled();
  }
  expect(stateOf(stage)).toBe('elided_tool_output');
  expect(stubsIn(stage.forwarded())).toHaveLength(5);
  expect(stage.forwarded()).toContain('wJalrXUtnFEMI');
});

test('a refused shortened request leaves again as the client’s own, and the conversation stays so', async () => {
  const stage = await openStage();
  await playRounds(stage, { to: 10 });
  stage.setClockAhead(301_000);
  stage.provider.failWith({ kind: 'status', status: 400, path: /messages/, nth: [1] });
  const body = sessionBody('anthropic_messages', roundsOf(10));
  const answer = await stage.send('anthropic_messages', body);
  expect(answer.status).toBe(200);
  expect(stubsIn(stage.provider.records.at(-2)?.body.toString() ?? '')).toHaveLength(6);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(stateOf(stage)).toBe('bypassed_provider_refused');
  await stage.send('anthropic_messages', body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  // Also where the cache is cold again.
  stage.setClockAhead(650_000);
  await stage.send('anthropic_messages', body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(stateOf(stage)).toBe('bypassed_provider_refused');
});

test('[3.2-shadow] [3.3-shadow_only] [1.8-measured-without-saving] shadow measures and forwards the original', async () => {
  const stage = await openStage({ settings: { compressionMode: 'shadow', memoryMode: 'off' } });
  await playRounds(stage, { to: 10 });
  stage.setClockAhead(301_000);
  const body = sessionBody('anthropic_messages', roundsOf(10));
  const answer = await stage.send('anthropic_messages', body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(answer.headers).toMatchObject({
    'x-svc-compression-mode': 'shadow',
    'x-svc-continuity-state': 'shadow_only',
    'x-svc-elided-items': '6',
    'x-svc-forwarded-input-tokens': answer.headers['x-svc-original-input-tokens'],
  });
});

test.each([
  ['bypassed_memory_mode', {}, ['x-svc-memory-mode', 'write']],
  ['not_applicable', {}, ['x-svc-compression-mode', 'passthrough']],
  ['bypassed_provider_state', { previous_response_id: 'resp_1' }, []],
  ['not_needed', { tools: [], max_output_tokens: 1 }, []],
] as const)('%s: everything is forwarded', async (state, fields, headers) => {
  const stage = await openStage();
  await playRounds(stage, { dialect: 'openai_responses', to: 10 });
  stage.setClockAhead(301_000);
  const body = { ...sessionBody('openai_responses', roundsOf(10)), ...fields };
  await stage.send('openai_responses', body, [...headers]);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
  expect(stateOf(stage)).toBe(state);
});

test('near the model’s window nothing is left out that was not left out before', async () => {
  const stage = await openStage();
  const session = sessionBody('anthropic_messages', roundsOf(20, 11_000));
  const body = { ...session, model: 'claude-sonnet-4-5' };
  for (const ahead of [0, 301_000, 602_000]) {
    stage.setClockAhead(ahead);
    // oxlint-disable-next-line no-await-in-loop
    await stage.send('anthropic_messages', body);
    // oxlint-disable-next-line no-await-in-loop
    await stage.settled();
  }
  expect(stage.forwarded() === JSON.stringify(body)).toBe(true);
  expect(stateOf(stage)).toBe('bypassed_protected_context');
});

test('an unknown window is never near, and one that the provider has exceeded is none', async () => {
  const session = sessionBody('anthropic_messages', roundsOf(20, 11_000));
  for (const model of ['gpt-oss-of-the-house', 'claude-sonnet-4-5']) {
    // oxlint-disable no-await-in-loop -- One conversation after the other.
    const accepted = { input: 230_000, cacheRead: 0, cacheWrite: 0 };
    const stage = await openStage({ provider: { usageOf: () => accepted } });
    await playRounds(stage, { to: 20, tokens: 11_000, model });
    stage.setClockAhead(301_000);
    await stage.send('anthropic_messages', { ...session, model });
    // oxlint-enable no-await-in-loop
    expect(stateOf(stage)).toBe('elided_tool_output');
  }
}, 60_000);

test('what left stays out of every kind of request, and only the conversation itself leaves out more', async () => {
  const stage = await openStage();
  const bodyOf = (count: number) => sessionBody('anthropic_messages', roundsOf(count));
  await playRounds(stage, { to: 12 });
  stage.setClockAhead(301_000);
  await stage.send('anthropic_messages', bodyOf(12));
  const stubs = stubsIn(stage.forwarded());
  expect(stubs.length).toBeGreaterThan(0);
  for (const kind of ['compaction', 'auxiliary', 'subagent']) {
    stage.setClockAhead(2 * 301_000);
    // oxlint-disable-next-line no-await-in-loop
    await stage.send('anthropic_messages', bodyOf(24), ['x-claude-code-request-class', kind]);
    expect(stubsIn(stage.forwarded())).toEqual(stubs);
  }
});

test('with elision off nothing is kept and nothing left out', async () => {
  const stage = await openStage({ settings: { elisionEnabled: false } });
  await playRounds(stage, { to: 10 });
  stage.setClockAhead(301_000);
  const body = sessionBody('anthropic_messages', roundsOf(10));
  await stage.send('anthropic_messages', body);
  expect(stage.forwarded()).toBe(JSON.stringify(body));
});
