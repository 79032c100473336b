import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { modelIn } from '../../src/cli/clients/other-clients.ts';
import { type CliResult, runCli, runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Each test starts real processes, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const CLIENT = `#!${process.execPath}
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) =>
  /^(?:OPENCODE|SVC_PI|SVC_LOCAL|OPENAI|ANTHROPIC|COPILOT|NO_PROXY)/.test(name)));
process.stdout.write(JSON.stringify({ args: process.argv.slice(2), env }) + '\\n');
`;
/** Commands that start a program, or remove what only a home of its own has. */
const PROCESSES = new Set(['run', 'uninstall']);
const PROGRAMS = ['opencode', 'pi', 'qwen', 'copilot', 'cline', 'cn'];

function upstream(apiStyle: string): object {
  const baseUrl = 'https://llm.example.com/v1';
  return { name: apiStyle, apiStyle, baseUrl, providerKey: PROVIDER_KEY };
}

interface Stage {
  readonly home: string;
  readonly url: string;
  readonly svc: (...args: string[]) => Promise<CliResult>;
}

async function stage(styles: readonly string[], env: Record<string, string> = {}): Promise<Stage> {
  const port = await freePort();
  const upstreams = styles.map(upstream);
  const home = homeWith({ ...validConfig(), proxy: { port }, upstreams });
  const bin = join(home, 'bin');
  mkdirSync(bin);
  for (const name of PROGRAMS) {
    writeFileSync(join(bin, name), CLIENT);
    chmodSync(join(bin, name), 0o755);
  }
  const path = `${bin}:${process.env['PATH'] ?? ''}`;
  const all = { PATH: path, SVC_DATA_HOME: join(home, 'data'), ...env };
  const svc = (...args: string[]) =>
    (PROCESSES.has(args[0] ?? '') ? runCli : runHere)(args, { home, env: all });
  onTestFinished(async () => {
    await svc('stop');
  });
  return { home, url: `http://127.0.0.1:${port}`, svc };
}

interface Told {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function told(at: Stage, ...args: string[]): Promise<Told> {
  const ran = await at.svc('run', ...args);
  expect([ran.code, ran.stderr]).toEqual([0, expect.any(String)]);
  const said = JSON.parse(ran.stdout) as Told;
  // R30: arguments show in the list of processes.
  expect(said.args.join(' ')).not.toContain(LOCAL_TOKEN);
  expect(said.env['SVC_LOCAL_PROXY_TOKEN']).toBe(LOCAL_TOKEN);
  expect(said.env['NO_PROXY']).toContain('127.0.0.1');
  return said;
}

const BOTH = ['anthropic_messages', 'openai_responses'];

test('run opencode: its own providers get another address, and settings in the variable stay', async () => {
  const own = { theme: 'x', provider: { mine: { options: {} }, anthropic: { options: { a: 1 } } } };
  const at = await stage(BOTH, { OPENCODE_CONFIG_CONTENT: JSON.stringify(own) });
  const { args, env } = await told(at, 'opencode', 'run', 'hello');
  expect(args).toEqual(['run', 'hello']);
  const options = { baseURL: `${at.url}/c/opencode/v1`, apiKey: '{env:SVC_LOCAL_PROXY_TOKEN}' };
  expect(JSON.parse(env['OPENCODE_CONFIG_CONTENT'] ?? '')).toEqual({
    theme: 'x',
    provider: { mine: { options: {} }, anthropic: { options }, openai: { options } },
  });
});

test('run with Chat Completions alone: opencode and pi need a model, and get a provider svc', async () => {
  const at = await stage(['openai_chat_completions']);
  const none = await at.svc('run', 'opencode');
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('--model svc/MODEL')]);
  const { env } = await told(at, 'opencode', '--', 'run', '-m', 'svc/glm-5', 'hello');
  const config = JSON.parse(env['OPENCODE_CONFIG_CONTENT'] ?? '') as object;
  expect(config).toMatchObject({ provider: { svc: { models: { 'glm-5': {} } } } });
  const { args, env: ofPi } = await told(at, 'pi', '--', '--model=svc/glm-5', 'hello');
  expect(args[0]).toBe('--extension');
  expect(existsSync(args[1] ?? '')).toBe(true);
  const providers = JSON.parse(ofPi['SVC_PI_PROVIDERS'] ?? '') as object;
  expect(providers).toMatchObject({
    // Since 0.77 pi takes the name of a variable without a dollar for the key itself; before, one with a dollar.
    svc: { models: [{ id: 'glm-5' }], baseUrl: `${at.url}/c/pi/v1`, apiKey: LOCAL_TOKEN },
  });
});

