import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { screen as prompts } from '@inquirer/testing/vitest';
import { expect, test } from 'vitest';
import { usedHome } from '../support/used-home.ts';
import { answer, asked, choose, find, open } from '../support/wizard-stage.ts';

/** What the wizard does beside the configuration: logins, clients, earlier sessions. */

const TYPED_KEY = 'sk-typed-CANARY-0123456789abcdef';

test('from nothing to a wired client and imported sessions', async () => {
  const { home, environment } = usedHome(['claude', 'codex']);
  const session = open(home, environment);
  await find('anthropic', 'anthropic');
  await answer('The key of anthropic:', TYPED_KEY);
  // No provider can be reached here.
  await choose('What now?', 'Keep it anyway');
  await answer('Where should memories be stored?');
  await answer('Cache tools and system prompt');
  // Codex speaks another API: it is not offered for this provider.
  await choose('Should Claude Code use svc from now on?', 'Yes');
  await asked('Import 1 session');
  expect(session.notes()).toContain('Found 1 session of Claude Code in 1 project');
  expect(session.notes()).toContain('Secrets are masked (0 in these)');
  prompts.keypress('enter');
  await asked('Write ');
  expect(session.notes()).toContain('Clients    svc will change the settings of Claude Code');
  expect(existsSync(join(home, '.claude/settings.json'))).toBe(false);
  prompts.keypress('enter');
  expect(await session.ended).toBe(0);
  const settings = JSON.parse(readFileSync(join(home, '.claude/settings.json'), 'utf8')) as object;
  expect(settings).toMatchObject({
    apiKeyHelper: expect.stringContaining('config token --start'),
    env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:8765' },
  });
  expect(session.notes()).toMatch(
    /Imported \d+ of \d+ memories in 1 session of claude-code: \d+ new/,
  );
  expect(session.notes()).toMatch(/^Next: claude$/m);
  expect(existsSync(join(home, '.codex'))).toBe(false);
});

test('a login is offered beside keys, states its risk, and is off unless the person says yes', async () => {
  const { home, environment } = usedHome();
  writeFileSync(join(home, '.claude/.credentials.json'), '{"claudeAiOauth":{}}', { mode: 0o600 });
  const session = open(home, environment);
  await asked('Which provider?');
  expect(prompts.getScreen()).toMatch(/^❯ Claude subscription.*\(you are logged in\)/m);
  await choose('Which provider?', 'Claude subscription');
  await choose('How should Claude Code get its memories?', 'Through the proxy');
  // Enter alone says no, and the question comes again.
  await answer('Pass the login of Claude Code on to https://api.anthropic.com?');
  await choose('Which provider?', 'Claude subscription');
  await choose('How should Claude Code get its memories?', 'Through the proxy');
  expect(session.notes()).toContain('may limit or close an account');
  await answer('Pass the login of Claude Code on to https://api.anthropic.com?', 'y');
  await answer('Where should memories be stored?');
  await choose('Should Claude Code use svc from now on?', 'Yes');
  await answer('Import 1 session', 'n');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config().upstreams).toEqual([
    {
      name: 'claude-login',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'client',
    },
  ]);
  const settings = readFileSync(join(home, '.claude/settings.json'), 'utf8');
  expect(settings).toContain('/t/svc_path_');
  expect(settings).not.toContain('apiKeyHelper');
  // Its hook starts the proxy.
  expect(session.notes()).toMatch(/^Next: claude$/m);
  expect(session.notes()).toContain('api.anthropic.com, the login of its client');
  expect(session.notes()).not.toContain('Imported ');
});

test.each([
  ['claude', 'Claude', 'Claude Code', '.claude/settings.json'],
  ['codex', 'ChatGPT', 'Codex', '.codex/hooks.json'],
])(
  'for the login of %s hooks come first: no provider, no risk, and its own file has them',
  async (program, plan, title, file) => {
    const { home, environment } = usedHome([program]);
    const session = open(home, environment);
    await find(plan, `${plan}.*the login of ${title}`);
    await asked(`How should ${title} get its memories?`);
    expect(prompts.getScreen()).toMatch(/^❯ Through its own hooks: its login never reaches svc/m);
    expect(prompts.getScreen()).toContain('shows no requests, costs or quota');
    await answer(`How should ${title} get its memories?`);
    await answer('Where should memories be stored?');
    await answer('Import 1 session', 'n');
    await asked('Write ');
    expect(session.notes()).toContain(`Hooks      svc will add its hooks to ${title}`);
    expect(existsSync(join(home, file))).toBe(false);
    prompts.keypress('enter');
    expect(await session.ended).toBe(0);
    expect(session.config().upstreams).toEqual([]);
    expect(readFileSync(join(home, file), 'utf8')).toContain(` hook ${program} UserPromptSubmit`);
    expect(session.notes()).not.toContain('may limit or close an account');
    expect(session.notes()).not.toContain('cannot continue without svc');
    expect(session.notes()).not.toMatch(/warn/i);
    expect(session.notes()).toMatch(new RegExp(`^Next: ${program}$`, 'm'));
  },
);

