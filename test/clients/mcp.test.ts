import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import { type TestContext, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { outputRecordOf } from '../support/records.ts';
import { clientEnvironment, runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { runProgram } from './support/program.ts';
import { type Stage, openStage } from './support/stage.ts';

/** Real clients read a left-out output back by the tool that `svc mcp` gives them. */

const claude = await installedClient('claude');
const codex = await installedClient('codex');

const OUTPUT = `first line\n${'a line in the middle\n'.repeat(50)}the launch word is walrus-seven`;
const WORD = 'walrus-seven';

describe('svc mcp', () => {
  beforeEach((context: TestContext) => {
    const missing = claude.missing ?? codex.missing;
    if (missing !== undefined) context.skip(missing);
  });

  test('is a server of Claude Code after claude mcp add, as the documentation has it', async () => {
    const stage = await openStage();
    const ref = await keptOutput(stage);
    const server = serverOf(stage);
    const pass = Object.entries(dataOnly(stage)).flatMap(([name, value]) => [
      '-e',
      `${name}=${value}`,
    ]);
    const added = await runProgram({
      file: binaryOf(claude, 'claude'),
      args: ['mcp', 'add', 'svc', ...pass, '--', server, 'mcp'],
      folder: stage.project,
      env: clientEnvironment(stage),
    }).ended;
    expect(added, added.stderr).toMatchObject({ status: 0 });
    const run = await runClaude(claude, stage, {
      prompt: promptFor(ref, 'mcp__svc__memory_get'),
      args: ['--allowedTools', 'mcp__svc__memory_get'],
      // Otherwise it offers the tools of servers by a search of its own first.
      env: { ENABLE_TOOL_SEARCH: 'false' },
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain(WORD);
    expectExactOutput(stage);
  });

  test('is a server of Codex with the lines of the documentation', async () => {
    const stage = await openStage();
    const ref = await keptOutput(stage);
    const server = serverOf(stage);
    const run = await runCodex(codex, stage, {
      prompt: promptFor(ref, 'memory_get'),
      config: [
        '[mcp_servers.svc]',
        `command = ${JSON.stringify(server)}`,
        'args = ["mcp"]',
        '[mcp_servers.svc.env]',
        ...Object.entries(dataOnly(stage)).map(
          ([name, value]) => `${name} = ${JSON.stringify(value)}`,
        ),
      ],
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain(WORD);
    expectExactOutput(stage);
  });
});

/** An output as the running proxy would have kept it. */
async function keptOutput(stage: Stage): Promise<string> {
  const store = openEmbeddedStore({ folder: stage.svc.dataFolder, report: () => undefined });
  onTestFinished(() => store.close());
  // A model may read its own project only, which is the folder that the client works in.
  const record = outputRecordOf(OUTPUT, { space: folderSpace(stage.project) });
  await store.memory.capture([record], AbortSignal.timeout(30_000));
  return referenceOf(record.digest);
}

/** `svc` that writes down beside the project what it says to the client. */
function serverOf(stage: Stage): string {
  const file = join(stage.newFolder('bin'), 'svc');
  const command = `'${process.execPath}' '${stage.svc.program}' "$@"`;
  writeFileSync(file, `#!/bin/sh\n${command} | tee -a '${join(stage.project, 'said')}'\n`);
  chmodSync(file, 0o755);
  return file;
}

/**
 * Clients ask the model at once and offer the tools of a server as soon as it has named them. The
 * second is theirs to take them in.
 */
function promptFor(ref: string, tool: string): string {
  const wait = 'until grep -q memory_get said; do sleep 0.1; done; sleep 1';
  return `What is the launch word? [[plan=bash:${wait}|${tool}:{"ref":"${ref}"}]]`;
}

function dataOnly({ svc }: Stage): Record<string, string> {
  return { SVC_DATA_HOME: svc.env['SVC_DATA_HOME'] ?? '' };
}

/** The exact text went back to the provider as the tool's result. */
function expectExactOutput(stage: Stage): void {
  const text = JSON.stringify(OUTPUT).slice(1, -1);
  const bodies = stage.provider.records.map(({ json }) => JSON.stringify(json));
  expect(bodies.some((body) => body.includes(text) || body.includes(escaped(text)))).toBe(true);
}

/** Codex hands a tool's result on as JSON in a string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