test('run qwen and copilot: the environment names address, kind and token', async () => {
  const at = await stage(BOTH, { OPENAI_API_KEY: 'sk-of-the-shell' });
  const qwen = await told(at, 'qwen', '--', '-m', 'x');
  expect(qwen.args).toEqual(['--auth-type', 'anthropic', '-m', 'x']);
  expect(qwen.env).toMatchObject({
    ANTHROPIC_BASE_URL: `${at.url}/c/qwen`,
    ANTHROPIC_API_KEY: LOCAL_TOKEN,
  });
  const noModel = await at.svc('run', 'copilot');
  expect([noModel.code, noModel.stderr]).toEqual([1, expect.stringContaining('COPILOT_MODEL')]);
  const copilot = await told(at, 'copilot', '--', '--model', 'x');
  expect(copilot.env).toMatchObject({
    COPILOT_PROVIDER_TYPE: 'anthropic',
    COPILOT_PROVIDER_BASE_URL: `${at.url}/c/copilot`,
    COPILOT_PROVIDER_API_KEY: LOCAL_TOKEN,
  });
});

test.each(['cline', 'continue'])(
  'run %s: without the file that names the proxy it does not start, and says how to make it',
  async (name) => {
    const at = await stage(['openai_chat_completions']);
    const ran = await at.svc('run', name);
    expect([ran.code, ran.stdout, ran.stderr]).toEqual([
      1,
      '',
      expect.stringContaining(`svc print-config ${name} --model`),
    ]);
  },
);

test.each([
  ['cline', BOTH],
  ['continue', ['openai_responses']],
])(
  'run %s: a provider whose dialect it does not speak is said before it starts',
  async (name, styles) => {
    const at = await stage(styles);
    const ran = await at.svc('run', name);
    expect([ran.code, ran.stdout]).toEqual([1, '']);
    expect(ran.stderr).toMatch(/svc has no provider (?:with a key )?for that API/);
  },
);

const WRITTEN = [
  {
    name: 'opencode',
    file: '.config/opencode/opencode.json',
    text: '{\n  // mine\n  "provider": { "mine": { "name": "m" } }\n}\n',
  },
  { name: 'pi', file: '.pi/agent/models.json', text: '{"providers":{}}' },
  {
    name: 'qwen',
    file: '.qwen/settings.json',
    text: '{\r\n\t"env": { "OPENAI_BASE_URL": "https://mine" }\r\n}',
  },
  {
    name: 'zed',
    file: '.config/zed/settings.json',
    text: '// mine\n{\n  "theme": "One Dark",\n  "language_models": { "ollama": {} },\n}\n',
    flags: ['--model', 'gpt-5'],
  },
] as const;

test.each(WRITTEN)(
  'connect $name writes no token, and disconnect gives back every byte',
  async ({ name, file, text, ...more }) => {
    const at = await stage(['openai_responses']);
    const path = join(at.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    const written = await at.svc('connect', name, '--yes', ...('flags' in more ? more.flags : []));
    expect([written.code, written.stdout, written.stderr]).toEqual([
      0,
      '',
      expect.stringContaining(`svc disconnect ${name}`),
    ]);
    expect(readFileSync(path, 'utf8')).toContain(at.url);
    expect(readFileSync(path, 'utf8')).not.toContain(LOCAL_TOKEN);
    expect((await at.svc('disconnect', name, '--yes')).code).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(text);
  },
);

test.each(WRITTEN)(
  'uninstall takes out what connect put into the file of $name',
  async ({ name, file, text, ...more }) => {
    const at = await stage(['openai_responses']);
    const path = join(at.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    await at.svc('connect', name, '--yes', ...('flags' in more ? more.flags : []));
    const done = await at.svc('uninstall', '--yes');
    expect([done.code, done.stderr]).toEqual([0, expect.any(String)]);
    expect(readFileSync(path, 'utf8')).toBe(text);
  },
);

test('Continue’s file is made where there is none, goes with disconnect and uninstall, and a person’s own is not edited', async () => {
  const at = await stage(['anthropic_messages']);
  const path = join(at.home, '.continue/config.yaml');
  const write = ['connect', 'continue', '--model', 'm-1', '--yes'];
  expect(await at.svc('connect', 'continue', '--yes')).toMatchObject({ code: 1 });
  for (const end of [
    ['disconnect', 'continue', '--yes'],
    ['uninstall', '--yes'],
  ]) {
    expect((await at.svc(...write)).code).toBe(0);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain(`${at.url}/c/continue/t/svc_path_`);
    expect(text).not.toContain(LOCAL_TOKEN);
    // The client needs no --config then.
    expect((await told(at, 'continue')).args).toEqual([]);
    expect((await at.svc(...end)).code).toBe(0);
    expect(existsSync(dirname(path))).toBe(false);
  }
});

test('a YAML file of a person’s own is left as it is, and the hint says what to do', async () => {
  const at = await stage(['anthropic_messages']);
  const path = join(at.home, '.continue/config.yaml');
  mkdirSync(dirname(path));
  const own = 'name: mine # my models\nmodels: []\n';
  writeFileSync(path, own);
  const refused = await at.svc('connect', 'continue', '--model', 'm-1', '--yes');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('cannot edit')]);
  expect(refused.stderr).toContain('svc print-config continue');
  expect(readFileSync(path, 'utf8')).toBe(own);
});

