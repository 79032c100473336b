import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { BIN, type CliResult, runCli, runHere, runProgram } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

type ClientName = 'codex' | 'claude';

interface Place {
  readonly home: string;
  readonly file: string;
  write(args?: readonly string[]): Promise<CliResult>;
  undo(): Promise<CliResult>;
}

const OPENAI = {
  ...(validConfig()['upstreams'] as object[])[0],
  name: 'openai',
  apiStyle: 'openai_responses',
  baseUrl: 'https://api.openai.com/v1',
  auth: 'bearer',
};

/** A configuration with a provider for the client. */
function configFor(client: ClientName): Record<string, unknown> {
  return client === 'codex' ? { ...validConfig(), upstreams: [OPENAI] } : validConfig();
}

const FILES = { codex: '.codex/config.toml', claude: '.claude/settings.json' } as const;

/** A home with a configuration, and with the client's file where `text` is given. */
function place(
  client: ClientName,
  text?: string | Buffer,
  env: Record<string, string> = {},
): Place {
  const home = homeWith(configFor(client));
  const file = join(home, FILES[client]);
  if (text !== undefined) {
    mkdirSync(dirname(file));
    writeFileSync(file, text);
  }
  const at = { home, env: { SVC_DATA_HOME: join(home, 'data'), ...env } };
  const run = (command: string, args: readonly string[] = []) =>
    runHere([command, client, '--yes', ...args], at);
  return { home, file, write: (args) => run('connect', args), undo: () => run('disconnect') };
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}

const TOML = `# mine
model = "gpt-5" # inline
model_provider = "openai"

[tui]
notifications = true
`;
const JSON_TEXT = `{
\t"model": "opus",
\t"env": { "FOO": "1", "ANTHROPIC_BASE_URL": "https://gateway.example" },
\t"permissions": { "allow": ["Bash(ls:*)"] }
}
`;

/** Forms of files that people have, each valid for its client. */
const FORMS: Readonly<Record<ClientName, readonly (readonly [string, string])[]>> = {
  codex: [
    ['usual', TOML],
    ['empty', ''],
    ['without a last line end', TOML.trimEnd()],
    ['with CRLF', TOML.replaceAll('\n', '\r\n')],
    ['with a byte order mark', `\ufeff${TOML}`],
    ['with svc put in by hand', `${TOML}\n[model_providers.svc]\nbase_url = "http://old"\n`],
  ],
  claude: [
    ['usual', JSON_TEXT],
    ['empty', ''],
    ['without anything in it', '{}'],
    ['without a last line end', JSON_TEXT.trimEnd()],
    ['with CRLF', JSON_TEXT.replaceAll('\n', '\r\n')],
    ['with a byte order mark', `\ufeff${JSON_TEXT}`],
    ['with a key helper of its own', '{"apiKeyHelper":"vault read key","env":{}}'],
  ],
};

