import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { listRunFiles } from '../../src/adapters/processes/run-files.ts';
import { type Loss, lossAlone } from './support/alone.ts';
import {
  type Asked,
  ask,
  CLIENT_KEY,
  type Clients,
  conversationCalls,
  HOOKED,
  type HookedName,
  type HookedStage,
  newestSession,
  openHookedStage,
} from './support/hooked-client.ts';
import { installedClient } from './support/installed-client.ts';
import type { ProgramEnd } from './support/program.ts';
import { FACT, QUESTION, ROUNDS, SECRET_OF_FACT } from './support/story.ts';
import { headerIn } from './support/wire-message.ts';

/**
 * Real clients with the hooks of `svc connect NAME --hooks` and no proxy: the client asks a provider that checks every
 * prefix (test/support/strict-provider), and svc stands nowhere between them. SVC_TEST_HOOK_REQUESTS=2000 makes the
 * last test as long, and the loops of the first ones too, from 60 on.
 */

const isAsked = process.env['SVC_TEST_ALL_CLIENTS'] === '1';
const LARGE: readonly string[] = ['opencode', 'copilot'];
const node24 = await installedClient('node24');
const installed = new Map(
  await Promise.all(
    HOOKED.map(async (name) => {
      const isOptional = LARGE.includes(name) && !isAsked;
      return [name, await installedClient(name, { isOptional })] as const;
    }),
  ),
);
const clients: Clients = { node24, of: (name) => installed.get(name) ?? node24 };

function missingOf(name: HookedName): string | undefined {
  return clients.of(name).missing ?? node24.missing;
}

/** 27 hold a fork and resumed sessions; SVC_TEST_HOOK_REQUESTS=60 has long loops and five facts. */
const LONG_REQUESTS = Number(process.env['SVC_TEST_HOOK_REQUESTS'] ?? 27);
const IS_LONG = LONG_REQUESTS >= 60;
/** Each round starts svc, so few of them show what all show. */
const LOOP_ROUNDS = IS_LONG ? ROUNDS : 8;
const LOOP = `[[plan=bash:echo step {i} of the loop*${LOOP_ROUNDS}]]`;

const here = HOOKED.filter((name) => missingOf(name) === undefined);

describe.each(HOOKED)('hooks of %s', (name) => {
  beforeEach((context: TestContext) => {
    const missing = missingOf(name);
    if (missing !== undefined) context.skip(missing);
  });

  test('a told fact is in the next session, in its loop of tools and where it is resumed', async () => {
    const stage = await openHookedStage();
    const say = await connected(name, stage);
    await say({ prompt: `${FACT} [[final=Noted.]]` });
    await expectKept(stage, [SECRET_OF_FACT]);
    const { from, end } = await sayUntilTold(say, stage, { prompt: `${QUESTION} ${LOOP}` });
    expect(end.stdout, end.stderr).toContain(`step ${LOOP_ROUNDS} of the loop`);
    const session = newestSession(name, stage);
    await say({ session, prompt: `Go on. ${STEPS}` });
    await say({ session, prompt: 'Thanks. [[final=All is said.]]' });
    const bodies = conversationCalls(stage, from).map(({ body }) => body.toString());
    // svc said it once: later requests repeat the client's own transcript.
    const [first = ''] = bodies.map(blocksIn);
    expect(first).toContain(SECRET_OF_FACT);
    expect(bodies.filter((body) => !blocksIn(body).startsWith(first))).toEqual([]);
    expect(bodies.at(-1)?.split(/"signature":|"encrypted_content":/).length).toBeGreaterThan(
      LOOP_ROUNDS,
    );
    await expectDirect(name, stage);
  });
});

describe.each(['claude', 'opencode', 'pi', 'copilot'] as const)('hookCut under %s', (name) => {
  test('a long output of the shell is sent without its middle, and stays so', async (context) => {
    const missing = missingOf(name);
    if (missing !== undefined) return context.skip(missing);
    const stage = await openHookedStage();
    stage.configure({ proxy: { hookCut: true }, memory: { kind: 'embedded' } });
    const say = await connected(name, stage);
    await say({
      prompt: 'Count. [[plan=bash:seq -f row-%.0f-of-the-walrus 100000 100700|bash:echo counted]]',
    });
    await say({ prompt: ENDED, session: newestSession(name, stage) });
    const results = conversationCalls(stage)
      .map(({ body }) => body.toString())
      .filter((body) => body.includes('row-100001'));
    expect(results.length).toBeGreaterThan(2);
    for (const body of results) {
      expect(body).toMatch(
        /row-100001.*svc left out lines \d+ to \d+ of.*memory get m_\w+.*row-100700/s,
      );
      expect(body).not.toContain('row-100350');
    }
    await expectDirect(name, stage);
  });
});

