import { expect, test } from 'vitest';
import { JournalLedger } from '../../service/src/adapters/journals/ledger.ts';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import type { RecallAnswer } from '../../src/ports/memory.ts';
import { trialOf } from '../../src/core/meter/hold-out.ts';
import { PROXY_SETTINGS, TOKEN } from '../support/local-server.ts';
import { DIALECTS, promptOf, requestWith, said } from '../support/dialect-wire.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordOf } from '../support/records.ts';
import { ask as askSocket } from '../support/sockets.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  startRecordingProvider,
  startStory,
  type Story,
  type StoryOptions,
} from '../support/story.ts';
import { MemoryError, type MemoryFailure, ProxyError } from '../../src/core/errors.ts';

const FACT = 'The staging database of the walrus shop listens on port 6431.';
const QUESTION = 'On which port does the staging database of the walrus shop listen?';

/** A proxy whose memory knows the fact. */
async function startKnowing(options: Omit<StoryOptions, 'provider'> = {}) {
  const provider = await startRecordingProvider();
  const memory = options.memory ?? new FakeMemory();
  await memory.capture([recordOf(FACT, { space: 'default' })], AbortSignal.timeout(30_000));
  const story = await startStory({ provider, ...options, memory });
  return { provider, memory, story };
}

function stateOf(answer: Awaited<ReturnType<Story['send']>>): unknown {
  return answer.headers['x-svc-memory-state'];
}

/** A memory that never answers and does not listen to its signal. */
class HangingMemory extends FakeMemory {
  recalls = 0;

  override recall(): Promise<RecallAnswer> {
    this.recalls += 1;
    return new Promise(() => {});
  }
}

class BrokenMemory extends FakeMemory {
  recalls = 0;
  reason: MemoryFailure | undefined;

  override async recall(): Promise<RecallAnswer> {
    this.recalls += 1;
    throw this.reason === undefined
      ? new TypeError('not what the port promises')
      : new MemoryError(this.reason, 'made to fail');
  }
}

// spec: 1.2-recall-added, 3.3-header, 4.4-local-proxy-header, 4.4-states, 4.4-token-estimates, 4.4-continuity-header
test.each(DIALECTS)('%s: a recall is told in every evidence header', async (dialect) => {
  const { provider, story } = await startKnowing();
  const { status, headers } = await story.send(dialect, promptOf(dialect, QUESTION));
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'x-svc-local-proxy': '0.1.2',
    'x-svc-request-id': expect.stringMatching(/^req_/),
    'x-svc-memory-mode': 'read-write',
    'x-svc-memory-state': 'recalled',
    'x-svc-compression-mode': 'deterministic',
    'x-svc-continuity-state': 'not_needed',
    'x-svc-elided-items': '0',
    'x-svc-elided-tokens': '0',
  });
  const [original, forwarded, recalled] = ['original-input', 'forwarded-input', 'recalled'].map(
    (name) => Number(headers[`x-svc-${name}-tokens`]),
  );
  expect(recalled).toBeGreaterThan(0);
  expect(forwarded).toBe((original ?? 0) + (recalled ?? 0));
  expect(provider.seen[0]?.body.toString()).toContain(FACT);
});

// spec: 2.2-equal-when-nothing-to-drop, 3.3-not_needed
test('empty: nothing relevant is known, nothing is added, and the estimates are equal', async () => {
  const { provider, story } = await startKnowing();
  const body = promptOf(
    'anthropic_messages',
    'Paint a picture of the mountains in winter, please.',
  );
  const { headers } = await story.send('anthropic_messages', body);
  expect(headers).toMatchObject({
    'x-svc-memory-state': 'empty',
    'x-svc-continuity-state': 'not_needed',
    'x-svc-recalled-tokens': '0',
  });
  expect(headers['x-svc-forwarded-input-tokens']).toBe(headers['x-svc-original-input-tokens']);
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
});

// spec: 3.1-values, 3.1-lower-only
test.each([
  { mode: 'off', state: 'off', recalls: 0, captures: 0 },
  { mode: 'read', state: 'recalled', recalls: 1, captures: 0 },
  { mode: 'write', state: 'write_only', recalls: 0, captures: 1 },
  { mode: 'read-write', state: 'recalled', recalls: 1, captures: 1 },
])('R8: x-svc-memory-mode $mode gives $state', async ({ mode, state, recalls, captures }) => {
  const memory = new FakeMemory();
  const { provider, story } = await startKnowing({ memory });
  const known = memory.captured.length;
  const body = promptOf('openai_responses', QUESTION);
  const answer = await story.send('openai_responses', body, { 'x-svc-memory-mode': mode });
  await story.settled();
  expect(answer.headers).toMatchObject({
    'x-svc-memory-mode': mode,
    'x-svc-memory-state': state,
  });
  expect(memory.questions).toHaveLength(recalls);
  expect(memory.captured.length - known).toBe(captures);
  const isForwardedAsItIs = provider.seen[0]?.body.equals(Buffer.from(JSON.stringify(body)));
  expect(isForwardedAsItIs).toBe(recalls === 0);
});

