import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { join } from 'node:path';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { recordOf } from '../support/records.ts';
import { requestRow } from '../support/request-row.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const HOUR_MS = 3_600_000;
const block = { edit: 'block' as const, count: 0, tokens: 9, refs: ['f1'] };

async function homeAfter(rows: readonly RequestRow[]) {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
  for (const row of rows) store.requestLog.add(row);
  await store.close();
  return (...args: string[]) => runHere(args, { home, env });
}

const bound = (changes: Partial<RequestRow>) =>
  ({
    ...requestRow({ at: Date.now() - HOUR_MS, items: [block], ...changes }),
    isBound: true,
  }) as RequestRow;

test('status, stop and uninstall name the conversations that cannot continue without svc', async () => {
  const svc = await homeAfter([
    bound({ id: 'r1', conversation: 'bound-now' }),
    bound({ id: 'r2', conversation: 'bound-last-week', at: Date.now() - 170 * HOUR_MS }),
    bound({ id: 'r3', conversation: 'without-a-block', items: [] }),
    requestRow({ id: 'r4', at: Date.now() - HOUR_MS, conversation: 'unbound', items: [block] }),
    bound({ id: 'r5', conversation: 'compacted', at: Date.now() - 2 * HOUR_MS }),
    requestRow({ id: 'r6', at: Date.now() - HOUR_MS, conversation: 'compacted' }),
  ]);
  for (const args of [['status'], ['stop'], ['uninstall', '--dry-run'], ['uninstall']]) {
    const { stderr } = await svc(...args);
    expect([args, stderr]).toEqual([
      args,
      expect.stringContaining('1 conversation of the last day cannot continue without svc'),
    ]);
    expect(stderr).toContain('bound-now');
    expect(stderr).not.toMatch(/last-week|without-a-block|unbound|compacted/);
    expect(stderr.match(/cannot continue/g)).toHaveLength(1);
  }
});

test.each(['embedded', 'hosted'])(
  'forget names the running conversations that lose thinking, with %s memory',
  async (kind) => {
    const service = kind === 'hosted' ? await startMemoryService() : undefined;
    const memory = service && {
      kind,
      baseUrl: service.url,
      serviceKey: await service.makeKey(),
      allowPrivate: true,
    };
    const home = homeWith({ ...validConfig(), proxy: { port: 0 }, ...(memory && { memory }) });
    const env = { SVC_DATA_HOME: join(home, 'data') };
    const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
    const told = 'The staging database of the walrus shop listens on port 6431.';
    const record = recordOf(told, { space: 'default' });
    const hosted =
      memory &&
      openHostedMemory({
        settings: { ...memory, kind: 'hosted' },
        recallMs: 10_000,
        report: () => undefined,
      });
    await (hosted ?? store).memory.capture([record], AbortSignal.timeout(30_000));
    await hosted?.close();
    const own = {
      kind: 'own-block',
      tenant: 'local',
      conversation: 'holds-it',
      fingerprint: 'f1',
    } as const;
    const text = writeRecallBlock([record], 512, []).text;
    const quoted = [{ ref: referenceOf(record.digest), space: 'default' }];
    await store.ledger.record([
      { ...own, block: text, form: 'text', space: 'default', quoted, at: Date.now() },
    ]);
    store.requestLog.add(bound({ id: 'r1', conversation: 'holds-it' }));
    store.requestLog.add(bound({ id: 'r2', conversation: 'holds-another', items: [] }));
    await store.close();
    const { stderr } = await runHere(['memory', 'forget', '--search', 'walrus', '--yes'], {
      home,
      env,
    });
    expect(stderr).toContain('1 running conversation held what was forgotten');
    expect(stderr).toContain('holds-it');
    expect(stderr).not.toContain('holds-another');
  },
);

test('status says that the provider was not reached and that memory failed, until a request succeeds', async () => {
  const at = (minutes: number) => Date.now() - minutes * 60_000;
  const failed = [
    requestRow({ id: 'r1', at: at(9), end: 'complete' }),
    requestRow({
      id: 'r2',
      at: at(5),
      end: 'UPSTREAM_UNREACHABLE',
      memoryState: 'degraded_unavailable',
    }),
    requestRow({
      id: 'r3',
      at: at(4),
      end: 'UPSTREAM_UNREACHABLE',
      memoryState: 'degraded_unavailable',
    }),
  ];
  const { stderr } = await (await homeAfter(failed))('status');
  expect(stderr).toContain('The last 2 requests did not reach the provider (UPSTREAM_UNREACHABLE');
  expect(stderr).toContain('Memory could not help in the last 2 requests (degraded_unavailable');
  const again = [
    ...failed,
    requestRow({ id: 'r4', at: at(1), end: 'complete', memoryState: 'empty' }),
  ];
  const { stderr: well } = await (await homeAfter(again))('status');
  expect(well).not.toMatch(/did not reach|could not help/);
});

test('doctor names the requests that went without memory, as status does', async () => {
  const state = { at: Date.now() - 60_000, memoryState: 'degraded_timeout' };
  const svc = await homeAfter([
    requestRow({ id: 'r1', ...state }),
    requestRow({ id: 'r2', ...state }),
  ]);
  const { stderr } = await svc('status');
  expect(stderr).toContain('Memory was too late for the last 2 requests (degraded_timeout');
  const { stdout, code } = await svc('doctor', '--offline');
  expect(stdout).toMatch(/warning +Requests: Memory was too late for the last 2 requests/);
  expect(stdout).toContain('"recallMs"');
  expect(code).toBe(0);
});

test('where there is no request log, status makes none and has no bad news', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const { stderr } = await runHere(['status'], { home });
  expect(stderr).toBe('svc: svc is not running. Start it with: svc start\n'.replace('svc: ', ''));
});

test('where another program has the port, status says so and not to start svc', async () => {
  const stranger = createServer((_, response) => response.end('hello'));
  await new Promise<void>((done) => stranger.listen(0, '127.0.0.1', done));
  onTestFinished(() => void stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const home = homeWith({ ...validConfig(), proxy: { port } });
  const { code, stderr } = await runHere(['status'], { home });
  const said = `svc does not run for this configuration: the program on 127.0.0.1:${port} is not svc. Stop that program, or: svc setup --yes --port ${port + 1}\n`;
  expect([code, stderr]).toEqual([1, said]);
});