test('Zed’s own provider gets the address, and a model of another API an entry of its own', async () => {
  const at = await stage(['anthropic_messages', 'openai_chat_completions']);
  const path = join(at.home, '.config/zed/settings.json');
  const done = await at.svc('connect', 'zed', '--yes', '--model', 'gpt-5');
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('Enter any text')]);
  const address = `${at.url}/c/zed/t/svc_path_`;
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    language_models: {
      anthropic: { api_url: expect.stringContaining(address) },
      openai_compatible: {
        svc: {
          api_url: expect.stringMatching(/\/v1$/),
          available_models: [{ name: 'gpt-5', max_tokens: 200_000 }],
        },
      },
    },
  });
});

test.each([
  ['anthropic_messages', 'messages', '/v1/messages'],
  ['openai_responses', 'responses', '/v1/responses'],
  ['openai_chat_completions', 'chat-completions', '/v1/chat/completions'],
])('VS Code gets an entry with the whole address: %s', async (style, apiType, end) => {
  const at = await stage([style]);
  const printed = await at.svc('print-config', 'vscode', '--model', 'm-1');
  expect(printed.stdout).not.toContain(LOCAL_TOKEN);
  const address = new RegExp(`^${at.url}/c/vscode/t/svc_path_[\\w-]+${end}$`);
  expect(JSON.parse(printed.stdout)).toMatchObject([
    {
      vendor: 'customendpoint',
      apiType,
      models: [{ id: 'm-1', url: expect.stringMatching(address) }],
    },
  ]);
});

test.each([
  ['cursor', 'own servers'],
  ['jetbrains', 'svc connect claude'],
  ['vscode', 'svc print-config vscode'],
])('connect %s says what is not possible, and what is', async (name, reason) => {
  const at = await stage(BOTH);
  const refused = await at.svc('connect', name, '--yes');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(reason)]);
});

test.each(['copilot', 'cline'])('%s cannot be connected, and svc says why', async (name) => {
  const at = await stage([...BOTH, 'openai_chat_completions']);
  // The hooks of Copilot CLI can be taken away, so svc disconnect knows it.
  for (const command of name === 'copilot' ? ['connect'] : ['connect', 'disconnect']) {
    const refused = await at.svc(command, name, '--yes');
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    expect(refused.stderr).toMatch(/svc changes no file of .*\. (?:Copilot|Cline) /);
  }
  expect((await at.svc('print-config', name, '--model', 'm')).stderr).toContain('svc connect');
});

test('what stands beside svc’s own keys stays when they are taken out, and nothing empty is left', async () => {
  const at = await stage(BOTH);
  const path = join(at.home, '.pi/agent/models.json');
  await at.svc('connect', 'pi', '--yes');
  const made = JSON.parse(readFileSync(path, 'utf8')) as { providers: Record<string, object> };
  const changed = { providers: { ...made.providers, mine: { baseUrl: 'https://mine' } } };
  writeFileSync(path, JSON.stringify(changed));
  expect((await at.svc('disconnect', 'pi', '--yes')).code).toBe(0);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    providers: { mine: { baseUrl: 'https://mine' } },
  });
});

test('print-config opencode prints no token', async () => {
  const at = await stage(BOTH);
  const printed = await at.svc('print-config', 'opencode');
  expect(printed.stdout).not.toContain(LOCAL_TOKEN);
  expect(JSON.parse(printed.stdout)).toHaveProperty(
    'provider.anthropic.options.baseURL',
    `${at.url}/c/opencode/v1`,
  );
});

test('a model is found in the forms in which clients take it', () => {
  expect(modelIn(['-m', 'svc/a', 'x'])).toBe('a');
  expect(modelIn(['--model=b'])).toBe('b');
  expect(modelIn(['x', '--model', 'openai/c'])).toBe('openai/c');
  expect(modelIn(['x'])).toBeUndefined();
});