test.each([
  { configured: 'read', asked: 'read-write', effective: 'read' },
  { configured: 'write', asked: 'read', effective: 'off' },
  { configured: 'off', asked: 'read-write', effective: 'off' },
] as const)(
  'a configuration of $configured is not raised to $asked by a header',
  async ({ configured, asked, effective }) => {
    const { story } = await startKnowing({ settings: { memoryMode: configured } });
    const answer = await story.send(
      'anthropic_messages',
      promptOf('anthropic_messages', QUESTION),
      { 'x-svc-memory-mode': asked },
    );
    expect(answer.headers['x-svc-memory-mode']).toBe(effective);
  },
);

// spec: 7-422-invalid-mode
test.each([
  ['x-svc-memory-mode', 'sometimes'],
  ['x-svc-memory-mode', ''],
  ['x-svc-memory-mode', 'READ'],
  ['x-svc-compression-mode', 'zip'],
  ['x-svc-memory-space', 'No Space'],
])('R8: %s: "%s" is 422, and nothing is sent anywhere', async (name, value) => {
  const memory = new FakeMemory();
  const { provider, story } = await startKnowing({ memory });
  const body = promptOf('openai_chat_completions', QUESTION);
  const answer = await story.send('openai_chat_completions', body, { [name]: value });
  expect(answer.status).toBe(422);
  expect(answer.headers['x-should-retry']).toBe('false');
  expect(answer.body.toString()).toContain('MODE_INVALID');
  expect(provider.seen).toEqual([]);
  expect(memory.questions).toEqual([]);
});

test('skipped_side_call: a title call of Claude Code gets no recall and is not kept', async () => {
  const memory = new FakeMemory();
  const { provider, story } = await startKnowing({ memory });
  const known = memory.captured.length;
  const body = promptOf('anthropic_messages', QUESTION);
  const answer = await story.send('anthropic_messages', body, {
    'User-Agent': 'claude-cli/2.1.329 (external, cli)',
  });
  await story.settled();
  expect(stateOf(answer)).toBe('skipped_side_call');
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
  expect(memory.captured.length).toBe(known);
});

test('skipped_unsupported: a client that always states its folder, and states none that svc understands', async () => {
  const memory = new FakeMemory();
  const { provider, story } = await startKnowing({ memory });
  const body = promptOf('anthropic_messages', QUESTION, { tools: [{ name: 'Bash' }] });
  const agent = { 'User-Agent': 'claude-cli/2.1.329 (external, cli)' };
  const answer = await story.send('anthropic_messages', body, agent);
  await story.settled();
  expect(stateOf(answer)).toBe('skipped_unsupported');
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
  expect(memory.questions).toEqual([]);
  const spaces = new Set(memory.captured.map(({ client, space }) => `${client} ${space}`));
  expect(spaces).toContain('claude-code unplaced/claude-code');
});

test.each([
  { previous_response_id: 'resp_0' },
  { conversation: 'conv_0' },
  { conversation: { id: 'conv_0' } },
])('skipped_unsupported: history kept at the provider (%j) is not touched', async (extra) => {
  const { provider, story } = await startKnowing();
  const body = promptOf('openai_responses', QUESTION, extra);
  const answer = await story.send('openai_responses', body);
  expect(stateOf(answer)).toBe('skipped_unsupported');
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
});

// spec: 2.2-degraded-goes-on, 7-memory-away-no-error, 8-recall-fast
test('R23: degraded_timeout: a memory that hangs holds a request up for the deadline only', async () => {
  const memory = new HangingMemory();
  const { provider, story } = await startKnowing({ memory, settings: { recallMs: 50 } });
  const body = promptOf('anthropic_messages', QUESTION);
  // The test's own limit of time is the proof: this memory would hang for ever.
  const answer = await story.send('anthropic_messages', body);
  expect(answer.status).toBe(200);
  expect(stateOf(answer)).toBe('degraded_timeout');
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
});