const STEPS = '[[plan=bash:echo one-{i}*3]]';

test('a fact told in one client is known in every other one', async (context) => {
  if (here.length < 2) return context.skip('fewer than two clients are installed');
  const stage = await openHookedStage();
  const told = here.map((name, at) => ({ name, ...factAt(at) }));
  for (const { name, fact } of told) {
    // oxlint-disable-next-line no-await-in-loop -- A person tells one thing after the other.
    await (
      await connected(name, stage)
    )({ prompt: `${fact} [[final=Noted.]]` });
  }
  // What is asked must not be kept, and svc must not fall silent where each prompt is a question about the past.
  stage.configure({
    proxy: { memoryMode: 'read', recallQuietPercent: 0 },
    memory: { kind: 'embedded' },
  });
  await expectKept(
    stage,
    told.map(({ secret }) => secret),
  );
  const unknown: string[] = [];
  for (const asked of here) {
    const others = told.filter((one) => one.name !== asked);
    for (let at = 0; at < others.length; at += QUESTIONS_MAX) {
      const some = others.slice(at, at + QUESTIONS_MAX);
      const prompt = `${some.map(({ question }) => question).join(' ')} [[final=Asked.]]`;
      // oxlint-disable-next-line no-await-in-loop -- The same.
      const { from } = await sayUntilTold(plain(asked, stage), stage, { prompt });
      const bodies = conversationCalls(stage, from).map(({ body }) => body.toString());
      const missed = some.filter(({ secret }) => !bodies.some((body) => body.includes(secret)));
      unknown.push(...missed.map(({ name }) => `${name} in ${asked}`));
    }
  }
  const pairs = here.length * (here.length - 1);
  process.stderr.write(
    `MEASURED told in one client, known in another: ${pairs - unknown.length} of ${pairs}\n`,
  );
  expect(unknown).toEqual([]);
  await expectDirect('all', stage);
});

/** A prompt recalls few facts, and asks for no more of them. */
const QUESTIONS_MAX = 2;

/** What is said at the end of an answer may be stored by a process that outlives the client. */
async function expectKept(stage: HookedStage, secrets: readonly string[]): Promise<void> {
  await expect
    .poll(async () => {
      const { stdout } = await stage.type('memory', 'list', '--json', '--limit', '1000');
      return secrets.filter((secret) => !stdout.includes(secret));
    })
    .toEqual([]);
}

/** A hook that is late on a busy machine says nothing, and the client goes on: so often a new session asks again. */
const TELLS_MAX = 8;

/** Asks in a new session, again only where no hook has said anything. The last one's first request, and its end. */
async function sayUntilTold(
  say: Say,
  stage: HookedStage,
  asked: Asked,
): Promise<{ readonly from: number; readonly end: ProgramEnd }> {
  for (let tell = 1; ; tell += 1) {
    const from = stage.provider.records.length;
    // oxlint-disable-next-line no-await-in-loop -- A person asks again once there is an answer.
    const end = await say(asked);
    const [first] = conversationCalls(stage, from).map(({ body }) => blocksIn(body.toString()));
    if (first !== '' || tell === TELLS_MAX) return { from, end };
  }
}

function factAt(at: number): Fact {
  const fact = FACTS[at % FACTS.length];
  if (fact === undefined) throw new Error('there is no fact');
  return fact;
}

interface Fact {
  readonly fact: string;
  readonly secret: string;
  readonly question: string;
}

