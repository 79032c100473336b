import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { promptCache } from '../support/scripted-provider/prompt-cache.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectSameAnswers, expectStablePrefix } from './support/laws.ts';
import { runProgram } from './support/program.ts';
import { type CallPair, type Stage, callPairs, evidence, openStage } from './support/stage.ts';

/**
 * Long tool sessions of real clients whose old outputs are left out in batches: the client never
 * notices, and a model that needs one of them again reads it back in its own shell.
 */

/** Nothing leaves a conversation with bound thinking, and the client's own default model binds it. */
const UNBOUND = ['--model', 'claude-opus-5'];

const CLIENTS = {
  claude: {
    installed: await installedClient('claude'),
    list: 'messages',
    run: runClaude,
    args: UNBOUND,
  },
  codex: { installed: await installedClient('codex'), list: 'input', run: runCodex, args: [] },
} as const;

const ROUNDS = 40;
/** About 2,500 tokens each: within what clients show of an output. */
const LINES = 250;
/** The third output that is left out: long gone when it is read again. */
const REREAD = 3;
const PROMPT = `Read the logs one after the other. [[plan=bash:cat logs/{i}.txt*${ROUNDS}|reread:${REREAD}]]`;

describe.each(['claude', 'codex'] as const)('a session of 40 rounds under %s', (name) => {
  const { installed, list, run, args } = CLIENTS[name];

  beforeEach((context: TestContext) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
  });

  test('[3.3-elided_tool_output] is shortened in two batches at least, unnoticed, and what is needed is read again', async () => {
    const stage = await openStage({ compressionMode: 'deterministic' });
    stage.provider.options = { usageOf: promptCache() };
    const logs = writeLogs(stage);
    const env = shellEnvironment(stage);
    const session = await run(installed, stage, { prompt: PROMPT, env, args });
    expect(session, session.stderr).toMatchObject({ status: 0 });

    const pairs = mainCalls(stage);
    expect(pairs.length).toBeGreaterThanOrEqual(ROUNDS + 2);
    expectSameAnswers(pairs);
    // Every call arrived once: no answer made the client ask again.
    expect(stage.tap.exchanges.length).toBe(stage.provider.records.length);
    for (const pair of pairs) expectSamePairs(pair);

    const segments = betweenBatches(pairs);
    expect(segments.length).toBeGreaterThanOrEqual(3);
    for (const segment of segments) expectStablePrefix(segment, list);

    // The word was nowhere in what the provider got just before, and is in the answer.
    const { word = '', start = '' } = logs[REREAD - 1] ?? {};
    const asking = pairs.at(-2);
    const answered = pairs.at(-1);
    expect(asking?.clientBody.includes(word)).toBe(true);
    expect(asking?.forwardedBody.includes(word)).toBe(false);
    // The part that the stub names, to the byte: it stands nowhere else in this request.
    expect(answered?.forwardedBody.includes(JSON.stringify(start).slice(1, -1))).toBe(true);
    expect(session.stdout).toContain(word);
    await report(name, stage);
  });
});

/** The line with the word: within the first part that a stub offers. */
const WORD_LINE = 40;

/** Logs with one line that nobody could guess; `start` is the text up to and with that line. */
function writeLogs(stage: Stage): readonly { word: string; start: string }[] {
  mkdirSync(join(stage.project, 'logs'));
  return Array.from({ length: ROUNDS }, (_, index) => {
    const word = `launch-word-${randomBytes(8).toString('hex').replaceAll(/\d/g, 'x')}`;
    const lines = Array.from({ length: LINES }, (_line, at) => `log ${index + 1}, entry ${at}: ok`);
    lines.splice(WORD_LINE, 0, `The word of log ${index + 1} is ${word}.`);
    writeFileSync(join(stage.project, 'logs', `${index + 1}.txt`), `${lines.join('\n')}\n`);
    return { word, start: lines.slice(0, WORD_LINE + 1).join('\n') };
  });
}

/** `svc` as an installation has it, on the PATH of the client's shell. */
function shellEnvironment(stage: Stage): Record<string, string> {
  const folder = stage.newFolder('bin');
  const file = join(folder, 'svc');
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${stage.svc.program}' "$@"\n`);
  chmodSync(file, 0o755);
  // A login shell, as Codex starts it, has its PATH from here.
  writeFileSync(join(stage.home, '.profile'), `PATH='${folder}':"$PATH"\n`);
  return {
    PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    SVC_DATA_HOME: stage.svc.dataFolder,
  };
}

function mainCalls(stage: Stage): readonly CallPair[] {
  return callPairs(stage).filter(({ record }) => record.decision !== undefined && isMain(record));
}

function isMain({ json }: CallPair['record']): boolean {
  const { tools } = json as { tools?: readonly unknown[] };
  return (tools?.length ?? 0) > 0;
}

/** Calls and results are the client's, one by one. */
function expectSamePairs({ clientBody, forwardedBody }: CallPair): void {
  const idsIn = (body: Buffer): readonly string[] =>
    [...body.toString().matchAll(/"(?:tool_use_id|call_id|id)":"([^"]+)"/g)].map(([id]) => id);
  expect(idsIn(forwardedBody)).toEqual(idsIn(clientBody));
}

/** Requests in a row that leave the same out. */
function betweenBatches(pairs: readonly CallPair[]): readonly (readonly CallPair[])[] {
  const segments: CallPair[][] = [];
  let elided: string | undefined;
  for (const pair of pairs) {
    const now = evidence(pair, 'x-svc-elided-items');
    if (now !== elided) segments.push([]);
    segments.at(-1)?.push(pair);
    elided = now;
  }
  return segments;
}

/** What svc itself says of the session, by its own commands. */
async function report(name: string, stage: Stage): Promise<void> {
  const svc = async (...args: readonly string[]): Promise<unknown> => {
    const { program, env } = stage.svc;
    const file = process.execPath;
    const ended = await runProgram({ file, args: [program, ...args], folder: stage.home, env })
      .ended;
    return JSON.parse(ended.stdout);
  };
  const { total } = (await svc('stats', '--json')) as {
    total: {
      originalInputTokens: number;
      forwardedInputTokens: number;
      price: { paid: number; direct: number };
      readings: number;
    };
  };
  expect(total.readings).toBe(1);
  expect(total.forwardedInputTokens).toBeLessThan(total.originalInputTokens);
  const rows = (await svc('requests', '--json', '--limit', '200')) as readonly RequestRow[];
  const items = [...new Set(rows.map(({ elidedItems }) => elidedItems))];
  const percent = (part: number, whole: number): string => `${Math.round((part / whole) * 100)} %`;
  const { originalInputTokens: original, forwardedInputTokens: forwarded, price } = total;
  process.stderr.write(
    `MEASURED ${name}: ${original} tokens in, ${forwarded} forwarded (${percent(forwarded, original)}); ` +
      `price ${Math.round(price.paid)} of ${Math.round(price.direct)} direct (${percent(price.paid, price.direct)}); ` +
      `outputs left out: ${items.toSorted((one, other) => one - other).join(', ')}\n`,
  );
}
