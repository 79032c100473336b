import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { type InstalledClient, installedClient } from './support/installed-client.ts';
import { insertedText } from './support/laws.ts';
import type { ProgramEnd } from './support/program.ts';
import { type CallPair, callPairs, openStage, type Stage } from './support/stage.ts';
import { svcCommand } from './support/svc-command.ts';

/** A session changes or reads a file; somebody changes the file; a later session recalls the first. */

const claude = await installedClient('claude');
const codex = await installedClient('codex');

const CONCLUSION =
  'Decided: the walrus gateway listens on port 6543, because pgbouncer owns 6432 on that host.';
const QUESTION = 'On which port does the walrus gateway listen, and why on that one? [[think=0]]';
/** As it stands in JSON. */
const MARK = /\\n\d{4}-\d\d-\d\d m_[a-z2-7]{8} \(files changed since\):\\n/;

/** A young project speaks always. */
const SETTINGS = { recallQuietPercent: 0, sessionBrief: false };

async function stageWithFile(): Promise<Stage & { readonly file: string }> {
  const stage = await openStage(SETTINGS);
  const file = join(stage.project, 'gateway.txt');
  writeFileSync(file, 'port 5432\n');
  const git = (...words: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...words], {
      cwd: stage.project,
    });
  git('init', '-q', '-b', 'fix/gateway');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  return Object.assign(stage, { file });
}

/** The last call with a recalled block. */
function recalled(stage: Stage): CallPair | undefined {
  return callPairs(stage).findLast((pair) => pair.forwardedBody.includes('<svc-memory'));
}

type Run = (stage: Stage, prompt: string) => Promise<ProgramEnd>;

interface Client {
  readonly name: string;
  readonly installed: InstalledClient;
  readonly run: Run;
  /** A prompt whose plan concerns the file. */
  readonly learn: (file: string) => string;
}

const CLIENTS: readonly Client[] = [
  {
    name: 'Claude Code, which edits the file',
    installed: claude,
    run: (stage, prompt) =>
      runClaude(claude, stage, { prompt, args: ['--permission-mode', 'acceptEdits'] }),
    learn: (file) => {
      const edit = { file_path: file, old_string: 'port 5432', new_string: 'port 6543' };
      return `Move the walrus gateway. [[plan=Read:${file}|Edit:${JSON.stringify(edit)}]] [[final=${CONCLUSION}]]`;
    },
  },
  {
    name: 'Codex, which prints the file',
    installed: codex,
    run: (stage, prompt) => runCodex(codex, stage, { prompt }),
    learn: () =>
      `Look at the walrus gateway. [[plan=bash:cat gateway.txt]] [[final=${CONCLUSION}]]`,
  },
];

describe.each(CLIENTS)('$name', ({ installed, run, learn }) => {
  test('recalls the line with its mark once the file has changed, and without it before', async (context) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
    const stage = await stageWithFile();
    const learnt = await run(stage, learn(stage.file));
    expect(learnt, learnt.stderr).toMatchObject({ status: 0 });
    const content = readFileSync(stage.file, 'utf8');
    // What waits in the background is done at the end of the proxy.
    await stage.svc.stop();
    await stage.restartSvc();

    await run(stage, QUESTION);
    const before = recalled(stage);
    expect(before && insertedText(before)).toContain('listens on port 6543');
    expect(before && insertedText(before)).not.toMatch(MARK);

    writeFileSync(stage.file, `${content}and another line\n`);
    await run(stage, `${QUESTION} Once more.`);
    const after = recalled(stage);
    expect(after && insertedText(after)).toContain('listens on port 6543');
    expect(after && insertedText(after)).toMatch(MARK);
    expect(after && insertedText(after)).not.toContain(stage.file);

    const stale = await svcCommand(stage, installed, ['memory', 'list', '--stale']).ended;
    expect(stale.stdout).toContain('gateway.txt (changed)');
    const ref = /m_[a-z2-7]{16}/.exec(stale.stdout)?.[0] ?? '';
    const shown = await svcCommand(stage, installed, ['memory', 'get', ref, '--origin']).ended;
    expect(shown.stdout).toContain('branch    fix/gateway');
    expect(shown.stdout).toMatch(/commit {4}[0-9a-f]{40}/);
    expect(shown.stdout).toContain('not for sure: of 1 file 1 changed since');
  });
});