describe.each(['codex', 'claude'] as const)('%s', (client) => {
  test.each(FORMS[client])('disconnect gives back every byte of a file: %s', async (_, text) => {
    const at = place(client, text);
    const written = await at.write();
    expect([written.code, written.stdout]).toEqual([0, '']);
    expect(written.stderr).toContain(`svc disconnect ${client}`);
    expect(read(at.file)).not.toBe(text);
    expect(read(at.file)).toContain('http://127.0.0.1:8765');
    const undone = await at.undo();
    expect([undone.code, undone.stderr]).toEqual([
      0,
      expect.stringContaining('restored byte for byte'),
    ]);
    expect(read(at.file)).toBe(text);
    expect(readdirSync(join(at.home, 'data', 'client-files'))).toEqual([]);
  });

  test('a file and a folder that were not there are gone again', async () => {
    const at = place(client);
    await at.write();
    expect(statSync(at.file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(at.file)).mode & 0o777).toBe(0o700);
    await at.undo();
    expect(existsSync(dirname(at.file))).toBe(false);
  });

  test('written twice it says the same, and a new port takes the place of the old one', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client, text);
    await at.write();
    const first = read(at.file);
    const again = await at.write();
    expect([read(at.file), again.stderr]).toEqual([first, expect.stringContaining('already')]);
    const config = { ...configFor(client), proxy: { port: 9321 } };
    writeFileSync(join(at.home, '.config/svc/config.json'), JSON.stringify(config));
    await at.write();
    expect(read(at.file)).toBe(first.replaceAll(':8765', ':9321'));
    await at.undo();
    expect(read(at.file)).toBe(text);
  });

  test('a symbolic link stays one, and the mode of the file is kept', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client);
    const real = join(at.home, 'dotfiles', 'real');
    mkdirSync(dirname(real));
    mkdirSync(dirname(at.file));
    writeFileSync(real, text);
    chmodSync(real, 0o640);
    symlinkSync(real, at.file);
    await at.write();
    expect(lstatSync(at.file).isSymbolicLink()).toBe(true);
    expect(read(real)).toContain(':8765');
    expect(statSync(real).mode & 0o777).toBe(0o640);
    await at.undo();
    expect([read(real), statSync(real).mode & 0o777]).toEqual([text, 0o640]);
    expect(lstatSync(at.file).isSymbolicLink()).toBe(true);
    expect(readdirSync(dirname(real))).toEqual(['real']);
  });

  test('a file that moved into a repository of settings is restored there, by either path', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client, text);
    await at.write();
    const real = join(at.home, 'dotfiles', 'real');
    mkdirSync(dirname(real));
    renameSync(at.file, real);
    symlinkSync(real, at.file);
    expect((await at.write()).stderr).toContain('already');
    expect((await at.undo()).stderr).toContain('restored byte for byte');
    expect([read(real), lstatSync(at.file).isSymbolicLink()]).toEqual([text, true]);
    // Moved again, the link leads elsewhere; then the link is a file of its own.
    await at.write();
    const other = `${real}-2`;
    renameSync(real, other);
    rmSync(at.file);
    symlinkSync(other, at.file);
    expect((await at.undo()).stderr).toContain('restored byte for byte');
    expect(read(other)).toBe(text);
    await at.write();
    rmSync(at.file);
    renameSync(other, at.file);
    expect((await at.undo()).stderr).toContain('restored byte for byte');
    expect(read(at.file)).toBe(text);
    // Without a link, the record still leads to it.
    symlinkSync(real, `${at.file}-unused`);
    writeFileSync(real, read(at.file));
    rmSync(at.file);
    symlinkSync(real, at.file);
    await at.write();
    rmSync(at.file);
    expect((await at.undo()).stderr).toContain('restored byte for byte');
    expect(read(real)).toBe(text);
  });

  test('a link that a copy of its file has replaced: both files get their settings back', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client);
    const real = join(at.home, 'dotfiles', 'real');
    for (const file of [real, at.file]) mkdirSync(dirname(file));
    writeFileSync(real, text);
    symlinkSync(real, at.file);
    await at.write();
    const written = read(real);
    rmSync(at.file);
    writeFileSync(at.file, written);
    const { code, stderr } = await at.undo();
    expect([code, stderr]).toEqual([0, expect.stringContaining(real)]);
    expect([read(at.file), read(real)]).toEqual([text, text]);
  });

  test('a file that svc made and that moved stays, without the settings', async () => {
    const at = place(client);
    await at.write();
    const real = join(at.home, 'dotfiles', 'real');
    mkdirSync(dirname(real));
    renameSync(at.file, real);
    symlinkSync(real, at.file);
    expect((await at.undo()).code).toBe(0);
    expect(read(real)).toBe({ codex: '', claude: '{\n}\n' }[client]);
  });

  test('a file that is gone is a failure, and the copy from before stays', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client, text);
    await at.write();
    const folder = join(at.home, 'data', 'client-files');
    const backup = join(folder, readdirSync(folder).find((name) => name.endsWith('.before')) ?? '');
    const settings = read(at.file);
    for (const now of [undefined, client === 'codex' ? 'model = "mine"\n' : '{"model":"mine"}']) {
      rmSync(at.file);
      if (now !== undefined) writeFileSync(at.file, now);
      // oxlint-disable-next-line no-await-in-loop -- One state after the other.
      const undone = await at.undo();
      expect([undone.code, undone.stderr]).toEqual([1, expect.stringContaining(backup)]);
      expect(read(backup)).toBe(text);
      writeFileSync(at.file, settings);
    }
    writeFileSync(at.file, client === 'codex' ? '' : '{}');
    rmSync(backup);
    expect((await at.undo()).code).toBe(0);
  });

  test('a file that is not valid is left alone, and told', async () => {
    const at = place(client, '{ not = valid\n[');
    const { code, stderr } = await at.write();
    expect([code, stderr]).toEqual([1, expect.stringContaining('not')]);
    expect(read(at.file)).toBe('{ not = valid\n[');
    const binary = place(client, Buffer.from([0x7b, 0xff, 0x7d]));
    expect((await binary.write()).stderr).toContain('UTF-8');
  });

  test('what else changed since stays, and svc is out', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client, text);
    await at.write();
    const more = { codex: '\n[mcp_servers.foo]\ncommand = "bar"\n', claude: '' }[client];
    const changed = read(at.file).replace('"opus"', '"haiku"') + more;
    writeFileSync(at.file, changed);
    const { code, stderr } = await at.undo();
    expect([code, stderr]).toEqual([0, expect.stringContaining('its other changes stay')]);
    const wanted = text.replace('"opus"', '"haiku"') + more;
    const parsed = client === 'codex' ? String : (json: string) => JSON.parse(json) as unknown;
    expect(parsed(read(at.file))).toEqual(parsed(wanted));
  });

  test('what somebody changed in it is not taken out blindly', async () => {
    const at = place(client, FORMS[client][0]?.[1]);
    await at.write();
    const changed = read(at.file).replaceAll(':8765', ':1234');
    writeFileSync(at.file, changed);
    const undone = await at.undo();
    expect([undone.code, undone.stderr]).toEqual([
      1,
      expect.stringContaining('Remove them yourself'),
    ]);
    expect((await at.write()).code).toBe(1);
    expect(read(at.file)).toBe(changed);
    // Taken out by hand it is out.
    writeFileSync(at.file, FORMS[client][0]?.[1] ?? '');
    expect((await at.undo()).stderr).toContain('has no settings of svc');
    expect((await at.undo()).code).toBe(0);
  });

  test('T6, R28: no token and no key is written; record and backup are private', async () => {
    const at = place(client, FORMS[client][0]?.[1], { ANTHROPIC_API_KEY: PROVIDER_KEY });
    const { stderr } = await at.write();
    for (const text of [read(at.file), stderr]) {
      expect(text).not.toContain(LOCAL_TOKEN);
      expect(text).not.toContain(PROVIDER_KEY);
    }
    const folder = join(at.home, 'data', 'client-files');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const names = readdirSync(folder);
    expect(names.length).toBe(2);
    for (const name of names) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });
});