/** One for each client: the part that nobody could guess, in words that the others do not have. */
const FACTS: readonly Fact[] = [
  [
    'the staging database listens on port 6431 of the host',
    'walrus-seven',
    'On which host does the staging database listen?',
  ],
  [
    'invoices of the bakery are printed by the plotter',
    'heron-eleven',
    'Which plotter prints the invoices of the bakery?',
  ],
  [
    'the nightly backup of the library is written to the bucket',
    'otter-nine',
    'Which bucket gets the nightly backup of the library?',
  ],
  [
    'tickets of the museum are sold by the kiosk',
    'lynx-four',
    'Which kiosk sells the tickets of the museum?',
  ],
  [
    'the greenhouse thermometer reports to the topic',
    'moth-two',
    'Which topic does the greenhouse thermometer report to?',
  ],
].map(([what = '', secret = '', question = '']) => ({
  fact: `Please note: ${what} ${secret}, and that is final.`,
  secret,
  question,
}));

type Play = (session: {
  readonly say: Say;
  readonly newest: () => string;
  readonly stage: HookedStage;
}) => Promise<void>;

const ENDED = 'Thanks. [[final=All is said.]]';

const COMPACTED =
  /This session is being continued from a previous conversation|Another language model started to solve/;

async function compact(
  name: HookedName,
  { say, newest, stage }: Parameters<Play>[0],
): Promise<void> {
  await stage.type('memory', 'add', FACT);
  // Codex compacts by itself once the provider counts so many tokens.
  const args = name === 'codex' ? ['-c', 'model_auto_compact_token_limit=15000'] : [];
  const long = '[[plan=bash:seq 100000 104000 && echo <<final=Counted.>>*3]]';
  await say({ prompt: `${QUESTION} ${name === 'codex' ? long : STEPS}`, args });
  const session = newest();
  if (name === 'claude') await say({ prompt: '/compact', session });
  else await say({ prompt: 'Go on. [[final=I go on.]]', session, args });
  await say({ prompt: `${QUESTION} ${STEPS}`, session });
  await say({ prompt: ENDED, session });
}

function blocksAfterCompaction(stage: HookedStage): string {
  const bodies = conversationCalls(stage).map(({ body }) => body.toString());
  const at = bodies.findIndex((body) => COMPACTED.test(body));
  expect(at).toBeGreaterThan(0);
  return bodies.slice(at).map(blocksIn).join('');
}

/** What was placed is gone with the compaction, and is said again beside a prompt behind it. */
async function expectToldAgain({ say, newest, stage }: Parameters<Play>[0]): Promise<void> {
  const session = newest();
  // A late hook says nothing.
  for (let tell = 1; blocksAfterCompaction(stage) === '' && tell < TELLS_MAX; tell += 1) {
    // oxlint-disable-next-line no-await-in-loop -- A person asks again once there is an answer.
    await say({ prompt: `${QUESTION} ${ENDED}`, session });
  }
  expect(blocksAfterCompaction(stage)).toContain(SECRET_OF_FACT);
}

describe.each([
  ['claude', 'compaction'],
  ['codex', 'compaction'],
  ['claude', 'fork'],
  ['codex', 'fork'],
  ['opencode', 'fork'],
  ['pi', 'fork'],
] as const)('under %s a %s', (name, kind) => {
  test('loses no more thinking with hooks than without', async (context) => {
    const missing = missingOf(name);
    if (missing !== undefined) return context.skip(missing);
    const play: Play = async (session) => {
      const { say, newest, stage } = session;
      if (kind === 'compaction') return compact(name, session);
      await stage.type('memory', 'add', FACT);
      await say({ prompt: `${QUESTION} ${STEPS}` });
      const first = newest();
      await say({ prompt: `Paint the mountains. ${STEPS}`, session: first, isForked: true });
      const second = newest();
      expect(second).not.toBe(first);
      await say({ prompt: ENDED, session: first });
      await say({ prompt: ENDED, session: second });
    };
    const loss = async (hasHooks: boolean): Promise<Loss> => {
      const stage = await openHookedStage();
      const say = hasHooks ? await connected(name, stage) : plain(name, stage);
      const session = { say, stage, newest: () => newestSession(name, stage) };
      await play(session);
      const { refusals, lost } = stage.strict;
      const last = conversationCalls(stage).at(-1)?.body.toString() ?? '';
      const kept = last.split(/"signature":|"encrypted_content":/).length;
      const all = { refused: refusals.length, lost: lost.length, kept };
      if (kind === 'compaction' && hasHooks) await expectToldAgain(session);
      if (kind === 'compaction' && !hasHooks) expect(blocksAfterCompaction(stage)).toBe('');
      return all;
    };
    const measure = (): Promise<Loss> => loss(false);
    const [alone, hooked] = await Promise.all([
      lossAlone(name, `hooks, ${kind}`, measure),
      loss(true),
    ]);
    process.stderr.write(
      `MEASURED ${name}, ${kind}: without hooks ${JSON.stringify(alone)}, with hooks ${JSON.stringify(hooked)}\n`,
    );
    expect(hooked).toEqual(alone);
  });
});

