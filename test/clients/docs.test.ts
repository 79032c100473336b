import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, expect, test } from 'vitest';
import { clientEnvironment } from './support/claude-code.ts';
import { documented } from './support/documented.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import { expectEvidence, expectKeysInPlace } from './support/laws.ts';
import { runProgram } from './support/program.ts';
import { type Stage, callPairs, evidence, openStage } from './support/stage.ts';

const clients = { sdk: await installedClient('sdk'), node24: await installedClient('node24') };

beforeEach((context: TestContext) => {
  const missing = clients.sdk.missing ?? clients.node24.missing;
  if (missing !== undefined) context.skip(missing);
});

const PROGRAMS = [
  { name: 'openai.ts', calls: 2 },
  { name: 'anthropic.ts', calls: 1 },
  { name: 'vercel.ts', calls: 2 },
];

test.each(PROGRAMS)('docs/sdks.md: $name runs as it stands there', async ({ name, calls }) => {
  const stage = await openStage();
  symlinkSync(join(clients.sdk.folder, 'node_modules'), join(stage.project, 'node_modules'));
  const file = join(stage.project, name.replace('.ts', '.mts'));
  writeFileSync(file, documented('sdks.md', name, stage));
  const end = await run(stage, binaryOf(clients.node24, 'node'), [file]);
  expect(end, end.stderr).toMatchObject({ status: 0 });
  expect(end.stdout.trim()).not.toBe('');
  const pairs = callPairs(stage);
  expect(pairs.length).toBe(calls);
  expectEvidence(pairs);
  expectKeysInPlace(stage);
});

test('docs/sdks.md: curl.sh runs as it stands there', async () => {
  const stage = await openStage();
  const end = await run(stage, 'sh', ['-c', documented('sdks.md', 'curl.sh', stage)]);
  expect(end, end.stderr).toMatchObject({ status: 0 });
  expect(end.stdout).toContain('HTTP/1.1 200');
  const [pair] = callPairs(stage);
  expect(pair && evidence(pair, 'x-svc-memory-mode')).toBe('read');
});

function run(stage: Stage, file: string, args: readonly string[]) {
  const env = { ...clientEnvironment(stage), SVC_LOCAL_PROXY_TOKEN: stage.svc.token };
  return runProgram({ file, args, folder: stage.project, env }).ended;
}
