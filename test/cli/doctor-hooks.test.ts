import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { checkHooks } from '../../src/cli/doctor/doctor-hooks.ts';
import { BIN, runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

/** Hooks of svc that run twice, in a second client, or not at all. */

vi.setConfig({ testTimeout: 90_000 });

const PLUGIN_ON = { 'svc-memory@svc': true };

/** A home with hooks that `svc connect` wrote, where `svc` and these programs are in the search path. */
async function hooked(clients: readonly string[], programs: readonly string[] = []) {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const bin = join(home, 'bin');
  mkdirSync(bin);
  symlinkSync(BIN, join(bin, 'svc'));
  for (const program of programs) {
    writeFileSync(join(bin, program), '#!/bin/sh\n');
    chmodSync(join(bin, program), 0o755);
  }
  const env = { PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin` };
  const svc = (...args: string[]) => runHere(args, { home, env });
  for (const client of clients) await svc('connect', client, '--hooks', '--yes');
  /** What is wrong. */
  const checks = (folder = '/') =>
    checkHooks({ HOME: home, ...env }, folder).filter(({ level }) => level !== 'ok');
  return { home, bin, svc, checks };
}

const EVENTS = [
  'session_start',
  'user_prompt_submit',
  'post_tool_use',
  'pre_compact',
  'stop',
  'session_end',
];

/** As Codex 0.169.0 writes it to its config.toml where a person trusts hooks. */
function trust(home: string, keys: readonly string[], name = 'config.toml'): void {
  const tables = keys.map((key) => `[hooks.state."${key}"]\ntrusted_hash = "sha256:00"\n`);
  mkdirSync(join(home, '.codex'), { recursive: true });
  writeFileSync(join(home, '.codex', name), tables.join('\n'));
}

/** The places of svc's hooks in a file of their own. */
function placesIn(home: string, events: readonly string[] = EVENTS): readonly string[] {
  return events.map((event) => `${join(home, '.codex/hooks.json')}:${event}:0:0`);
}

function edit(path: string, changes: object): void {
  const before = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...before, ...changes }));
}

test('hooks that are there once, with their program, are no finding', async () => {
  const { home, checks } = await hooked(
    ['claude', 'codex', 'copilot', 'opencode', 'pi'],
    ['copilot'],
  );
  trust(home, placesIn(home));
  expect(checks()).toEqual([]);
});

test.each(['no configuration', 'a configuration without a provider'])(
  'with hooks alone doctor finds nothing wrong: %s',
  async (name) => {
    const { home, svc } = await hooked(['claude', 'codex'], ['claude', 'codex']);
    trust(home, placesIn(home));
    const folder = join(home, '.config', 'svc');
    rmSync(folder, { recursive: true });
    if (name !== 'no configuration') {
      mkdirSync(folder, { mode: 0o700 });
      const { upstreams: _, ...config } = validConfig();
      const text = JSON.stringify({ ...config, proxy: { port: 0 }, upstreams: [] });
      writeFileSync(join(folder, 'config.json'), text, { mode: 0o600 });
    }
    mkdirSync(join(home, '.claude'), { recursive: true });
    writeFileSync(join(home, '.claude', '.credentials.json'), '{"claudeAiOauth":{}}');
    const { stdout, code } = await svc('doctor', '--json', '--offline');
    const { checks } = JSON.parse(stdout) as {
      checks: { level: string; found: string; subject: string }[];
    };
    expect(checks.filter(({ level }) => level !== 'ok')).toEqual([]);
    expect(code).toBe(0);
    const said = checks.filter(({ subject }) => ['Claude Code', 'Codex'].includes(subject));
    expect(said.map(({ found }) => found)).toEqual([
      'gets memory through its hooks',
      'gets memory through its hooks',
    ]);
  },
);

test('the hooks of Claude Code in its settings and as plugin are told once, with the command', async () => {
  const { home, svc, checks } = await hooked(['claude']);
  const path = join(home, '.claude/settings.json');
  edit(path, { enabledPlugins: { 'svc-memory@svc': false, 'other@svc': true } });
  expect(checks()).toEqual([]);
  edit(path, { enabledPlugins: PLUGIN_ON });
  const { stdout } = await svc('doctor', '--json', '--offline');
  const told = (JSON.parse(stdout) as { checks: { found: string }[] }).checks.filter(({ found }) =>
    found.includes('each event starts svc twice'),
  );
  expect(told).toEqual([
    expect.objectContaining({
      level: 'warning',
      subject: 'Claude Code',
      fix: 'to keep the plugin: svc disconnect claude',
    }),
  ]);
  await svc('disconnect', 'claude', '--yes');
  expect(readFileSync(path, 'utf8')).toContain('svc-memory@svc');
  expect(checks()).toEqual([]);
});

test('the same for Codex, whose plugins are in its config.toml', async () => {
  const { home, checks } = await hooked(['codex']);
  const toml = join(home, '.codex/config.toml');
  const plugin = 'svc-memory@svc:hooks/hooks.json:stop:0:0';
  trust(home, [...placesIn(home), plugin]);
  const trusted = readFileSync(toml, 'utf8');
  writeFileSync(toml, `[plugins."svc-memory@svc"]\nenabled = true\n${trusted}`);
  expect(checks().map(({ subject, fix }) => [subject, fix])).toEqual([
    ['Codex', 'to keep the plugin: svc disconnect codex'],
  ]);
  writeFileSync(toml, `[plugins."svc-memory@svc"]\nenabled = false\n${trusted}`);
  expect(checks()).toEqual([]);
});

test('hooks that Codex does not trust are told with what to do, those of a profile are trusted', async () => {
  const { home, checks } = await hooked(['codex']);
  const config = join(home, '.codex', 'config.toml');
  const told = () => checks().map(({ found }) => found.replace(home, '~'));
  writeFileSync(config, 'model = "gpt-6"\n');
  expect(checks()).toEqual([
    {
      level: 'warning',
      subject: 'Codex',
      found: `it skips svc's hooks in ${join(home, '.codex/hooks.json')} that it does not trust yet: SessionStart, UserPromptSubmit, PostToolUse, PreCompact, Stop, SessionEnd`,
      fix: 'start codex, and choose "Trust all" where it asks, or trust them in /hooks',
    },
  ]);
  trust(home, placesIn(home, EVENTS.slice(0, 5)));
  expect(told()).toEqual([
    "it skips svc's hooks in ~/.codex/hooks.json that it does not trust yet: SessionEnd",
  ]);
  trust(home, placesIn(home, ['session_end']), 'work.config.toml');
  expect(told()).toEqual([]);
  writeFileSync(config, '[plugins."svc-memory@svc"]\nenabled = true\n');
  trust(home, placesIn(home), 'work.config.toml');
  expect(told()).toContain('it skips the hooks of its plugin of svc, which it does not trust yet');
});