const STEPS_MAX = IS_LONG ? 21 : 8;
const TOLD_FACTS = IS_LONG ? 5 : 3;
/** A request with its tool and its hook takes a third of a second. */
const LONG_MS = 300_000 + LONG_REQUESTS * 1_500;

describe.each(['claude', 'codex'] as const)('a long use of %s', (name) => {
  test(
    'with loops, resumed sessions and forks breaks no prefix',
    async (context) => {
      const missing = missingOf(name);
      if (missing !== undefined) return context.skip(missing);
      const stage = await openHookedStage();
      const say = await connected(name, stage);
      for (const { fact } of FACTS.slice(0, TOLD_FACTS)) {
        // oxlint-disable-next-line no-await-in-loop -- A person does one thing after the other.
        await stage.type('memory', 'add', fact);
      }
      const sessions = new Set<string>();
      let round = 0;
      for (; stage.provider.records.length < LONG_REQUESTS; round += 1) {
        const { question } = factAt(round % TOLD_FACTS);
        const session = round % 4 === 0 ? undefined : [...sessions][(round * 7) % sessions.size];
        const steps = `[[plan=bash:echo round ${round} step {i}*${3 + ((round * 5) % (STEPS_MAX - 2))}]]`;
        // A fork of Codex gives its first message another id, and loses its thinking without svc too.
        const isForked = name === 'claude' && round % 3 === 1;
        const asked = { prompt: `Round ${round}: ${question} ${steps}` };
        // oxlint-disable-next-line no-await-in-loop -- The same.
        await say({ ...asked, ...(session !== undefined && { session, isForked }) });
        sessions.add(newestSession(name, stage));
      }
      const bodies = conversationCalls(stage).map(({ body }) => body.toString());
      const blocks = bodies.filter((body) => body.includes('<svc-memory')).length;
      process.stderr.write(
        `MEASURED long use of ${name}: ${stage.provider.records.length} requests in ${round} prompts and ${sessions.size} sessions, ${blocks} of them with memory\n`,
      );
      expect(blocks).toBeGreaterThan(bodies.length / 2);
      await expectDirect(name, stage);
    },
    LONG_MS,
  );
});

type Say = (asked: Asked) => Promise<ProgramEnd>;

function plain(name: HookedName, stage: HookedStage): Say {
  return (asked) => ask(name, stage, clients, asked);
}

/** The client with its hooks, as `svc connect NAME --hooks` leaves it. */
async function connected(name: HookedName, stage: HookedStage): Promise<Say> {
  const { status, stderr } = await stage.type('connect', name, '--hooks', '--yes');
  expect(status, stderr).toBe(0);
  return plain(name, stage);
}

function blocksIn(body: string): string {
  return (body.match(/<svc-memory [^]*?<\/svc-memory>/g) ?? []).join('\n');
}

/** The client's own connection and key reach the provider, no svc listens, and no prefix was edited. */
async function expectDirect(name: string, { provider, strict, data }: HookedStage): Promise<void> {
  const { host } = new URL(provider.url);
  for (const { headers } of provider.records) {
    const said = [headerIn(headers, 'authorization'), headerIn(headers, 'x-api-key')].join(' ');
    expect(said).toContain(CLIENT_KEY);
    expect(headerIn(headers, 'host')).toBe(host);
    expect(headers.some((header) => /^x-svc-/i.test(header))).toBe(false);
  }
  expect(await listRunFiles(data)).toEqual([]);
  process.stderr.write(
    `MEASURED ${name}: ${provider.records.length} requests from the client to ${host}, the provider; no svc listens; ${strict.refusals.length} refused, ${strict.lost.length} thoughts lost\n`,
  );
  expect(strict).toMatchObject({ refusals: [], lost: [] });
}
