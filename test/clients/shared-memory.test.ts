import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test, type TestContext } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { runServiceCli, tempFolder } from '../support/cli.ts';
import { callService, keyIdOf } from '../../service/test/support/memory-service.ts';
import { listField } from '../support/scripted-provider/loose-json.ts';
import {
  initService,
  makeServiceKey,
  runService,
  type ServiceProcess,
} from '../../service/test/support/service-process.ts';
import { runClaude } from './support/claude-code.ts';
import { installedClient } from './support/installed-client.ts';
import { expectSameAnswers, expectSameBodies, insertedText } from './support/laws.ts';
import { type CallPair, callPairs, evidence, openStage, type Stage } from './support/stage.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/** Real Claude Code on two homes, each behind its own proxy, and one memory service over TLS. */

const claude = await installedClient('claude');

beforeEach((context: TestContext) => {
  if (claude.missing !== undefined) context.skip(claude.missing);
});

const tls = makeCertificate('localhost');
let files: { cert: string; key: string };

beforeAll(() => {
  const folder = tempFolder();
  files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, tls.cert);
  writeFileSync(files.key, tls.key, { mode: 0o600 });
});

interface Shared {
  readonly home: string;
  readonly service: ServiceProcess;
  /** The folder that both homes work in: its path names the space. */
  readonly project: string;
  /** A home of its own with a key of its own. */
  readonly open: (...keyFlags: string[]) => Promise<{ stage: Stage; key: string }>;
}

async function openShared(): Promise<Shared> {
  const home = tempFolder();
  await initService(home, '--tls-cert', files.cert, '--tls-key', files.key);
  const service = await runService(home, '--quiet');
  const project = join(tempFolder(), 'shop');
  mkdirSync(project);
  const open = async (...keyFlags: string[]) => {
    const key = await makeServiceKey(home, ...keyFlags);
    const baseUrl = `https://localhost:${service.port}`;
    const memory = { kind: 'hosted', baseUrl, serviceKey: key, allowPrivate: true };
    const env = { NODE_EXTRA_CA_CERTS: files.cert };
    const stage = await openStage({}, { memory, env });
    return { stage, key };
  };
  return { home, service, project, open };
}

/** The first call with tools of this prompt. */
async function say(stage: Stage, project: string, prompt: string): Promise<CallPair> {
  const before = stage.provider.records.length;
  const run = await runClaude(claude, stage, { prompt, project });
  expect(run, run.stderr).toMatchObject({ status: 0 });
  const asked = callPairs(stage).find(
    ({ record }) =>
      record.n > before &&
      record.path === '/v1/messages' &&
      listField(record.json, 'tools').length > 0,
  );
  if (asked === undefined) throw new Error('no call with tools reached the provider');
  return asked;
}

async function texts({ port }: ServiceProcess, key: string): Promise<string> {
  const { json } = await callService(`https://127.0.0.1:${port}`, '/v1/svc/memory/items', {
    key,
    ca: tls.cert,
  });
  return JSON.stringify(json.data);
}

describe('Claude Code on two homes that share one memory service', () => {
  test('what one said the other recalls', async () => {
    const { service, project, open } = await openShared();
    const [one, other] = [await open(), await open()];
    await say(one.stage, project, FACT);
    await expect.poll(() => texts(service, one.key), { timeout: 30_000 }).toContain(SECRET_OF_FACT);
    const asked = await say(other.stage, project, QUESTION);
    expect(asked.clientBody.includes(SECRET_OF_FACT)).toBe(false);
    expect(insertedText(asked)).toContain(SECRET_OF_FACT);
    expect(evidence(asked, 'x-svc-memory-state')).toBe('recalled');
  });

  test('a key that only reads recalls, and writes nothing', async () => {
    const { service, project, open } = await openShared();
    const [writer, reader] = [await open(), await open('--scopes', 'read')];
    await say(writer.stage, project, FACT);
    await expect
      .poll(() => texts(service, writer.key), { timeout: 30_000 })
      .toContain(SECRET_OF_FACT);
    const asked = await say(reader.stage, project, `${QUESTION} I am called otter-nine.`);
    expect(insertedText(asked)).toContain(SECRET_OF_FACT);
    expect(evidence(asked, 'x-svc-memory-mode')).toBe('read');
    // Whatever waits is delivered when it ends.
    await reader.stage.svc.stop();
    expect(await texts(service, writer.key)).not.toContain('otter-nine');
  });

  test('a revoked key stops at once; the proxy goes on without memory, and its header says so', async () => {
    const { home, service, project, open } = await openShared();
    const [kept, lost] = [await open(), await open()];
    await say(kept.stage, project, FACT);
    await expect
      .poll(() => texts(service, kept.key), { timeout: 30_000 })
      .toContain(SECRET_OF_FACT);
    expect(evidence(await say(lost.stage, project, QUESTION), 'x-svc-memory-state')).toBe(
      'recalled',
    );
    const revoked = await runServiceCli(['keys', 'revoke', keyIdOf(lost.key)], { home });
    expect(revoked, revoked.stderr).toMatchObject({ code: 0 });
    // A new conversation: what is in an old one already goes on being replayed.
    const asked = await say(lost.stage, project, `Tell me once more. ${QUESTION}`);
    expect(evidence(asked, 'x-svc-memory-state')).toBe('degraded_denied');
    expectSameBodies([asked]);
    expectSameAnswers([asked]);
    await lost.stage.svc.stop();
    expect(evidence(await say(kept.stage, project, QUESTION), 'x-svc-memory-state')).toBe(
      'recalled',
    );
  });
});