test.each([
  [
    'after the block’s key of the top level',
    /(model_provider = "svc"\n)/,
    '$1model = "gpt-5.5"\nmodel_reasoning_effort = "high"\n',
  ],
  ['in front of it', /(# >>> svc.*\n)/, '$1model = "gpt-5.5"\n'],
  [
    'and a table before the end mark',
    /(\n# <<< svc)/,
    '\n[projects."/a"]\ntrust_level = "trusted"$1',
  ],
])('codex: keys that /model writes into the block stay: %s', async (_, where, keys) => {
  const text = '[tui]\nnotifications = true\n';
  const at = place('codex', text);
  await at.write();
  const chosen = read(at.file).replace(where, keys);
  expect(chosen).not.toBe(read(at.file));
  const { model_provider: _1, model_providers: _2, ...wanted } = parse(chosen);
  writeFileSync(at.file, chosen);
  expect((await at.undo()).stderr).toContain('its other changes stay');
  expect(parse(read(at.file))).toEqual(wanted);
  expect(read(at.file)).not.toContain('svc');
  // A second write, such as for another port, keeps them too.
  writeFileSync(at.file, text);
  await at.write();
  writeFileSync(at.file, chosen);
  const config = { ...configFor('codex'), proxy: { port: 9321 } };
  writeFileSync(join(at.home, '.config/svc/config.json'), JSON.stringify(config));
  expect((await at.write()).code).toBe(0);
  expect(parse(read(at.file))).toEqual(parse(chosen.replaceAll(':8765', ':9321')));
  await at.undo();
  expect(parse(read(at.file))).toEqual(wanted);
});

test('codex: a key that somebody added to svc’s own table is not made a key of another', async () => {
  const at = place('codex', 'model = "gpt-5"\n');
  await at.write();
  const changed = read(at.file).replace(
    '[model_providers.svc]\n',
    '[model_providers.svc]\nstream_max_retries = 9\n',
  );
  writeFileSync(at.file, changed);
  expect((await at.undo()).stderr).toContain('Remove them yourself');
  expect(read(at.file)).toBe(changed);
});

test('codex: the file says this provider, and its token command prints the token', async () => {
  const at = place('codex', TOML);
  await at.write();
  const toml = parse(read(at.file)) as {
    model_provider: string;
    model_providers: { svc: { base_url: string; auth: { command: string; args: string[] } } };
  };
  expect(toml).toMatchObject({
    model: 'gpt-5',
    model_provider: 'svc',
    tui: { notifications: true },
  });
  const { base_url: base, auth } = toml.model_providers.svc;
  expect(base).toBe('http://127.0.0.1:8765/v1');
  const { stdout } = await runProgram([auth.command, ...auth.args], { home: at.home });
  expect(stdout).toBe(`${LOCAL_TOKEN}\n`);
});

test.each(['claude', 'codex'] as const)(
  'with %s connected, svc status says what starts the proxy',
  async (client) => {
    // A port of its own: the other tests leave a proxy on the usual one.
    const home = homeWith({ ...configFor(client), proxy: { port: await freePort() } });
    const svc = (...args: readonly string[]) =>
      runHere(args, { home, env: { SVC_DATA_HOME: join(home, 'data') } });
    await svc('connect', client, '--yes');
    const { code, stderr } = await svc('status');
    const title = { claude: 'Claude Code', codex: 'Codex' }[client];
    const said = `svc is not running now. ${title} starts it when a session begins. To start it now: svc start --detach\n`;
    expect([code, stderr]).toEqual([1, said]);
    await svc('disconnect', client, '--yes');
    const after = await svc('status');
    expect(after.stderr).toBe('svc is not running. Start it with: svc start\n');
  },
);

test('claude: the helper prints the token, also of another configuration folder', async () => {
  const home = homeWith(validConfig(), "conf ig'/svc");
  const env = { SVC_CONFIG_HOME: join(home, "conf ig'/svc"), SVC_DATA_HOME: join(home, 'data') };
  await runHere(['connect', 'claude', '--yes'], { home, env });
  const settings = JSON.parse(read(join(home, FILES.claude))) as {
    apiKeyHelper: string;
    env: Record<string, string>;
  };
  expect(settings.env).toEqual({
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:8765',
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    ENABLE_TOOL_SEARCH: 'true',
    ANTHROPIC_API_KEY: '',
    ANTHROPIC_AUTH_TOKEN: '',
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  });
  const { stdout } = await runProgram(['sh', '-c', settings.apiKeyHelper], { home });
  expect(stdout).toBe(`${LOCAL_TOKEN}\n`);
});

describe('claude: the search for MCP tools', () => {
  const toolSearchIn = (file: string): unknown => {
    const { env } = JSON.parse(read(file)) as { env: Record<string, string> };
    return env['ENABLE_TOOL_SEARCH'];
  };

  test('what the person set stays, in the file or in the shell, and after disconnect', async () => {
    const text = '{"env":{"ENABLE_TOOL_SEARCH":"auto:5"}}';
    const at = place('claude', text);
    await at.write();
    expect(toolSearchIn(at.file)).toBe('auto:5');
    await at.undo();
    expect(read(at.file)).toBe(text);
    const inShell = place('claude', '{}', { ENABLE_TOOL_SEARCH: 'false' });
    await inShell.write();
    expect(toolSearchIn(inShell.file)).toBeUndefined();
  });

  test('another provider than Anthropic itself is not asked for it', async () => {
    const at = place('claude');
    const upstreams = [
      { ...(validConfig()['upstreams'] as object[])[0], baseUrl: 'https://gateway.example.com' },
    ];
    const file = join(at.home, '.config/svc/config.json');
    writeFileSync(file, JSON.stringify({ ...validConfig(), upstreams }));
    await at.write();
    expect(toolSearchIn(at.file)).toBeUndefined();
  });
});

test.each([
  ['claude', 'anthropic_messages', [OPENAI]],
  ['codex', 'openai_responses', validConfig()['upstreams'] as object[]],
] as const)(
  '%s is not connected while no provider serves its API: none of its sessions would work',
  async (client, dialect, upstreams) => {
    const at = place(client, client === 'codex' ? TOML : JSON_TEXT);
    homeFile(at.home, { ...validConfig(), upstreams });
    const { code, stderr } = await at.write();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`uses ${dialect}, and svc has no provider for that API.`),
    ]);
    expect(stderr).toContain(`svc setup --yes --login ${client}`);
    expect(read(at.file)).toBe(client === 'codex' ? TOML : JSON_TEXT);
  },
);