test('where Codex keeps its trust in a file that svc cannot read, doctor claims nothing', async () => {
  const { home, checks } = await hooked(['codex']);
  for (const text of ['hooks = [', '']) {
    writeFileSync(join(home, '.codex', 'config.toml'), text);
    expect(checks()).toEqual([]);
  }
});

test('a folder of Codex behind a link is the one that Codex names', async () => {
  const { home, checks } = await hooked(['codex']);
  renameSync(join(home, '.codex'), join(home, 'codex-itself'));
  symlinkSync(join(home, 'codex-itself'), join(home, '.codex'));
  const keys = EVENTS.map((event) => `${join(home, 'codex-itself/hooks.json')}:${event}:0:0`);
  trust(home, keys);
  expect(checks()).toEqual([]);
});

test.each(['claude', 'codex', 'copilot', 'opencode', 'pi'])(
  'hooks of %s whose svc is gone are told once, and to connect again mends them',
  async (client) => {
    const { home, bin, svc, checks } = await hooked([client]);
    trust(home, placesIn(home));
    rmSync(join(bin, 'svc'));
    expect(checks()).toEqual([
      expect.objectContaining({
        level: 'warning',
        found: 'its hooks run svc, which does not exist, so it has no memory',
        fix: `svc connect ${client} --hooks`,
      }),
    ]);
    await svc('connect', client, '--hooks', '--yes');
    expect(checks()).toEqual([]);
  },
);

test('a script that is gone is named, through quotes and variables', async () => {
  const { home, checks } = await hooked([]);
  mkdirSync(join(home, '.claude'));
  const command = `env 'SVC_DATA_HOME=/a b' ${process.execPath} '/gone/it'\\''s/svc.js' hook claude Stop`;
  const hooks = { Stop: [{ hooks: [{ type: 'command', command }] }] };
  writeFileSync(join(home, '.claude/settings.json'), JSON.stringify({ hooks }));
  expect(checks().map(({ found }) => found)).toEqual([
    "its hooks run /gone/it's/svc.js, which does not exist, so it has no memory",
  ]);
});

test('a plugin without svc in the search path is told, and a person’s own hooks are not', async () => {
  const { home, bin, checks } = await hooked([]);
  rmSync(join(bin, 'svc'));
  mkdirSync(join(home, '.claude'));
  const path = join(home, '.claude/settings.json');
  const hooks = { Stop: [{ hooks: [{ type: 'command', command: '/gone/beep hook claude' }] }] };
  writeFileSync(path, JSON.stringify({ hooks, enabledPlugins: PLUGIN_ON }));
  expect(checks().map(({ fix }) => fix)).toEqual(['npm install -g svc-local-proxy']);
  writeFileSync(path, '{ broken');
  expect(checks()).toEqual([]);
});

test('Cursor and Copilot CLI, which read the settings of Claude Code, are told where they are installed', async () => {
  const { home, checks } = await hooked(['claude'], ['cursor-agent', 'copilot']);
  expect(checks().map(({ subject, fix }) => [subject, fix])).toEqual([
    ['Cursor', expect.stringContaining('svc disconnect claude')],
  ]);
  const project = join(home, 'shop');
  mkdirSync(join(project, '.claude'), { recursive: true });
  const settings = readFileSync(join(home, '.claude/settings.json'), 'utf8');
  writeFileSync(join(project, '.claude/settings.json'), settings);
  const [, copilot] = checks(project);
  expect(copilot?.subject).toBe('Copilot CLI');
  expect(copilot?.found).toContain(join(project, '.claude/settings.json'));
  expect(copilot?.fix).toContain('svc connect claude --hooks');
});