test('R23: a ledger that hangs holds a request up for the deadline only, too', async () => {
  const ledger = new JournalLedger({
    folder: tempFolder(),
    store: { findEntries: () => new Promise(() => {}), recordEntries: async () => {} },
    report: () => {},
  });
  const { provider, story } = await startKnowing({ ledger, settings: { recallMs: 50 } });
  const body = promptOf('anthropic_messages', QUESTION);
  const answer = await story.send('anthropic_messages', body);
  expect(stateOf(answer)).toBe('degraded_timeout');
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
});

test('R23: whoever asks the ledger after others gets what they left of the deadline', async () => {
  const recallMs = 100;
  const given: number[] = [];
  const clock = manualClock();
  // Nobody waits for what is asked once the request is on its way.
  let isSent = (): boolean => false;
  const ledger: Ledger = {
    find: async (_, withinMs) => {
      if (!isSent()) given.push(withinMs);
      clock.goOn(withinMs);
      return new FoundEntries([], 'late');
    },
    generation: () => 0,
    record: async () => {},
    commit: async () => true,
    isShared: false,
  };
  const { provider, story } = await startKnowing({
    ledger,
    clock,
    settings: { recallMs, inputBudget: 1, compressionMode: 'deterministic' },
  });
  isSent = () => provider.seen.length > 0;
  // A conversation that this process has not seen: the meter asks too.
  const body = requestWith('anthropic_messages', [
    said('user', 'Hello.'),
    said('assistant', 'Hello.'),
    said('user', QUESTION),
  ]);
  const answer = await story.send('anthropic_messages', body);
  expect(answer.status).toBe(200);
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
  const [first = 0, ...later] = given;
  expect(first).toBe(recallMs / 2);
  expect(later.length).toBeGreaterThan(0);
  for (const ms of later) expect(ms).toBeLessThanOrEqual(recallMs - first);
});

test.each([
  { reason: undefined, state: 'degraded_unavailable' },
  { reason: 'unavailable', state: 'degraded_unavailable' },
  { reason: 'timeout', state: 'degraded_timeout' },
  { reason: 'denied', state: 'degraded_denied' },
  { reason: 'rate_limited', state: 'degraded_rate_limited' },
  { reason: 'invalid', state: 'degraded_invalid' },
] as const)(
  'R23: a memory that fails ($reason) is $state, and no error',
  async ({ reason, state }) => {
    const memory = new BrokenMemory();
    memory.reason = reason;
    const { provider, story } = await startKnowing({ memory });
    const body = promptOf('openai_responses', QUESTION);
    const answer = await story.send('openai_responses', body);
    expect([answer.status, stateOf(answer)]).toEqual([200, state]);
    expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
  },
);

test('R23: after three failures the memory is left alone, and asked again later', async () => {
  const memory = new BrokenMemory();
  const clock = manualClock();
  const { story } = await startKnowing({ memory, clock });
  const ask = async (place: string): Promise<unknown> => {
    const body = promptOf('anthropic_messages', `${QUESTION} The ${place} time.`);
    return stateOf(await story.send('anthropic_messages', body));
  };
  for (const place of ['first', 'second', 'third', 'fourth', 'fifth']) {
    expect(await ask(place)).toBe('degraded_unavailable');
  }
  expect(memory.recalls).toBe(3);
  clock.goOn(2_000);
  expect(await ask('sixth')).toBe('degraded_unavailable');
  expect(memory.recalls).toBe(4);
});

test('R23: a service that limits its calls keeps its state for as long as it is left alone', async () => {
  const memory = new BrokenMemory();
  memory.reason = 'rate_limited';
  const clock = manualClock();
  const { story } = await startKnowing({ memory, clock });
  for (const place of ['first', 'second', 'third', 'fourth', 'fifth']) {
    const body = promptOf('anthropic_messages', `${QUESTION} The ${place} time.`);
    expect(stateOf(await story.send('anthropic_messages', body))).toBe('degraded_rate_limited');
  }
  expect(memory.recalls).toBe(3);
});

test('a degraded recall is not final: the same prompt asks again', async () => {
  const memory = new FakeMemory();
  const { story } = await startKnowing({ memory });
  memory.failure = 'unavailable';
  const body = promptOf('anthropic_messages', QUESTION);
  expect(stateOf(await story.send('anthropic_messages', body))).toBe('degraded_unavailable');
  memory.failure = undefined;
  expect(stateOf(await story.send('anthropic_messages', body))).toBe('recalled');
});

