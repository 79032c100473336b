import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { parseJson } from '../../../src/core/bytes/json-fields.ts';
import { publicJwk, publicPartOf } from '../../src/core/jws.ts';
import { ReceiptAudit } from '../../src/core/receipt-audit.ts';
import type { TenantStore } from '../../src/ports/service-store.ts';
import { buildChild } from '../../../test/support/build-child.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

// Bounded here; SVC_TEST_KILLS=200 asks for more.
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '4');
const TENANTS = ['default', 'acme'];

let child: string;

beforeAll(async () => {
  child = await buildChild('receipt-child', 'service-store-worker');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

test(
  'R27: after kills at any moment every opened request has one receipt, and no number is missing',
  { timeout: 60_000 + KILLS * 6000 },
  async () => {
    const folder = tempFolder();
    const seen = join(tempFolder(), 'seen');
    const { privateKey } = generateKeyPairSync('ed25519');
    const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const jwk = publicJwk(publicPartOf(text));
    const run = (mode: string) =>
      spawn(process.execPath, [child, folder, seen, jwk.kid, text, mode], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    for (let kill = 0; kill < KILLS; kill += 1) {
      const node = run('serve');
      const gone = once(node, 'close');
      // oxlint-disable-next-line no-await-in-loop
      await Promise.race([once(node.stdout, 'data'), gone]);
      // oxlint-disable-next-line no-await-in-loop
      await sleep(Math.random() * 500);
      node.kill('SIGKILL');
      // oxlint-disable-next-line no-await-in-loop
      await gone;
      expect(node.signalCode).toBe('SIGKILL');
    }
    await once(run('recover'), 'close');

    const audit = new ReceiptAudit([jwk]);
    const store = openServiceStore({ folder, creates: false, report: () => undefined });
    const stored: string[] = [];
    for (const tenant of TENANTS) {
      // oxlint-disable-next-line no-await-in-loop
      for (const body of await bodiesOf(store.of(tenant))) {
        const value = parseJson(body);
        audit.take(value);
        stored.push(`${tenant} ${String(Reflect.get(Object(value), 'receipt_id'))}`);
      }
      // oxlint-disable-next-line no-await-in-loop
      const heads = await store.of(tenant).listHeads({ limit: 1000, after: undefined });
      expect(heads.filter(({ body }) => body === undefined)).toEqual([]);
      for (const { body = '' } of heads) audit.take(parseJson(body));
    }
    await store.close();
    const { wrong, missing, receipts } = audit.result();
    expect([wrong, missing]).toEqual([[], []]);
    const opened = existsSync(seen) ? readFileSync(seen, 'utf8').trim().split('\n') : [];
    expect(opened.length).toBeGreaterThan(0);
    const known = new Set(stored);
    expect(opened.filter((line) => !known.has(line))).toEqual([]);
    expect(known.size).toBe(receipts);
    if (KILLS > 4)
      process.stderr.write(`${KILLS} kills, ${opened.length} seen, ${receipts} stored\n`);
  },
);

async function bodiesOf(store: TenantStore): Promise<readonly string[]> {
  const bodies: string[] = [];
  for (let after: string | undefined; ;) {
    const more = after === undefined ? {} : { after };
    // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
    const page = await store.listReceipts(
      { limit: 500, order: 'asc', ...more },
      AbortSignal.timeout(30_000),
    );
    bodies.push(...page.map(({ body }) => body));
    if (page.length < 500) return bodies;
    after = page.at(-1)?.receiptId;
  }
}
