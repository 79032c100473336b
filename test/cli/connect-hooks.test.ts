import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runCli } from '../support/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

vi.setConfig({ testTimeout: 90_000 });

const FILES = {
  claude: '.claude/settings.json',
  codex: '.codex/hooks.json',
  copilot: '.copilot/hooks/svc.json',
  opencode: '.config/opencode/plugins/svc.js',
  pi: '.pi/agent/extensions/svc.ts',
};

function svc(home: string, ...args: string[]) {
  return runCli(args, { home });
}

test.each(Object.entries(FILES))(
  'the hooks of %s are written, name this program, and go without a trace',
  async (client, file) => {
    const home = tempFolder();
    const path = join(home, file);
    const refused = await svc(home, 'connect', client, '--hooks');
    expect([refused.code, existsSync(path)]).toEqual([2, false]);
    expect((await svc(home, 'connect', client, '--hooks', '--yes')).code).toBe(0);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('bin/svc.js');
    if (file.endsWith('.json')) {
      expect(text).toMatch(/svc\.js hook \w+ (?:Stop|agentStop)"/);
      expect(JSON.parse(text)).toHaveProperty('hooks');
    }
    expect((await svc(home, 'connect', client, '--hooks', '--yes')).stderr).toContain('already');
    const gone = await svc(home, 'disconnect', client, '--yes');
    expect(gone.stderr).toContain('deleted');
    expect(existsSync(path)).toBe(false);
    expect(existsSync(dirname(path))).toBe(false);
  },
);

test('a person’s own hooks stay, and every byte of the file comes back', async () => {
  const home = tempFolder();
  const path = join(home, FILES.claude);
  mkdirSync(dirname(path));
  const own =
    '{\n  "model": "opus",\n  "hooks": { "Stop": [ { "hooks": [ { "type": "command", "command": "beep" } ] } ] }\n}\n';
  writeFileSync(path, own);
  await svc(home, 'connect', 'claude', '--hooks', '--yes');
  const { model, hooks } = JSON.parse(readFileSync(path, 'utf8')) as {
    model: string;
    hooks: Record<string, object[]>;
  };
  expect([model, hooks['Stop']?.length, hooks['UserPromptSubmit']?.length]).toEqual(['opus', 2, 1]);
  await svc(home, 'disconnect', 'claude', '--yes');
  expect(readFileSync(path, 'utf8')).toBe(own);
});

test('a client without hooks that stay is refused with the reason', async () => {
  const { code, stderr } = await svc(tempFolder(), 'connect', 'qwen', '--hooks', '--yes');
  expect(code).toBe(2);
  expect(stderr).toContain('its own transcript');
});

test('the plugins of the repository run the same events as connect --hooks', () => {
  const root = join(import.meta.dirname, '..', '..');
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  for (const client of ['claude', 'codex']) {
    const { hooks } = JSON.parse(read(`plugins/${client}/hooks/hooks.json`)) as {
      hooks: Record<string, { hooks: { command: string }[] }[]>;
    };
    for (const [event, [group]] of Object.entries(hooks)) {
      expect(group?.hooks[0]?.command).toContain(`svc hook ${client} ${event}`);
      // A shell without svc says so once, at the start of a session.
      expect(group?.hooks[0]?.command).toMatch(/^if command -v svc >/);
    }
  }
  // Codex reads the marketplace of Claude Code too where it finds none of its own, and would run hooks of another client.
  for (const [market, source, manifest] of [
    ['.claude-plugin/marketplace.json', './plugins/claude', '.claude-plugin/plugin.json'],
    ['.agents/plugins/marketplace.json', './plugins/codex', '.codex-plugin/plugin.json'],
  ] as const) {
    expect(read(market)).toContain(`"${source}"`);
    expect(existsSync(join(root, source, manifest))).toBe(true);
  }
});
