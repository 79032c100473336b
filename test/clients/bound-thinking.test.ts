import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { strictSettings } from '../support/strict-provider/settings.ts';
import { StrictProvider } from '../support/strict-provider/strict-provider.ts';
import { missingTmux } from '../support/tmux.ts';
import { IS_ALONE_ASKED, type Loss, lossAlone } from './support/alone.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import {
  openClaudeScreen,
  openCodexScreen,
  rewindClaude,
  rewindCodex,
} from './support/screen-session.ts';
import { type Stage, openStage } from './support/stage.ts';
import { FACT, OTHER_FACT, OTHER_QUESTION, QUESTION, SECRET_OF_FACT } from './support/story.ts';
import { svcCommand } from './support/svc-command.ts';

/**
 * Real clients with models whose thinking is bound to everything before it, and a provider that checks it
 * (test/support/strict-provider): with svc and without, nothing may be refused and no thinking lost.
 * What they lose without svc stands in support/alone.ts, and SVC_TEST_ALONE=1 plays that half again.
 */

type Way = 'without svc' | 'through svc';
const WAYS: readonly Way[] = IS_ALONE_ASKED ? ['without svc', 'through svc'] : ['through svc'];

const CLAUDE = await installedClient('claude');
const CODEX = await installedClient('codex');