describe('claude with a login: a hook starts the proxy', () => {
  interface Settings {
    readonly hooks: { readonly SessionStart: { hooks: { command: string; type: string }[] }[] };
    readonly apiKeyHelper?: string;
  }
  const own = { hooks: [{ type: 'command', command: 'echo mine' }] };

  async function withLogin(at: Place): Promise<void> {
    const upstreams = [
      {
        name: 'claude-login',
        apiStyle: 'anthropic_messages',
        baseUrl: 'https://api.anthropic.com',
        auth: 'client',
      },
    ];
    const proxy = { port: await freePort() };
    const file = join(at.home, '.config/svc/config.json');
    writeFileSync(file, JSON.stringify({ ...validConfig(), proxy, upstreams }));
  }

  test('at the start of a session the proxy runs, and the model hears nothing of it', async () => {
    const at = place('claude');
    await withLogin(at);
    const written = await at.write();
    expect([written.code, written.stderr]).toEqual([
      0,
      expect.stringContaining('starts the proxy'),
    ]);
    const { hooks, apiKeyHelper } = JSON.parse(read(at.file)) as Settings;
    expect(apiKeyHelper).toBeUndefined();
    const [hook] = hooks.SessionStart.flatMap((one) => one.hooks);
    expect(hook?.type).toBe('command');
    for (const _ of ['where none runs', 'where one runs']) {
      const run = await runProgram(['sh', '-c', hook?.command ?? ''], { home: at.home });
      expect(run).toMatchObject({ code: 0, stdout: '' });
    }
    const options = { home: at.home, env: { SVC_DATA_HOME: join(at.home, 'data') } };
    const status = await runHere(['status', '--json'], options);
    expect(JSON.parse(status.stdout)).toHaveLength(1);
    expect((await runCli(['stop'], options)).code).toBe(0);
  });

  test.each([
    ['no hooks', '{\n  "model": "opus"\n}\n'],
    ['a hook of its own there', JSON.stringify({ hooks: { SessionStart: [own], Stop: [own] } })],
    ['an empty list', '{"hooks":{"SessionStart":[]}}'],
  ])('the person’s hooks stay, and disconnect takes out this one alone: %s', async (_, text) => {
    const at = place('claude', text);
    await withLogin(at);
    await at.write();
    await at.write();
    const { hooks } = JSON.parse(read(at.file)) as Settings;
    const before = (JSON.parse(text) as Partial<Settings>).hooks?.SessionStart ?? [];
    expect(hooks.SessionStart).toHaveLength(before.length + 1);
    expect(hooks.SessionStart.slice(0, -1)).toEqual(before);
    // The person adds one behind it.
    const changed = JSON.parse(read(at.file)) as Settings;
    changed.hooks.SessionStart.push(own);
    writeFileSync(at.file, JSON.stringify(changed));
    const undone = await at.undo();
    expect([undone.code, undone.stderr]).toEqual([
      0,
      expect.stringContaining('other changes stay'),
    ]);
    const after = JSON.parse(read(at.file)) as Settings;
    expect(after.hooks.SessionStart).toEqual([...before, own]);
  });

  test('hooks that are no list are left alone, with a clear error', async () => {
    const text = '{"hooks":{"SessionStart":{}}}';
    const at = place('claude', text);
    await withLogin(at);
    const { code, stderr } = await at.write();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('hooks.SessionStart is not a list'),
    ]);
    expect(read(at.file)).toBe(text);
  });
});