test('a client that gets hooks is not offered the proxy beside them', async () => {
  const { home, environment } = usedHome();
  const session = open(home, { ...environment, ANTHROPIC_API_KEY: TYPED_KEY });
  await find('anthropic', 'anthropic \\(\\$ANTHROPIC');
  await choose('Where is the key of anthropic?', 'In \\$ANTHROPIC_API_KEY');
  await choose('What now?', 'Keep it anyway');
  await answer('Where should memories be stored?');
  await answer('Cache tools and system prompt');
  await choose('Should Claude Code use svc from now on?', 'Yes');
  await answer('Import 1 session', 'n');
  await choose('Write ', 'First add another provider');
  await choose('What do you want to change?', 'Add or change a provider');
  await find('Claude', 'Claude subscription');
  await answer('How should Claude Code get its memories?');
  await choose('What do you want to change?', 'Finish');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  const settings = readFileSync(join(home, '.claude/settings.json'), 'utf8');
  expect(settings).toContain(' hook claude Stop');
  expect(settings).not.toContain('ANTHROPIC_BASE_URL');
});

test('a client whose file cannot be changed is told, the rest is done, and the exit code says so', async () => {
  const { home, environment } = usedHome(['claude', 'codex']);
  writeFileSync(join(home, '.claude/settings.json'), '{ // mine\n}');
  const session = open(home, {
    ...environment,
    ANTHROPIC_API_KEY: TYPED_KEY,
    OPENAI_API_KEY: 'sk-x',
  });
  await find('anthropic', 'anthropic \\(\\$ANTHROPIC');
  await choose('Where is the key of anthropic?', 'In \\$ANTHROPIC_API_KEY');
  await choose('What now?', 'Keep it anyway');
  await answer('Where should memories be stored?');
  await answer('Cache tools and system prompt');
  await choose('Should Claude Code use svc from now on?', 'Yes');
  await answer('Import 1 session', 'n');
  // Another provider serves another client, which is then offered too.
  await choose('Write ', 'First add another provider');
  await choose('What do you want to change?', 'Add or change a provider');
  await find('openai', 'openai \\(\\$OPENAI');
  await choose('Where is the key of openai?', 'In \\$OPENAI_API_KEY');
  await choose('What now?', 'Keep it anyway');
  await asked('What do you want to change?');
  // The end of the list is on the screen without scrolling.
  expect(prompts.getScreen()).toMatch(/Add or change a provider[^]*Finish: show the summary/);
  await choose('What do you want to change?', 'Finish');
  await choose('Should Claude Code and Codex use svc from now on?', 'Yes');
  await answer('Write ');
  expect(await session.ended).toBe(1);
  expect(session.notes()).toContain('comments or trailing commas');
  expect(session.notes()).toContain('Claude Code does not use svc yet.');
  expect(readFileSync(join(home, '.codex/config.toml'), 'utf8')).toContain(
    'model_provider = "svc"',
  );
  expect(session.notes()).toMatch(/^Next: codex$/m);
});

test('of several clients a person chooses any', async () => {
  const { home, environment } = usedHome(['claude', 'codex', 'qwen', 'opencode']);
  const session = open(home, { ...environment, OPENAI_API_KEY: 'sk-x' });
  await find('openai', 'openai \\(\\$OPENAI');
  await choose('Where is the key of openai?', 'In \\$OPENAI_API_KEY');
  await choose('What now?', 'Keep it anyway');
  await answer('Where should memories be stored?');
  await choose('use svc from now on?', 'Some of them');
  await answer('Should Codex use svc?');
  await answer('Should opencode use svc?', 'n');
  await answer('Should Qwen Code use svc?');
  await answer('Import 1 session', 'n');
  await asked('Write ');
  expect(session.notes()).toContain('svc will change the settings of Codex and Qwen Code');
  prompts.keypress('enter');
  expect(await session.ended).toBe(0);
  expect(existsSync(join(home, '.codex/config.toml'))).toBe(true);
  expect(existsSync(join(home, '.qwen/settings.json'))).toBe(true);
});

test('before the import it shows what recall would have added to one of the last prompts, and leaves nothing behind', async () => {
  const { home, environment } = usedHome();
  const sessions = [
    ['Which port does the staging database use?', 'The staging database listens on port 6431.'],
    ['Please rename the folder of the parser.', 'The parser lies in src/grammar from now on.'],
    ['Write a changelog entry.', 'The changelog names the new flag of the exporter.'],
    ['Add a retry to the uploader.', 'The uploader tries three times before it gives up.'],
    ['The staging database refuses connections on its port.', 'The firewall was closed.'],
  ] as const;
  for (const [number, [asked_, answered]] of sessions.entries()) {
    const sessionId = `00000000-0000-4000-8000-00000000010${number}`;
    const line = (type: string, content: unknown, minute: number) =>
      JSON.stringify({
        type,
        sessionId,
        cwd: join(home, 'shop'),
        uuid: `${sessionId}-${minute}`,
        timestamp: `2026-11-${10 + number}T12:0${minute}:00Z`,
        message: { role: type, content },
      });
    writeFileSync(
      join(home, '.claude/projects/-work-app', `${sessionId}.jsonl`),
      `${line('user', asked_, 0)}\n${line('assistant', [{ type: 'text', text: answered }], 1)}\n`,
    );
  }
  const session = open(home, environment);
  await choose('Which provider?', 'None: continue without a provider');
  await answer('Where should memories be stored?');
  await asked('Import 6 sessions');
  expect(session.notes()).toMatch(
    /svc would have added to your prompt of 2026-11-14 .*: The staging database refuses/,
  );
  expect(session.notes()).toMatch(
    /2026-11-10 .* agent: The staging database listens on port 6431\./,
  );
  expect(existsSync(join(home, 'data'))).toBe(false);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});
