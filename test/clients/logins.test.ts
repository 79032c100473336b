import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { pathTokenOf } from '../../src/core/http/local-token.ts';
import { headerIn } from './support/wire-message.ts';
import { clientEnvironment } from './support/claude-code.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { runProgram } from './support/program.ts';
import { openStage, type Stage } from './support/stage.ts';
import { svcCommand } from './support/svc-command.ts';

/** Real clients with invented logins, against a provider on loopback that records what it gets. */

const clients = { claude: await installedClient('claude'), codex: await installedClient('codex') };

const CLAUDE_LOGIN = `sk-ant-oat01-${'invented'.repeat(12)}`;
const JWT = [
  { alg: 'RS256', typ: 'JWT' },
  {
    exp: 4_102_444_800,
    email: 'person@example.com',
    'https://api.openai.com/auth': {
      chatgpt_account_id: 'acc-invented',
      chatgpt_plan_type: 'plus',
    },
  },
]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.')
  .concat(`.${'s'.repeat(86)}`);
const LOGIN = { claude: CLAUDE_LOGIN, codex: JWT } as const;

const ARGS = {
  claude: (prompt: string) => ['-p', prompt],
  codex: (prompt: string) => ['exec', '--skip-git-repo-check', prompt],
} as const;

/** The files in which each client keeps its login. */
function logIn(stage: Stage, name: keyof typeof clients): void {
  if (name === 'claude') {
    mkdirSync(join(stage.home, '.claude'), { recursive: true });
    const login = { accessToken: CLAUDE_LOGIN, refreshToken: 'r', expiresAt: 4_102_444_800_000 };
    const text = JSON.stringify({
      claudeAiOauth: { ...login, scopes: ['user:inference'], subscriptionType: 'max' },
    });
    writeFileSync(join(stage.home, '.claude/.credentials.json'), text, { mode: 0o600 });
    return;
  }
  mkdirSync(join(stage.home, '.codex'), { recursive: true });
  const tokens = {
    id_token: JWT,
    access_token: JWT,
    refresh_token: 'r',
    account_id: 'acc-invented',
  };
  const auth = { auth_mode: 'chatgpt', tokens, last_refresh: new Date().toISOString() };
  writeFileSync(join(stage.home, '.codex/auth.json'), JSON.stringify(auth), { mode: 0o600 });
}

