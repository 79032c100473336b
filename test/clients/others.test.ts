import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { clientEnvironment } from './support/claude-code.ts';
import { documented, folderWithSvc } from './support/documented.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { expectKeysInPlace } from './support/laws.ts';
import { runProgram } from './support/program.ts';
import { type Stage, isKept, openStage } from './support/stage.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

// Each is 400 MB: they are installed only where that is asked for, or where they are already.
const isAsked = process.env['SVC_TEST_ALL_CLIENTS'] === '1';
const clients = {
  opencode: await installedClient('opencode', { isOptional: !isAsked }),
  cline: await installedClient('cline', { isOptional: !isAsked }),
  node24: await installedClient('node24'),
};

describe.each(['opencode', 'cline'] as const)('docs/other-clients.md: %s', (name) => {
  beforeEach((context: TestContext) => {
    const missing = clients[name].missing ?? clients.node24.missing;
    if (missing !== undefined) context.skip(missing);
  });

  test('as it stands there, sessions go through svc and are remembered', async () => {
    const stage = await openStage();
    const folders = [
      folderWithSvc(stage),
      dirname(binaryOf(clients.node24, 'node')),
      dirname(binaryOf(clients[name], name)),
    ];
    if (name === 'opencode') {
      const file = join(stage.project, 'opencode.json');
      writeFileSync(file, documented('other-clients.md', 'json', stage));
    }
    const script = documented('other-clients.md', `${name}.sh`, stage);
    const say = async (prompt: string) => {
      const env = {
        ...stage.svc.env,
        ...clientEnvironment(stage),
        PATH: [...folders, process.env['PATH'] ?? ''].join(delimiter),
        SVC_LOCAL_PROXY_TOKEN: stage.svc.token,
        OPENCODE_DISABLE_AUTOUPDATE: '1',
      };
      const args = ['-c', script.replace('Where does staging run?', prompt)];
      const end = await runProgram({ file: 'sh', args, folder: stage.project, env }).ended;
      expect(end, end.stderr).toMatchObject({ status: 0 });
    };
    onTestFinished(() => endLeftOvers(stage));
    await say(`${FACT} [[final=Noted.]]`);
    const from = stage.provider.records.length;
    expect(from).toBeGreaterThan(0);
    if (name === 'opencode') {
      await say(`${QUESTION} [[final=Asked.]]`);
      const asked = stage.provider.records.slice(from).map(({ body }) => body.toString());
      expect(asked.some((body) => body.includes(SECRET_OF_FACT))).toBe(true);
    }
    expectKeysInPlace(stage);
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(true);
  });
});

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
