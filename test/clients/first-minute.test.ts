import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BIN } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { startScriptedProvider } from '../support/scripted-provider/provider.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { runProgram } from './support/program.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/**
 * Records the first minute as a terminal shows it, from setup to uninstall, into docs/first-minute.md. After a change of
 * what is printed: npx vitest run test/clients/first-minute.test.ts -u
 */

const claude = await installedClient('claude');

/** In place of the ids of this run, of the same length. */
const IDS = [
  'm_4k2vq7n3x5c8b1hd',
  'm_7qd3w9f2s6j4t0ra',
  'm_9xd5e1g8k3m7p2yz',
  'm_2hb6u4l0v8c3n5qw',
];

test.skipIf(claude.missing !== undefined)(
  'docs/first-minute.md is what setup, two sessions of Claude Code and uninstall print',
  async () => {
    const provider = await startScriptedProvider();
    const port = await freePort();
    // A machine that runs many tests at once may need longer than a person should wait.
    const home = homeWith({ version: 1, proxy: { port, recallMs: 10_000 } });
    const folder = join(home, 'quay');
    mkdirSync(folder);
    execFileSync('git', ['init', '-q'], { cwd: folder });
    const env = {
      HOME: home,
      PATH: `${dirname(binaryOf(claude, 'claude'))}${delimiter}${process.env['PATH'] ?? ''}`,
      ANTHROPIC_API_KEY: 'sk-ant-of-the-stand-in',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    };
    const svc = async (...args: readonly string[]): Promise<string> => {
      // One stream for both, so that the lines stay in their order.
      const words = ['-c', 'exec "$0" "$@" 2>&1', process.execPath, BIN, ...args];
      const { status, stdout } = await runProgram({ file: 'sh', args: words, folder, env }).ended;
      expect([args, status, stdout]).toEqual([args, 0, expect.any(String)]);
      return stdout;
    };
    onTestFinished(async () => {
      await runProgram({ file: process.execPath, args: [BIN, 'stop'], folder, env }).ended;
      await provider.stop();
    });
    const told = `${FACT} [[final=Noted.]]`;
    const asked = `${QUESTION} [[final=Port 6431 of walrus-seven.]]`;
    const stand = ['--base-url', provider.url, '--allow-private'];
    const key = ['--upstream', 'anthropic', '--key-env', 'ANTHROPIC_API_KEY'];
    const parts: (readonly [shown: string, printed: string])[] = [
      [`setup --yes ${key.join(' ')}`, await svc('setup', '--yes', ...key, ...stand)],
      [`run claude -- -p "${FACT}"`, await svc('run', 'claude', '--', '-p', told)],
    ];
    const from = provider.records.length;
    parts.push(
      [`run claude -- -p "${QUESTION}"`, await svc('run', 'claude', '--', '-p', asked)],
      ['status', await svc('status')],
      ['memory list', await svc('memory', 'list')],
      ['uninstall --yes', shortened(await svc('uninstall', '--yes'))],
    );
    const bodies = provider.records.slice(from).map(({ body }) => body.toString());
    expect(bodies.some((body) => body.split(SECRET_OF_FACT).length > 2)).toBe(true);
    const screen = parts.map(([shown, printed]) => `$ svc ${shown}\n${printed.trimEnd()}`);
    await expect(pageOf(stable(screen.join('\n\n'), home))).toMatchFileSnapshot(
      join(import.meta.dirname, '..', '..', 'docs', 'first-minute.md'),
    );
  },
);

/** Which files of SQLite are there at the end depends on the moment. */
function shortened(text: string): string {
  const lines = text.split('\n');
  const isRemoval = (line: string): boolean => /^(?:remove|stop) /.test(line);
  const first = lines.findIndex(isRemoval);
  return lines
    .flatMap((line, at) => (at === first ? ['…'] : isRemoval(line) ? [] : [line]))
    .join('\n');
}

/** What differs from run to run becomes what it could be. */
function stable(text: string, home: string): string {
  const ids = [...new Set(text.match(/\bm_[a-z0-9]{16}\b/g) ?? [])];
  return ids
    .reduce((left, id, at) => left.replaceAll(id, IDS[at] ?? id), text)
    .replaceAll(home, '~')
    .replaceAll(/ \[\[fina[^\]\n]*(?:\]\]|…)/g, '')
    .replaceAll(/\d+ tokens more/g, '70 tokens more')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:8765')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-11-27 09:00:00')
    .replaceAll(
      /process \d+, version \S+, build [\w-]+/g,
      'process 4711, version 0.1.2, build 1a2b3c',
    );
}

function pageOf(screen: string): string {
  return `# The first minute

What the program prints, recorded with the real Claude Code. The provider is a stand-in that was told its answers; what svc
added to the second prompt is checked. A test records this page again and compares it.

\`\`\`
${screen}
\`\`\`

With a terminal and without flags, \`svc setup\` asks instead, tests your key, and offers to import earlier sessions.
`;
}
