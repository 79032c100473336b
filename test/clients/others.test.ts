import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseJsonText } from '../../src/adapters/files/json-text.ts';
import { clientEnvironment } from './support/claude-code.ts';
import { folderWithSvc } from './support/documented.ts';
import { type ClientName, binaryOf, installedClient } from './support/installed-client.ts';
import { expectKeysInPlace } from './support/laws.ts';
import { type ProgramEnd, runProgram } from './support/program.ts';
import { type Stage, isKept, openStage } from './support/stage.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/**
 * The clients beside Claude Code and Codex, as `svc run` starts them and as `svc connect` leaves them: a fact
 * stated in one session is recalled in the next, and only what the person typed is kept.
 */

interface Case {
  readonly name: string;
  readonly program: string;
  readonly package: ClientName;
  /** 100 to 400 MB: installed only where that is asked for, or where it is already. */
  readonly isLarge: boolean;
  readonly args: (prompt: string) => readonly string[];
  /** Its file, and what a person has there; undefined where svc changes none. */
  readonly file?: { readonly path: string; readonly text?: string };
  /** Where the client needs other words without `svc run`. */
  readonly plainArgs?: (prompt: string) => readonly string[];
  /** For a client whose settings name one. */
  readonly model?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const PI_TEXT = `{
  "providers": {
    "mine": { "baseUrl": "http://127.1.1.1:9", "apiKey": "X", "api": "openai-completions", "models": [{ "id": "m" }] }
  }
}
`;

const CASES: readonly Case[] = [
  {
    name: 'opencode',
    program: 'opencode',
    package: 'opencode',
    isLarge: true,
    args: (prompt) => ['run', '-m', 'anthropic/claude-sonnet-4-5', prompt],
    file: {
      path: '.config/opencode/opencode.json',
      text: '{\n  // mine\n  "autoupdate": false,\n  "share": "disabled"\n}\n',
    },
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
  },
  {
    name: 'pi',
    program: 'pi',
    package: 'pi',
    isLarge: false,
    args: (prompt) => ['-p', '--model', 'anthropic/claude-sonnet-4-5', prompt],
    file: { path: '.pi/agent/models.json', text: PI_TEXT },
    env: { PI_OFFLINE: '1' },
  },
  {
    name: 'qwen',
    program: 'qwen',
    package: 'qwen',
    isLarge: true,
    args: (prompt) => ['-m', 'gpt-5', '-p', prompt],
    file: { path: '.qwen/settings.json', text: '{\n  "env": { "MINE": "1" }\n}\n' },
  },
  {
    name: 'copilot',
    program: 'copilot',
    package: 'copilot',
    isLarge: true,
    args: (prompt) => ['--model', 'claude-sonnet-4.5', '--allow-all-tools', '-p', prompt],
    env: { COPILOT_OFFLINE: 'true' },
  },
  {
    name: 'cline',
    program: 'cline',
    package: 'cline',
    isLarge: true,
    args: (prompt) => [prompt],
  },
  {
    name: 'continue',
    program: 'cn',
    package: 'continue',
    isLarge: true,
    args: (prompt) => ['--config', 'svc.yaml', '-p', prompt],
    file: { path: '.continue/config.yaml' },
    plainArgs: (prompt) => ['-p', prompt],
    model: 'claude-sonnet-4-5',
  },
];

const isAsked = process.env['SVC_TEST_ALL_CLIENTS'] === '1';
const node24 = await installedClient('node24');
const clients = new Map(
  await Promise.all(
    CASES.map(async ({ name, package: installed, isLarge }) => {
      const client = await installedClient(installed, { isOptional: isLarge && !isAsked });
      return [name, client] as const;
    }),
  ),
);

describe.each(CASES)('$name', (it) => {
  const client = clients.get(it.name) ?? node24;

  beforeEach((context: TestContext) => {
    const missing = client.missing ?? node24.missing;
    if (missing !== undefined) context.skip(missing);
  });

  const run = (stage: Stage, args: readonly string[]): Promise<ProgramEnd> => {
    const folders = [folderWithSvc(stage), dirname(binaryOf(node24, 'node'))];
    const env = {
      ...stage.svc.env,
      ...clientEnvironment(stage),
      ...it.env,
      PATH: [...folders, dirname(binaryOf(client, 'any')), process.env['PATH'] ?? ''].join(
        delimiter,
      ),
    };
    return runProgram({
      file: 'sh',
      args: ['-c', '"$0" "$@"', ...args],
      folder: stage.project,
      env,
    }).ended;
  };

  test('svc run: session one states a fact, session two recalls it', async () => {
    const stage = await openStage();
    onTestFinished(() => endLeftOvers(stage));
    if (it.name === 'cline') {
      const line = await run(stage, ['svc', 'print-config', 'cline', '--model', 'gpt-5']);
      await expectDone(run(stage, ['sh', '-c', line.stdout]));
    }
    if (it.name === 'continue') {
      const yaml = await run(stage, [
        'svc',
        'print-config',
        'continue',
        '--model',
        'claude-sonnet-4-5',
      ]);
      writeFileSync(join(stage.project, 'svc.yaml'), yaml.stdout);
    }
    await expectDone(
      run(stage, ['svc', 'run', it.name, '--', ...it.args(`${FACT} [[final=Noted.]]`)]),
    );
    const from = stage.provider.records.length;
    expect(from).toBeGreaterThan(0);
    await expectDone(
      run(stage, ['svc', 'run', it.name, '--', ...it.args(`${QUESTION} [[final=Asked.]]`)]),
    );
    const asked = stage.provider.records.slice(from).map(({ body }) => body.toString());
    expect(asked.some((body) => body.includes(SECRET_OF_FACT))).toBe(true);
    expectKeysInPlace(stage);
    expectOnlyTyped(await run(stage, ['svc', 'memory', 'list', '--json']));
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(true);
  });

  test('connected, the client in a plain shell goes through svc, and after disconnect nothing of svc is left', async (context) => {
    const { file } = it;
    if (file === undefined) return context.skip(`svc changes no file of ${it.name}`);
    const stage = await openStage();
    onTestFinished(() => endLeftOvers(stage));
    const path = join(stage.home, file.path);
    if (file.text !== undefined) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, file.text);
    }
    const model = it.model === undefined ? [] : ['--model', it.model];
    await expectDone(run(stage, ['svc', 'connect', it.name, '--yes', ...model]));
    expect(readFileSync(path, 'utf8')).not.toContain(stage.svc.token);
    const args = (it.plainArgs ?? it.args)('Say this. [[final=through the proxy]]');
    const said = await run(stage, [it.program, ...args]);
    expect(said, said.stderr).toMatchObject({ status: 0 });
    expect(said.stdout).toContain('through the proxy');
    expectKeysInPlace(stage);
    // opencode and Qwen Code write their own files anew: what they added stays, and so does the person's.
    await expectDone(run(stage, ['svc', 'disconnect', it.name, '--yes']));
    if (file.text === undefined) return expect(existsSync(path)).toBe(false);
    const after = readFileSync(path, 'utf8');
    expect(after).not.toContain('127.0.0.1');
    expect(parseJsonText(after)).toMatchObject(parseJsonText(file.text) as object);
  });
});

