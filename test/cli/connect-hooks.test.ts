import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { HOOKABLE } from '../../src/cli/clients/hook-files.ts';
import { runHere } from '../support/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

vi.setConfig({ testTimeout: 90_000 });

const ROOT = join(import.meta.dirname, '..', '..');

const FILES = {
  claude: '.claude/settings.json',
  codex: '.codex/hooks.json',
  copilot: '.copilot/hooks/svc.json',
  opencode: '.config/opencode/plugins/svc.js',
  pi: '.pi/agent/extensions/svc.ts',
};

function svc(home: string, ...args: string[]) {
  return runHere(args, { home });
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
      expect(text).toMatch(/svc\.js hook \w+ (?:Stop|agentStop) 2>/);
      expect(JSON.parse(text)).toHaveProperty('hooks');
    }
    expect((await svc(home, 'connect', client, '--hooks', '--yes')).stderr).toContain('already');
    const gone = await svc(home, 'disconnect', client, '--yes');
    expect(gone.stderr).toContain('deleted');
    expect(existsSync(path)).toBe(false);
    expect(existsSync(dirname(path))).toBe(false);
  },
);

test('a plugin that was changed by hand is not left behind in silence', async () => {
  const home = tempFolder();
  const path = join(home, FILES.opencode);
  await svc(home, 'connect', 'opencode', '--hooks', '--yes');
  const changed = `${readFileSync(path, 'utf8')}// mine\n`;
  writeFileSync(path, changed);
  const { code, stderr } = await svc(home, 'uninstall', '--yes');
  expect([code, stderr]).toEqual([1, expect.stringContaining(`Not restored: ${path}`)]);
  expect(readFileSync(path, 'utf8')).toBe(changed);
});

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

test('a memory service is named, and nothing is said of one where there is none', async () => {
  const home = tempFolder();
  const alone = await svc(home, 'connect', 'codex', '--hooks', '--yes');
  expect(alone.stderr).not.toContain('memory service');
  mkdirSync(join(home, '.config', 'svc'), { recursive: true, mode: 0o700 });
  const memory = { kind: 'hosted', baseUrl: 'https://memory.example', serviceKey: 'k' };
  const text = JSON.stringify({ version: 1, upstreams: [], memory });
  writeFileSync(join(home, '.config', 'svc', 'config.json'), text, { mode: 0o600 });
  const shared = await svc(home, 'connect', 'claude', '--hooks', '--yes');
  expect(shared.stderr).toContain('They recall from the memory service https://memory.example');
});

test('svc uninstall removes the hooks of every client', async () => {
  const home = tempFolder();
  for (const client of Object.keys(FILES)) {
    // oxlint-disable-next-line no-await-in-loop -- They share the records of changes.
    await svc(home, 'connect', client, '--hooks', '--yes');
  }
  expect((await svc(home, 'uninstall', '--yes')).code).toBe(0);
  expect(Object.values(FILES).filter((file) => existsSync(join(home, file)))).toEqual([]);
});

test('a shell whose svc is gone ends without an error, and says so in one sentence at the start', () => {
  const lines = linesFor(['svc-that-is-gone']);
  expect(lines.length).toBeGreaterThan(15);
  const said = lines.map(({ event, line }) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    return [event, stdout] as const;
  });
  for (const [event, text] of said) {
    if (/^sessionStart$/i.test(event)) {
      const { systemMessage } = JSON.parse(text) as { systemMessage: string };
      expect(systemMessage).toMatch(/^svc has no memory here: .* svc disconnect \w+\.?$/);
    } else expect(text).toBe('');
  }
});