/** A proxy whose two providers take the clients' logins; a listener on loopback stands in for them. */
async function openLoginStage(): Promise<Stage> {
  const stage = await openStage();
  const file = join(stage.svc.env['SVC_CONFIG_HOME'] ?? '', 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  const upstreams = ['anthropic_messages', 'openai_responses'].map((apiStyle) => ({
    name: apiStyle,
    apiStyle,
    auth: 'client',
    baseUrl: stage.provider.url,
    allowPrivate: true,
  }));
  writeFileSync(file, JSON.stringify({ ...config, upstreams }), { mode: 0o600 });
  await stage.svc.stop();
  await stage.restartSvc();
  return stage;
}

function environmentOf(stage: Stage) {
  return {
    ...clientEnvironment(stage),
    DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  };
}

/** Every file that svc keeps, as one text. */
function keptBySvc(stage: Stage): string {
  const folder = stage.svc.dataFolder;
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

describe.each(['claude', 'codex'] as const)('R46: %s with a login', (name) => {
  const client = clients[name];

  beforeEach((context: TestContext) => {
    if (client.missing !== undefined) context.skip(client.missing);
  });

  test('svc run passes exactly that login on, to exactly one host, and keeps nothing of it', async () => {
    const stage = await openLoginStage();
    logIn(stage, name);
    const args = ['run', name, '--', ...ARGS[name]('Say this. [[final=through the plan]]')];
    const said = await svcCommand(stage, client, args).ended;
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('through the plan');
    const calls = stage.provider.records.filter(({ method }) => method === 'POST');
    expect(calls.length).toBeGreaterThan(0);
    for (const { headers } of stage.provider.records) {
      expect(headerIn(headers, 'authorization')).toBe(`Bearer ${LOGIN[name]}`);
      const all = JSON.stringify(headers);
      expect(all).not.toContain(stage.svc.token);
      expect(all).not.toContain('x-svc');
      expect(all).not.toContain('x-api-key');
    }
    // Codex compresses for its own provider; the first request is not changed, so its bytes stay.
    const codings = calls.map(({ headers }) => headerIn(headers, 'content-encoding'));
    expect(codings[0]).toBe(name === 'codex' ? 'zstd' : undefined);
    const kept = keptBySvc(stage);
    for (const secret of [LOGIN[name], stage.svc.token, pathTokenOf(stage.svc.token)]) {
      expect(kept).not.toContain(secret);
    }
  });

  test('its own settings, written by svc, do the same', async () => {
    const stage = await openLoginStage();
    logIn(stage, name);
    const written = await svcCommand(stage, client, ['connect', name, '--yes']).ended;
    expect(written, written.stderr).toMatchObject({ status: 0 });
    const startsProxy = name === 'claude';
    expect(written.stderr).toContain(startsProxy ? 'It starts the proxy' : 'svc start --at-login');
    // Its hook starts the proxy before the first request; without one it would wait for a minute.
    if (startsProxy) await stage.svc.stop();
    onTestFinished(async () => {
      if (startsProxy) await svcCommand(stage, client, ['stop']).ended;
    });
    const said = await runProgram({
      file: binaryOf(client, name),
      args: ARGS[name]('Say this. [[final=as it is started always]]'),
      folder: stage.project,
      env: environmentOf(stage),
    }).ended;
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('as it is started always');
    const [call] = stage.provider.records.filter(({ method }) => method === 'POST');
    expect(headerIn(call?.headers ?? [], 'authorization')).toBe(`Bearer ${LOGIN[name]}`);
    // Both ways at once: the settings stay, and svc run starts the client.
    const prompt = ARGS[name]('Say this. [[final=as it is started by svc run]]');
    const run = await svcCommand(stage, client, ['run', name, '--', ...prompt]).ended;
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('as it is started by svc run');
    const undone = await svcCommand(stage, client, ['disconnect', name, '--yes']).ended;
    expect(undone, undone.stderr).toMatchObject({ status: 0 });
  });

  test('with a key configured, one line says who pays, and the login stays at home', async () => {
    const stage = await openStage();
    logIn(stage, name);
    const args = ['run', name, '--', ...ARGS[name]('Say this. [[final=by the key]]')];
    const said = await svcCommand(stage, client, args).ended;
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('by the key');
    expect(said.stderr).toContain('the provider bills the key per token');
    expect(JSON.stringify(stage.provider.records.map(({ headers }) => headers))).not.toContain(
      LOGIN[name],
    );
  });
});

test('a Codex session begun without svc is resumed through it, and the other way round', async (context) => {
  const client = clients.codex;
  if (client.missing !== undefined) context.skip(client.missing);
  const stage = await openLoginStage();
  logIn(stage, 'codex');
  const direct = (args: readonly string[]) =>
    runProgram({
      file: binaryOf(client, 'codex'),
      // Without svc the built-in provider reaches the stand-in itself.
      args: [
        ...args.slice(0, 1),
        '-c',
        `openai_base_url="${stage.provider.url}/v1"`,
        ...args.slice(1),
      ],
      folder: stage.project,
      env: environmentOf(stage),
    }).ended;
  const skip = '--skip-git-repo-check';
  expect(await direct(['exec', skip, 'Remember: heron-fourteen. [[final=noted]]'])).toMatchObject({
    status: 0,
  });
  const through = ['run', 'codex', '--', 'exec', 'resume', '--last', skip, 'Go on. [[final=on]]'];
  const resumed = await svcCommand(stage, client, through).ended;
  expect(resumed, resumed.stderr).toMatchObject({ status: 0 });
  const bodyOf = (at: number): string => {
    const posts = stage.provider.records.filter(({ method }) => method === 'POST');
    return JSON.stringify(posts.at(at)?.json ?? posts.at(at)?.body.toString('utf8'));
  };
  expect(bodyOf(-1)).toContain('heron-fourteen');
  const back = await direct(['exec', 'resume', '--last', skip, 'And back. [[final=back]]']);
  expect(back, back.stderr).toMatchObject({ status: 0 });
  expect(bodyOf(-1)).toContain('heron-fourteen');
});
