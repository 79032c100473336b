import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import type { StoredRecord } from '../../src/ports/memory.ts';
import { makeCertificate } from '../support/certificate.ts';
import { runServiceCli, SERVICE_BIN, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo, promptOf } from '../support/dialect-wire.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import {
  type ServerProcess,
  startProxyProcess,
  startServerProcess,
} from '../support/proxy-process.ts';
import { until } from '../support/sockets.ts';
import { startRecordingProvider } from '../support/story.ts';

// R27: real processes, real TLS, SIGKILL at any moment. More kills: SVC_TEST_KILLS=200.
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '4');
const LATEST_KILL_MS = 400;
const SECONDS_PER_KILL = 30;

const promptFor = (name: string): string => `Remember: parcel ${name} went to the harbour.`;
const answerFor = (name: string): string => `Parcel ${name} is noted as sent to the harbour.`;

interface Stage {
  readonly startService: () => Promise<ServerProcess>;
  readonly startProxy: () => Promise<ServerProcess>;
  /** Everything that the service holds. */
  readonly records: () => Promise<readonly StoredRecord[]>;
}

async function openStage(): Promise<Stage> {
  const provider = await startRecordingProvider();
  provider.reply = (request) => {
    const [, name = ''] = /parcel (\S+) went/.exec(request.body.toString()) ?? [];
    return answerTo(request, { text: answerFor(name) });
  };
  const { key, cert } = makeCertificate('localhost');
  const folder = tempFolder();
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  writeFileSync(keyFile, key, { mode: 0o600 });
  writeFileSync(certFile, cert);
  const port = await freePort();
  const env = { HOME: folder };
  const flags = ['--port', String(port), '--tls-cert', certFile, '--tls-key', keyFile];
  const made = await runServiceCli(['init', ...flags], { home: folder });
  expect([made.code, made.stderr]).toEqual([0, made.stderr]);
  const { stdout } = await runServiceCli(['keys', 'create', '--json'], { home: folder });
  const { secret: serviceKey } = JSON.parse(stdout) as { secret: string };
  const baseUrl = `https://localhost:${port}`;
  const memory = { kind: 'hosted', baseUrl, serviceKey, allowPrivate: true } as const;
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const home = homeWith({
    ...validConfig(),
    proxy: { recallMs: 300 },
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
    memory,
  });
  return {
    startService: () => startServerProcess(['start', '--json', '--quiet'], env, SERVICE_BIN),
    startProxy: () => startProxyProcess(home, { NODE_EXTRA_CA_CERTS: certFile }),
    records: async () => {
      const hosted = openHostedMemory({
        settings: memory,
        trust: { ca: cert },
        recallMs: 10_000,
        report: () => undefined,
      });
      const all: StoredRecord[] = [];
      for (;;) {
        const filter = { limit: 1000, offset: all.length };
        // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
        const page = await hosted.memory.list(filter, AbortSignal.timeout(60_000));
        all.push(...page);
        if (page.length < filter.limit) break;
      }
      await hosted.close();
      return all;
    },
  };
}

/** Sends prompts one after the other until the connection breaks; notes each that was answered whole. */
async function talk(url: string, run: string, answered: string[]): Promise<void> {
  for (let count = 0; ; count += 1) {
    const name = `${run}-${count}`;
    try {
      // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
      const response = await fetch(`${url}/v1/messages`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-api-key': LOCAL_TOKEN,
          // Without recall: an answer that is like a recalled one is not kept, and rightly so.
          'x-svc-memory-mode': 'write',
        },
        body: JSON.stringify(promptOf('anthropic_messages', promptFor(name))),
        signal: AbortSignal.timeout(30_000),
      });
      // oxlint-disable-next-line no-await-in-loop
      const text = await response.text();
      if (response.status !== 200 || !text.includes(name)) return;
      answered.push(name);
    } catch {
      return;
    }
  }
}

test(
  `R27: ${KILLS} kills of proxy or service: every answered exchange is in the memory, once`,
  async () => {
    const stage = await openStage();
    const answered: string[] = [];
    let service = await stage.startService();
    let proxy = await stage.startProxy();
    for (let kill = 0; kill < KILLS; kill += 1) {
      // oxlint-disable no-await-in-loop -- One kill after the other.
      const talking = talk(proxy.url, `k${kill}`, answered);
      // Without any answer the kills would prove nothing, and a busy machine gives none for long.
      if (kill === 0) await until(() => answered.length > 0);
      await wait(Math.random() * LATEST_KILL_MS);
      if (kill % 2 === 1) {
        await service.kill('SIGKILL');
        service = await stage.startService();
        await wait(Math.random() * LATEST_KILL_MS);
      }
      await proxy.kill('SIGKILL');
      await talking;
      proxy = await stage.startProxy();
      // oxlint-enable no-await-in-loop
    }
    const wanted = answered.flatMap((name) => [promptFor(name), answerFor(name)]);
    const missing = async (): Promise<string[]> => {
      const texts = new Set((await stage.records()).map(({ text }) => text));
      return wanted.filter((text) => !texts.has(text));
    };
    await expect.poll(missing, { timeout: 120_000, interval: 1000 }).toEqual([]);
    const records = await stage.records();
    expect(new Set(records.map(({ text }) => text)).size).toBe(records.length);
    if (process.env['SVC_TEST_KILLS'] === undefined) return;
    process.stderr.write(`${KILLS} kills, ${answered.length} answers, ${records.length} records\n`);
  },
  KILLS * SECONDS_PER_KILL * 1000 + 180_000,
);