interface Asked {
  readonly prompt: string;
  /** Goes on with the newest session. */
  readonly isResumed?: boolean;
  /** Begins a new session with everything of this one. */
  readonly forked?: string;
  /** Goes on with this session. */
  readonly resumed?: string;
  /** The other model of the client. */
  readonly isOther?: boolean;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const CLIENTS = {
  claude: {
    installed: CLAUDE,
    ask: (stage: Stage, way: Way, { prompt, isOther, args = [], env, ...session }: Asked) =>
      runClaude(CLAUDE, stage, {
        prompt,
        args: [
          '--model',
          isOther === true ? 'claude-fable-5-2' : CLAUDE_MODEL,
          ...(session.isResumed === true ? ['--continue'] : []),
          ...(session.resumed === undefined ? [] : ['--resume', session.resumed]),
          ...(session.forked === undefined ? [] : ['--resume', session.forked, '--fork-session']),
          ...args,
        ],
        env: { ...env, ...(way === 'without svc' && { ANTHROPIC_BASE_URL: stage.provider.url }) },
      }),
    serverArgs: (file: string): readonly string[] => {
      const server = { command: process.execPath, args: [file] };
      return ['--mcp-config', JSON.stringify({ mcpServers: { late: server } })];
    },
    screen: async (stage: Stage, url: string): Promise<Screen> => {
      const session = await openClaudeScreen(CLAUDE, stage, { url, model: CLAUDE_MODEL });
      return {
        say: (prompt) => session.say(prompt),
        takeBack: (prompt) => rewindClaude(session, prompt),
      };
    },
  },
  codex: {
    installed: CODEX,
    ask: (stage: Stage, way: Way, { isOther, ...asked }: Asked) =>
      runCodex(CODEX, stage, {
        ...asked,
        model: isOther === true ? 'gpt-6.2' : CODEX_MODEL,
        ...(way === 'without svc' && { url: stage.provider.url }),
      }),
    serverArgs: (file: string): readonly string[] => [
      '-c',
      `mcp_servers.late={command=${JSON.stringify(process.execPath)},args=[${JSON.stringify(file)}]}`,
    ],
    screen: async (stage: Stage, url: string): Promise<Screen> => {
      const session = await openCodexScreen(CODEX, stage, { url, model: CODEX_MODEL });
      return {
        // What is said before belongs to the prompt that is worked on.
        say: (prompt) => session.idle().then(() => session.say(prompt)),
        takeBack: () => rewindCodex(session),
      };
    },
  },
} as const;

interface Screen {
  readonly say: (prompt: string) => Promise<void>;
  /** Takes `prompt`, the newest one, back. */
  readonly takeBack: (prompt: string) => Promise<void>;
}

describe.each(['claude', 'codex'] as const)('bound thinking under %s', (name) => {
  const { installed, ask } = CLIENTS[name];

  beforeEach((context: TestContext) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
  });

  test.each(WAYS)(
    'is kept over 40 rounds of long outputs and a resumed session, %s',
    async (way) => {
      const { stage, strict } = await openStrict();
      await ask(stage, way, { prompt: FACT });
      const plan = `[[plan=bash:seq {i}00000 {i}02000*${ROUNDS}]]`;
      const session = await ask(stage, way, { prompt: `${QUESTION} ${plan}` });
      expect(session.stdout, session.stderr).toContain(`${ROUNDS}02000`);
      const resumed = await ask(stage, way, { prompt: END, isResumed: true });
      expect(resumed.stdout, resumed.stderr).toContain('All is said.');
      const last = lastBody(stage);
      expect(last.split(/"signature":|"encrypted_content":/).length).toBeGreaterThan(ROUNDS);
      expect(last.includes(SECRET_OF_FACT)).toBe(way === 'through svc');
      expect(strict).toMatchObject(NOTHING_LOST);
    },
  );

  test.each(WAYS)('is kept behind recalled blocks of two prompts, %s', async (way) => {
    const { stage, strict } = await openStrict('new', { sessionBrief: false });
    await tell(stage, FACT);
    await tell(stage, OTHER_FACT);
    await ask(stage, way, { prompt: `${QUESTION} ${STEPS}` });
    await ask(stage, way, { prompt: `${OTHER_QUESTION} ${STEPS}`, isResumed: true });
    await ask(stage, way, { prompt: END, isResumed: true });
    const blocks = lastBody(stage).split('<svc-memory ').length - 1;
    expect(blocks).toBe(way === 'through svc' ? 2 : 0);
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test('is kept behind a second look, which comes once, and again in a resumed and a forked session', async () => {
    const { stage, strict } = await openStrict('new', {
      sessionBrief: false,
      // A prompt gets three quarters of it, in which the lines have no room.
      recalledTokensMax: 90,
    });
    for (let file = 1; file <= 7; file += 1) {
      writeFileSync(join(stage.project, `q7_${file}.py`), `berth = ${file}\n`);
    }
    await ask(stage, 'through svc', { prompt: `Why does the shop wait? [[final=${LOOK_FACT}]]` });
    const sent = stage.provider.records.length;
    await ask(stage, 'through svc', {
      prompt: 'Please count all of them. [[plan=bash:cat q7_{i}.py*7]]',
    });
    const bodies = stage.provider.records.slice(sent).map(({ body }) => looksIn(body.toString()));
    const first = lastBody(stage);
    expect(looksIn(first)).toHaveLength(1);
    const from = bodies.findIndex((looks) => looks.length > 0);
    expect(from).toBeGreaterThan(2);
    for (const looks of bodies.slice(from)) expect(looks).toEqual(looksIn(first));
    const session = newestSession(stage);
    await ask(stage, 'through svc', { prompt: END, resumed: session });
    expect(looksIn(lastBody(stage))).toEqual(looksIn(first));
    // Codex gives its first message a new id in a fork, and no thinking is bound to that one.
    if (name === 'claude') {
      await ask(stage, 'through svc', { prompt: END, forked: session });
      expect(looksIn(lastBody(stage))).toEqual(looksIn(first));
    }
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test('is kept behind a rule that a command falls under: a fact at the end of its output, and again in a resumed session', async () => {
    const { stage, strict } = await openStrict('new', {
      sessionBrief: false,
      // A prompt gets three quarters of it, in which the rule has no room.
      recalledTokensMax: 75,
    });
    for (let file = 1; file <= 7; file += 1) {
      writeFileSync(join(stage.project, `dock_${file}.sh`), `echo berth ${file}\n`);
    }
    await ask(stage, 'through svc', { prompt: `${ACTION_RULE} [[final=Noted.]]` });
    await ask(stage, 'through svc', {
      prompt: 'Please count all of them. [[plan=bash:sh dock_{i}.sh*7]]',
    });
    const placed = lastBody(stage);
    const [block = ''] = blocksWith(ACTION_RULE, placed);
    expect(block).toMatch(/\\n- \d{4}-\d\d-\d\d, the user: Never run/);
    // Behind the output of the client's shell, in the same text.
    expect(placed).toMatch(new RegExp(`berth \\d[^"]*${literal(block)}`));
    expect(placed.split(ACTION_RULE)).toHaveLength(2);
    await ask(stage, 'through svc', { prompt: END, isResumed: true });
    expect(blocksWith(ACTION_RULE, lastBody(stage))).toEqual([block]);
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test.each(WAYS)('is kept when the model changes and comes back, %s', async (way) => {
    const { stage, strict } = await openStrict();
    await tell(stage, FACT);
    await ask(stage, way, { prompt: `${QUESTION} ${STEPS}` });
    await ask(stage, way, { prompt: `Go on. ${STEPS}`, isResumed: true, isOther: true });
    await ask(stage, way, { prompt: END, isResumed: true });
    expect(strict.refusals).toEqual([]);
    expect(strict.lost.filter(({ reason }) => reason === 'prefix')).toEqual([]);
  });

  test('is kept when the person goes on without svc, and comes back', async () => {
    const { stage, strict } = await openStrict();
    await ask(stage, 'through svc', { prompt: `Begin. ${STEPS}` });
    await ask(stage, 'without svc', { prompt: `Go on. ${STEPS}`, isResumed: true });
    await ask(stage, 'through svc', { prompt: END, isResumed: true });
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test.each(['through svc'])(
    'is lost once, when the person leaves svc behind a recalled block, and comes back %s',
    async () => {
      const { stage, strict } = await openStrict();
      await tell(stage, FACT);
      await ask(stage, 'through svc', { prompt: `${QUESTION} ${STEPS}` });
      const away = await ask(stage, 'without svc', { prompt: `Go on. ${STEPS}`, isResumed: true });
      expect(away, away.stderr).toMatchObject({ status: 0 });
      const lost = new Set(strict.lost.map(({ seal }) => seal));
      const refusals = strict.refusals.length;
      expect(lost.size + refusals).toBeGreaterThan(0);
      const back = await ask(stage, 'through svc', { prompt: END, isResumed: true });
      expect(back.stdout, back.stderr).toContain('All is said.');
      expect(strict.refusals).toHaveLength(refusals);
      expect(strict.lost.filter(({ seal }) => !lost.has(seal))).toEqual([]);
    },
  );
});

describe.each([
  ['claude', 'new'],
  ['claude', 'old'],
  ['codex', 'new'],
] as const)('under %s with the %s account svc loses no more thinking', (name, account) => {
  const { installed, serverArgs, screen } = CLIENTS[name];

  beforeEach((context: TestContext) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
  });

  test('when the conversation is compacted', async () => {
    await expectNoMoreLost('compaction', async ({ stage, ask }) => {
      await tell(stage, FACT);
      if (name === 'claude') {
        await ask({ prompt: `${QUESTION} ${STEPS}` });
        await ask({ prompt: `Paint the mountains. ${STEPS}`, isResumed: true });
        await ask({ prompt: '/compact', isResumed: true });
      } else {
        // Codex compacts by itself once the provider counts so many tokens. It keeps the typed texts, so the
        // summary says what is next: else the model would begin the plan again.
        const args = ['-c', 'model_auto_compact_token_limit=15000'];
        const outputs = '[[plan=bash:seq 100000 104000 && echo <<final=Counted.>>*3]]';
        await ask({ prompt: `${QUESTION} ${outputs}`, args });
        await ask({ prompt: 'Go on. [[final=I go on.]]', isResumed: true, args });
      }
      await ask({ prompt: `${QUESTION} ${STEPS}`, isResumed: true });
      await ask({ prompt: END, isResumed: true });
      expect(stage.provider.records.some(({ body }) => COMPACTED.test(body.toString()))).toBe(true);
    });
  });

  // The provider keeps and refuses the same for both accounts where no client loses anything: one plays it.
  const accounts = account === 'new' ? [account] : [];
  const searches = account === 'new' ? ['false', 'true'] : ['false'];

  test.each(accounts)('when the conversation is forked, and both go on', async () => {
    await expectNoMoreLost('fork', async ({ stage, ask }) => {
      await tell(stage, FACT);
      await ask({ prompt: `${QUESTION} ${STEPS}` });
      const first = newestSession(stage);
      await ask({ prompt: `Paint the mountains. ${STEPS}`, forked: first });
      const second = newestSession(stage);
      expect(second).not.toBe(first);
      await ask({ prompt: `${QUESTION} ${STEPS}`, resumed: first });
      await ask({ prompt: `${QUESTION} ${STEPS}`, resumed: second });
      await ask({ prompt: END, resumed: first });
      await ask({ prompt: END, resumed: second });
    });
  });

  test.each(name === 'claude' ? searches : ['false'])(
    'when an MCP server is there from the second prompt on (tool search of Claude Code: %s)',
    async (search) => {
      await expectNoMoreLost(`MCP server, tool search ${search}`, async ({ stage, ask }) => {
        const args = serverArgs(toolServer(stage));
        const env = { ENABLE_TOOL_SEARCH: search };
        await tell(stage, FACT);
        await ask({ prompt: `${QUESTION} ${STEPS}`, env });
        await ask({ prompt: `${QUESTION} ${STEPS}`, args, env, isResumed: true });
        await ask({ prompt: END, args, env, isResumed: true });
        expect(lastBody(stage)).toContain('late');
      });
    },
  );

  test.each(name === 'claude' ? searches : [])(
    'when an MCP server connects in the middle of a tool loop (tool search of Claude Code: %s)',
    async (search) => {
      await expectNoMoreLost(`late MCP server, tool search ${search}`, async ({ stage, ask }) => {
        // In print mode Claude Code waits for its servers unless it is told not to.
        const env = { ENABLE_TOOL_SEARCH: search, CLAUDE_CODE_MCP_STARTUP_WAIT_MS: '0' };
        const args = serverArgs(toolServer(stage, { isLate: true }));
        writeFileSync(join(stage.project, 'late.sh'), LATE_STEP);
        await tell(stage, FACT);
        await ask({ prompt: `${QUESTION} ${LATE_STEPS}`, args, env });
        const loop = stage.provider.records
          .map(({ body }) => body.toString())
          .filter((body) => body.includes(LATE_STEPS));
        expect(loop[0]).not.toContain('late_tool');
        expect(loop.at(-1)).toContain('late_tool');
        // The next session ends before its server answers.
        rmSync(join(stage.project, 'asked'));
        await ask({ prompt: END, args, env, isResumed: true });
      });
    },
  );

  test.for(accounts)('when a prompt is taken back', async (_, context) => {
    const missing = missingTmux();
    if (missing !== undefined) context.skip(missing);
    await expectNoMoreLost('rewind', async ({ stage, url }) => {
      await tell(stage, FACT);
      const session = await screen(stage, url);
      const say = async (prompt: string, answer: string): Promise<void> => {
        await session.say(prompt);
        await stage.provider.until((records) =>
          records.some((record) => record.isOver && record.body.includes(`echo ${answer}`)),
        );
      };
      await say(`${QUESTION} [[plan=bash:echo one-{i}*3]]`, 'one-3');
      await say('Paint it. [[plan=bash:echo two-{i}*3]]', 'two-3');
      await session.takeBack('Paint it.');
      await say('On which port? [[plan=bash:echo three-{i}*3]]', 'three-3');
      await say('Once more. [[plan=bash:echo four-{i}*3]]', 'four-3');
    });
  });

  /** The same session twice: alone with the provider, and with svc in between. */
  async function expectNoMoreLost(
    title: string,
    play: (session: Played) => Promise<void>,
  ): Promise<void> {
    const loss = async (way: Way): Promise<Loss> => {
      const { stage, strict } = await openStrict(account);
      const url = way === 'without svc' ? stage.provider.url : stage.url;
      await play({
        stage,
        url,
        ask: async (asked) => {
          const end = await CLIENTS[name].ask(stage, way, asked);
          expect(end, end.stderr).toMatchObject({ status: 0 });
        },
      });
      const blocks = stage.provider.records.filter(({ body }) => body.includes('<svc-memory '));
      expect(blocks.length > 0).toBe(way === 'through svc');
      return {
        refused: way === 'without svc' ? strict.refusals.length : refusedToClient(stage),
        lost: new Set(strict.lost.map(({ seal }) => seal)).size,
        kept: thoughtsIn(lastBody(stage)),
      };
    };
    const measure = (): Promise<Loss> => loss('without svc');
    const [direct, through] = await Promise.all([
      lossAlone(name, `${account} account, ${title}`, measure),
      loss('through svc'),
    ]);
    process.stderr.write(
      `MEASURED ${name}, ${account} account, ${title}: without svc ${JSON.stringify(direct)}, through svc ${JSON.stringify(through)}\n`,
    );
    expect(through.refused).toBeLessThanOrEqual(direct.refused);
    expect(through.lost).toBeLessThanOrEqual(direct.lost);
    expect(through.kept).toBeGreaterThanOrEqual(direct.kept);
  }
});

interface Played {
  readonly stage: Stage;
  /** Of svc, or of the provider itself. */
  readonly url: string;
  readonly ask: (asked: Asked) => Promise<void>;
}

function refusedToClient({ tap }: Stage): number {
  return tap.exchanges.filter(({ answer }) => answer?.startLine.includes(' 400 ')).length;
}

function thoughtsIn(body: string): number {
  return body.split(/"signature":|"encrypted_content":/).length - 1;
}

/** Both clients keep each session in a file with its id in the name. */
function newestSession({ home }: Stage): string {
  const files = readdirSync(home, { recursive: true, encoding: 'utf8' })
    .filter((file) => SESSION_FILE.test(file))
    .toSorted((one, other) => changedAt(join(home, one)) - changedAt(join(home, other)));
  return SESSION_FILE.exec(files.at(-1) ?? '')?.[1] ?? '';
}

const SESSION_FILE = /([\da-f]{8}-[\da-f-]{27})\.jsonl$/;

function changedAt(path: string): number {
  return statSync(path).mtimeMs;
}

/** An MCP server with one tool. A late one answers its client once a step of the loop asks it to. */
function toolServer(stage: Stage, { isLate = false } = {}): string {
  const file = join(stage.newFolder('late'), 'server.mjs');
  writeFileSync(
    file,
    `const PROJECT = ${JSON.stringify(isLate ? stage.project : '')};\n${TOOL_SERVER}`,
  );
  return file;
}

/** The tool joins behind the third answer, whatever the machine does meanwhile. */
const LATE_STEPS = '[[plan=bash:ls*3|bash:sh late.sh|bash:ls*5]]';
/** Lets the late server answer and waits until it has named its tool; then its client has a second to read that. */
const LATE_STEP = 'touch asked; until test -e named; do sleep 0.1; done; sleep 1; echo named\n';

const TOOL_SERVER = `
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

while (PROJECT !== '' && !existsSync(PROJECT + '/asked')) await sleep(50);

const tool = { name: 'late_tool', description: 'Comes late.', inputSchema: { type: 'object' } };
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'late', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [tool] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = results[method]?.(params);
  const error = { code: -32601, message: 'Method not found' };
  const answer = { jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) };
  process.stdout.write(JSON.stringify(answer) + '\\n');
  if (PROJECT !== '' && method === 'tools/list') writeFileSync(PROJECT + '/named', '');
}
`;

/** What both clients write in front of the summary that stands for the conversation. */
const COMPACTED =
  /This session is being continued from a previous conversation|Another language model started to solve/;

const CLAUDE_MODEL = 'claude-opus-5-5';
const CODEX_MODEL = 'gpt-6';

/** Of a loop whose outputs, some 14,000 characters each, are long together. */
const ROUNDS = 40;
const STEPS = '[[plan=bash:ls*3]]';
const END = '[[final=All is said.]]';

const NOTHING_LOST = { refusals: [], lost: [] };

const LOOK_FACT =
  'The ships of q7_2.py and q7_3.py wait on the walrus canal, because its crane pulls both of them at noon.';

/** Its prompt names no file of it, and each command of the loop is another file. */
const ACTION_RULE = 'Never run `dock_3.sh` at noon, because the crane is taken then.';

function looksIn(body: string): readonly string[] {
  return blocksWith('q7_3.py wait on', body);
}

function blocksWith(text: string, body: string): readonly string[] {
  const blocks = body.match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
  return blocks.filter((block) => block.includes(text));
}

function literal(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

/** Puts a fact into the memory of the project, where no client has to say it. */
async function tell(stage: Stage, fact: string): Promise<void> {
  const end = await svcCommand(stage, CLAUDE, ['memory', 'add', fact]).ended;
  expect(end, end.stderr).toMatchObject({ status: 0 });
}

async function openStrict(
  account: 'new' | 'old' = 'new',
  settings: Readonly<Record<string, unknown>> = {},
): Promise<{ stage: Stage; strict: StrictProvider }> {
  const stage = await openStage(settings);
  const strict = new StrictProvider(strictSettings({ account }));
  stage.provider.options = { strict };
  return { stage, strict };
}

function lastBody(stage: Stage): string {
  return stage.provider.records.at(-1)?.body.toString() ?? '';
}