test('CODEX_HOME and CLAUDE_CONFIG_DIR name the folder that is changed', async () => {
  for (const [client, variable] of [
    ['codex', 'CODEX_HOME'],
    ['claude', 'CLAUDE_CONFIG_DIR'],
  ] as const) {
    const at = place(client, FORMS[client][0]?.[1]);
    const folder = join(at.home, 'no', 'such');
    const env = { SVC_DATA_HOME: join(at.home, 'data'), [variable]: folder };
    const run = (command: string) => runHere([command, client, '--yes'], { home: at.home, env });
    expect((await run('connect')).stderr).toContain(folder);
    expect(readdirSync(folder)).toHaveLength(1);
    expect(read(at.file)).toBe(FORMS[client][0]?.[1]);
    expect((await run('disconnect')).stderr).toContain('is deleted');
    expect(existsSync(join(at.home, 'no'))).toBe(false);
  }
});

test('a write that was cut off before the file changed can be undone and done again', async () => {
  const at = place('codex', TOML);
  await at.write();
  const config = { ...validConfig(), proxy: { port: 9321 } };
  writeFileSync(join(at.home, '.config/svc/config.json'), JSON.stringify(config));
  const before = read(at.file);
  await at.write();
  // The record knows the new block only once the file has it: as after a kill in between.
  const folder = join(at.home, 'data', 'client-files');
  const name = readdirSync(folder).find((one) => one.endsWith('.json')) ?? '';
  const record = JSON.parse(read(join(folder, name))) as { changes: { toml: object }[] };
  const [newest] = record.changes;
  const older = JSON.parse(JSON.stringify(newest).replaceAll(':9321', ':8765')) as { toml: object };
  const both = { ...record, changes: [newest, { ...older, hash: '' }] };
  writeFileSync(join(folder, name), JSON.stringify(both));
  writeFileSync(at.file, before);
  expect((await at.undo()).code).toBe(0);
  expect(read(at.file)).toBe(TOML);
});