test('on Windows Claude Code gets a line for its POSIX shell, Codex and Copilot CLI one for any', () => {
  const { platform } = process;
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }));
  Object.defineProperty(process, 'platform', { value: 'win32' });
  const stop = linesFor(['svc', 'hook', 'NAME']).filter(({ event }) => /stop$/i.test(event));
  // cmd.exe, Windows PowerShell and pwsh run a line that begins with cmd; Claude Code uses Git Bash.
  expect(stop.map(({ client, line }) => [client, line])).toEqual([
    ['claude', 'svc hook NAME Stop 2>/dev/null || :'],
    ['codex', 'cmd /d /c "svc hook NAME Stop 2>nul || exit /b 0"'],
    ['copilot', 'svc hook NAME agentStop 2>/dev/null || :'],
    ['copilot', 'cmd /d /c "svc hook NAME agentStop 2>nul || exit /b 0"'],
  ]);
});

interface WrittenLine {
  readonly client: string;
  readonly event: string;
  readonly line: string;
}

/** The command lines that `svc connect --hooks` writes, without those for PowerShell where there is none. */
function linesFor(command: readonly string[]): readonly WrittenLine[] {
  const isWindows = process.platform === 'win32';
  return HOOKABLE.filter(({ name }) => ['claude', 'codex', 'copilot'].includes(name)).flatMap(
    (client) => {
      const { text } = client.form({ HOME: tempFolder() }, command).apply('');
      const { hooks } = JSON.parse(text) as { hooks: Record<string, object[]> };
      return Object.entries(hooks).flatMap(([event, groups]) =>
        [...JSON.stringify(groups).matchAll(/"(command|bash|powershell)":("(?:[^"\\]|\\.)*")/g)]
          .filter(
            ([, name, value]) => value !== '"command"' && (isWindows || name !== 'powershell'),
          )
          .map(([, , value = '""']) => ({
            client: client.name,
            event,
            line: String(JSON.parse(value)),
          })),
      );
    },
  );
}

test('a client without hooks that stay is refused with the reason', async () => {
  const { code, stderr } = await svc(tempFolder(), 'connect', 'qwen', '--hooks', '--yes');
  expect(code).toBe(2);
  expect(stderr).toContain('its own transcript');
});

test('the plugin of opencode has the answer of a svc that a busy machine has started late', async () => {
  const folder = tempFolder();
  const [file, program] = [join(folder, 'svc.mjs'), join(folder, 'svc.sh')];
  writeFileSync(program, `sleep 3; echo '{"text":"told"}'`);
  const text = readFileSync(join(ROOT, 'plugins/opencode/svc.js'), 'utf8');
  const command = `const COMMAND = ['sh', '${program}'];`;
  writeFileSync(
    file,
    text.replace("const COMMAND = ['svc'];", () => command),
  );
  const { SvcMemory } = (await import(file)) as {
    SvcMemory: (place: object) => Promise<Record<string, (...given: object[]) => Promise<void>>>;
  };
  const hooks = await SvcMemory({ client: {}, directory: '/' });
  const parts: { readonly text: string }[] = [];
  await hooks['chat.message']?.({ sessionID: 's' }, { message: { id: 'm' }, parts });
  expect(parts.map((part) => part.text)).toEqual(['told']);
});

test('the plugins of the repository run the same events as connect --hooks', () => {
  const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
  for (const client of ['claude', 'codex']) {
    const { hooks } = JSON.parse(read(`plugins/${client}/hooks/hooks.json`)) as {
      hooks: Record<string, { hooks: { command: string }[] }[]>;
    };
    for (const [event, [group]] of Object.entries(hooks)) {
      // A shell without svc says so once, at the start of a session.
      expect(group?.hooks[0]?.command).toMatch(
        new RegExp(`^svc hook ${client} ${event} 2>/dev/null \\|\\| `),
      );
    }
  }
  // Codex reads the marketplace of Claude Code too where it finds none of its own, and would run hooks of another client.
  for (const [market, source, manifest] of [
    ['.claude-plugin/marketplace.json', './plugins/claude', '.claude-plugin/plugin.json'],
    ['.agents/plugins/marketplace.json', './plugins/codex', '.codex-plugin/plugin.json'],
  ] as const) {
    expect(read(market)).toContain(`"${source}"`);
    expect(existsSync(join(ROOT, source, manifest))).toBe(true);
  }
});