// spec: 1.8-memory-without-shortening, 3.2-values, 3.2-header-overrides, 3.2-passthrough, 3.3-not_applicable
test('passthrough, shadow and deterministic each say so, for that request only', async () => {
  const { story } = await startKnowing();
  const told: unknown[] = [];
  for (const mode of ['passthrough', 'shadow', 'deterministic', undefined]) {
    const header = mode === undefined ? {} : { 'x-svc-compression-mode': mode };
    const body = promptOf('anthropic_messages', QUESTION);
    const { headers } = await story.send('anthropic_messages', body, header);
    told.push([
      headers['x-svc-compression-mode'],
      headers['x-svc-continuity-state'],
      headers['x-svc-memory-state'],
    ]);
  }
  expect(told).toEqual([
    ['passthrough', 'not_applicable', 'recalled'],
    // The original request is forwarded: nothing is recalled for it.
    ['shadow', 'shadow_only', 'skipped_unsupported'],
    ['deterministic', 'not_needed', 'recalled'],
    ['deterministic', 'not_needed', 'recalled'],
  ]);
});

// spec: 3.2-effective, 3.3-bypassed, 7-bypass-no-error
test('over the budget a bypass is told, and the whole request goes on', async () => {
  const { provider, story } = await startKnowing({ settings: { inputBudget: 10 } });
  // Two exchanges are always kept: the two before them could go, and nobody has stored them yet.
  const items = ['walrus', 'heron', 'otter'].flatMap((animal) => [
    said('user', `Tell me how the ${animal} shop keeps its stock, and why it does so.`),
    said(
      'assistant',
      `The ${animal} shop counts its stock every Friday, because Marta asked for it.`,
    ),
  ]);
  items.push(said('user', 'And now?'));
  const body = requestWith('openai_responses', items);
  const whole = await story.send('openai_responses', body);
  expect(whole.status).toBe(200);
  expect(whole.headers).toMatchObject({
    'x-svc-compression-mode': 'passthrough',
    'x-svc-continuity-state': expect.stringMatching(/^bypassed_/),
  });
  expect(provider.seen[0]?.body).toEqual(Buffer.from(JSON.stringify(body)));
  const off = await story.send('openai_responses', body, { 'x-svc-memory-mode': 'off' });
  expect(off.headers['x-svc-continuity-state']).toBe('bypassed_memory_mode');
  const stateful = { ...body, previous_response_id: 'resp_0' };
  const bypassed = await story.send('openai_responses', stateful);
  expect(bypassed.headers['x-svc-continuity-state']).toBe('bypassed_provider_state');
});

test('the hold-out gives its conversations no memory and no shortening, and notes both groups', async () => {
  const settings = { ...PROXY_SETTINGS, holdOut: true };
  const { memory, story } = await startKnowing({ settings });
  const sessions = Array.from({ length: 30 }, (_, at) => `session-${at}`);
  const out = sessions.find((session) => trialOf(session) === 'without') ?? '';
  const kept = sessions.find((session) => trialOf(session) === 'with') ?? '';
  const ask = async (session: string) =>
    story.send('anthropic_messages', promptOf('anthropic_messages', `No, ${QUESTION}`), {
      'x-claude-code-session-id': session,
    });
  const { headers } = await ask(out);
  expect(headers).toMatchObject({
    'x-svc-memory-state': 'write_only',
    'x-svc-compression-mode': 'passthrough',
    'x-svc-recalled-tokens': '0',
  });
  expect(stateOf(await ask(kept))).toBe('recalled');
  expect(story.rows).toMatchObject([
    { trial: 'without', isCorrection: true },
    { trial: 'with', isCorrection: true },
  ]);
  await memory.close();
});

test.each(['/v1/messages', '/v1/messages/count_tokens'])(
  'a request to %s that the limits of a service refuse asks neither ledger nor memory',
  async (path) => {
    let asked = 0;
    let refuses = false;
    const { story, provider } = await startKnowing({
      wrapLedger: (ledger) => ({
        generation: () => ledger.generation(),
        record: (entries) => ledger.record(entries),
        commit: (entries) => ledger.commit(entries),
        isShared: false,
        find: (addresses, withinMs) => {
          asked += 1;
          return ledger.find(addresses, withinMs);
        },
      }),
      admit: async () => {
        if (refuses) throw new ProxyError('LOGIN_CLIENT_REFUSED', 'made to refuse');
      },
    });
    const body = requestWith('anthropic_messages', [said('user', QUESTION)]);
    const send = () =>
      askSocket(story.port, {
        path,
        headers: ['Authorization', `Bearer ${TOKEN}`, 'Content-Type', 'application/json'],
        body: Buffer.from(JSON.stringify(body)),
      });
    expect((await send()).status).toBe(200);
    expect(asked).toBeGreaterThan(0);
    refuses = true;
    asked = 0;
    const seen = provider.seen.length;
    expect((await send()).status).toBe(403);
    expect([asked, provider.seen.length]).toEqual([0, seen]);
  },
);