test('without its record a block is told, not doubled', async () => {
  const at = place('codex', TOML);
  await at.write();
  const env = { SVC_DATA_HOME: join(at.home, 'other') };
  for (const command of ['connect', 'disconnect']) {
    const { code, stderr } = await runHere([command, 'codex', '--yes'], { home: at.home, env });
    expect([code, stderr]).toEqual([1, expect.stringContaining('delete the lines from')]);
  }
});

test('a program in the cache of npx is written with a warning', async () => {
  const at = place('claude');
  const cache = join(at.home, '_npx');
  symlinkSync(join(dirname(BIN), '..'), cache);
  const env = { SVC_DATA_HOME: join(at.home, 'data') };
  const bin = join(cache, 'bin', 'svc.js');
  const words = [process.execPath, bin, 'connect', 'claude', '--yes'];
  const { code, stderr } = await runProgram(words, { home: at.home, env });
  expect([code, stderr]).toEqual([0, expect.stringContaining('npm install -g svc-local-proxy')]);
});

describe.each(['codex', 'claude'] as const)('without a terminal: %s', (client) => {
  test('connect shows the change, changes nothing and asks for --yes', async () => {
    const text = FORMS[client][0]?.[1] ?? '';
    const at = place(client, text);
    const env = { SVC_DATA_HOME: join(at.home, 'data') };
    const run = (...args: readonly string[]) => runHere(args, { home: at.home, env });
    const shown = await run('connect', client);
    expect([shown.code, shown.stdout]).toEqual([2, '']);
    expect(shown.stderr).toContain(at.file);
    expect(shown.stderr).toContain('http://127.0.0.1:8765');
    expect(shown.stderr).toContain('--yes');
    // The values that the settings replace belong to the person.
    expect(shown.stderr).not.toContain('gateway.example');
    expect(read(at.file)).toBe(text);
    await at.write();
    const settings = read(at.file);
    const kept = await run('disconnect', client);
    expect([kept.code, kept.stderr]).toEqual([2, expect.stringContaining('--yes')]);
    expect(read(at.file)).toBe(settings);
    // Where nothing would change nobody is asked.
    expect((await run('connect', client)).code).toBe(0);
    await at.undo();
    expect((await run('disconnect', client)).code).toBe(0);
  });
});