test('qwen over Anthropic Messages, which sends the User-Agent of Claude Code, recalls by its prompt alone', async (context) => {
  const client = clients.get('qwen') ?? node24;
  const missing = client.missing ?? node24.missing;
  if (missing !== undefined) return context.skip(missing);
  const stage = await openStage();
  const ask = async (prompt: string) => {
    const bins = [dirname(binaryOf(node24, 'node')), dirname(binaryOf(client, 'any'))];
    const end = await runProgram({
      file: 'sh',
      args: [
        '-c',
        '"$0" "$@"',
        'qwen',
        '--auth-type',
        'anthropic',
        '-m',
        'claude-sonnet-4-5',
        '-p',
        prompt,
      ],
      folder: stage.project,
      env: {
        ...clientEnvironment(stage),
        ANTHROPIC_BASE_URL: stage.url,
        ANTHROPIC_API_KEY: stage.svc.token,
        PATH: [...bins, process.env['PATH'] ?? ''].join(delimiter),
      },
    }).ended;
    expect(end, end.stderr).toMatchObject({ status: 0 });
  };
  await ask(`${FACT} [[final=Noted.]]`);
  const from = stage.provider.records.length;
  await ask(`${QUESTION} [[final=Asked.]]`);
  const asked = stage.provider.records.slice(from).map(({ body }) => body.toString());
  expect(asked.some((body) => body.includes(SECRET_OF_FACT))).toBe(true);
});

async function expectDone(ended: Promise<ProgramEnd>): Promise<void> {
  const end = await ended;
  expect(end, end.stderr).toMatchObject({ status: 0 });
}

/** Nothing of the client's own words: what is kept is what was typed and what was answered. */
function expectOnlyTyped({ stdout }: ProgramEnd): void {
  const records = JSON.parse(stdout) as readonly { readonly text: string }[];
  // `opencode run` puts a prompt of several words into quotes.
  const texts = records.map(({ text }) =>
    text
      .replaceAll(/ \[\[final=.*?\]\]/g, '')
      .replace(/^"(.*)"$/s, '$1')
      .trim(),
  );
  const known = [FACT, QUESTION, 'Noted.', 'Asked.'];
  expect(texts.filter((text) => !known.includes(text))).toEqual([]);
}

/** Cline leaves a server running, whose arguments name this stage's own folder. */
function endLeftOvers(stage: Stage): void {
  const pids = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  for (const pid of pids) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      if (words.includes(stage.project)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It ended while we looked.
    }
  }
}