test('the preview hides the token in an address', async () => {
  const at = place('claude');
  const upstreams = [
    {
      name: 'claude-login',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'client',
    },
  ];
  homeFile(at.home, { ...validConfig(), upstreams });
  const shown = await runHere(['connect', 'claude'], { home: at.home });
  expect(shown.stderr).toContain('http://127.0.0.1:8765/t/…');
  expect(shown.stderr).not.toContain('svc_path_');
});

test('a client that svc cannot connect is refused with the reason', async () => {
  const at = place('claude');
  for (const [name, reason] of [
    ['copilot', 'environment variables'],
    ['no-such-client', 'claude, codex'],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other.
    const { code, stderr } = await runHere(['connect', name], { home: at.home });
    expect([code, stderr]).toEqual([2, expect.stringContaining(reason)]);
  }
});

test('print-config only prints', async () => {
  const at = place('claude', '{}');
  const printed = await runHere(['print-config', 'claude', '--write'], { home: at.home });
  expect([printed.code, printed.stdout]).toEqual([2, '']);
  expect(read(at.file)).toBe('{}');
});

describe('svc config token --start', () => {
  async function homeOnFreePort(): Promise<string> {
    const proxy = { ...(validConfig()['proxy'] as object), port: await freePort() };
    return homeWith({ ...validConfig(), proxy });
  }

  test('starts the proxy where none runs, and prints the token alone', async () => {
    const home = await homeOnFreePort();
    const first = await runHere(['config', 'token', '--start'], { home });
    expect([first.code, first.stdout]).toEqual([0, `${LOCAL_TOKEN}\n`]);
    const status = await runHere(['status', '--json'], { home });
    const [running] = JSON.parse(status.stdout) as { pid: number }[];
    expect(await runHere(['config', 'token', '--start'], { home })).toMatchObject({
      code: 0,
      stdout: `${LOCAL_TOKEN}\n`,
      stderr: '',
    });
    const again = await runHere(['status', '--json'], { home });
    expect(JSON.parse(again.stdout)).toMatchObject([{ pid: running?.pid }]);
    expect((await runCli(['stop'], { home })).code).toBe(0);
  });

  test('asked twice at once it starts one proxy', async () => {
    const home = await homeOnFreePort();
    const asked = () => runHere(['config', 'token', '--start'], { home });
    const both = await Promise.all([asked(), asked()]);
    expect(both.map(({ code, stdout }) => [code, stdout])).toEqual([
      [0, `${LOCAL_TOKEN}\n`],
      [0, `${LOCAL_TOKEN}\n`],
    ]);
    const { stdout } = await runHere(['status', '--json'], { home });
    expect(JSON.parse(stdout)).toHaveLength(1);
    await runCli(['stop'], { home });
  });

  test('a start that fails says why on stderr, and no token is printed', async () => {
    const home = await homeOnFreePort();
    const config = JSON.parse(readFileSync(join(home, '.config/svc/config.json'), 'utf8')) as {
      upstreams: object[];
    };
    const upstreams = [{ ...config.upstreams[0], providerKey: { env: 'NOT_SET_HERE' } }];
    homeFile(home, { ...config, upstreams });
    const from = performance.now();
    const { code, stdout, stderr } = await runCli(['config', 'token', '--start'], { home });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('NOT_SET_HERE');
    expect(stderr).toContain('could not be started for this client');
    // A limit that finds what hangs: svc itself waits 4.5 seconds at most.
    expect(performance.now() - from).toBeLessThan(30_000);
  });

  test.each([
    ['another program', {}],
    ['the proxy of another configuration', { 'x-svc-local-proxy': '0.1.2' }],
  ])(
    'no token is printed while %s has the port, because the client would send it there',
    async (_, headers) => {
      const home = await homeOnFreePort();
      const { proxy } = JSON.parse(readFileSync(join(home, '.config/svc/config.json'), 'utf8')) as {
        proxy: { port: number };
      };
      const stranger = createServer((_request, response) =>
        response.writeHead(200, headers).end('{}'),
      );
      stranger.listen(proxy.port, '127.0.0.1');
      onTestFinished(() => void stranger.close());
      await once(stranger, 'listening');
      const { code, stdout, stderr } = await runHere(['config', 'token', '--start'], { home });
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('could not be started for this client');
    },
  );

  test('the command names the folders that a new proxy must use', async () => {
    const codex = place('codex');
    expect((await codex.write()).code).toBe(0);
    expect(readFileSync(codex.file, 'utf8')).toMatch(
      /SVC_DATA_HOME=.*"config", "token", "--start"/,
    );
  });

  test.skipIf(process.platform !== 'linux')(
    'a proxy that the client starts uses the data folder of XDG_DATA_HOME',
    async () => {
      const home = await homeOnFreePort();
      const env = { XDG_DATA_HOME: join(home, "own data'") };
      expect((await runHere(['connect', 'claude', '--yes'], { home, env })).code).toBe(0);
      const { apiKeyHelper } = JSON.parse(read(join(home, FILES.claude))) as {
        apiKeyHelper: string;
      };
      const { stdout } = await runProgram(['sh', '-c', apiKeyHelper], { home });
      expect(stdout).toBe(`${LOCAL_TOKEN}\n`);
      expect((await runCli(['stop'], { home, env })).code).toBe(0);
      expect(existsSync(join(env.XDG_DATA_HOME, 'svc', 'state.db'))).toBe(true);
      expect(existsSync(join(home, '.local', 'share', 'svc'))).toBe(false);
      const usual = { XDG_DATA_HOME: join(home, '.local', 'share') };
      await runHere(['connect', 'claude', '--yes'], { home, env: usual });
      expect(read(join(home, FILES.claude))).not.toContain('XDG_DATA_HOME');
    },
  );
});

function homeFile(home: string, config: object): void {
  writeFileSync(join(home, '.config/svc/config.json'), JSON.stringify(config), { mode: 0o600 });
}

test.each([
  ['ANTHROPIC_API_KEY', 'in which these settings empty $ANTHROPIC_API_KEY: without a running'],
  ['MY_KEY', 'which may lack $MY_KEY. Store'],
])('connect claude says what becomes of a key in the variable %s', async (variable, said) => {
  const [upstream] = validConfig()['upstreams'] as object[];
  const upstreams = [{ ...upstream, providerKey: { env: variable } }];
  const home = homeWith({ ...validConfig(), upstreams });
  const env = { SVC_DATA_HOME: join(home, 'data'), [variable]: PROVIDER_KEY };
  const { code, stderr } = await runHere(['connect', 'claude', '--yes'], { home, env });
  expect([code, stderr]).toEqual([0, expect.stringContaining(said)]);
});
