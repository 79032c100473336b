import { flattenedVerify, importJWK } from 'jose';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';
import { newReceiptId } from '../../src/core/ids.ts';
import { NOTHING_DECIDED } from '../../src/core/receipts.ts';
import { JournalFullError } from '../../src/ports/receipt-store.ts';
import { openConsole, type OpenedConsole } from '../support/console.ts';
import { callService } from '../support/memory-service.ts';
import { closingOf, openingOf, RECEIVED_AT } from '../support/receipt-facts.ts';
import { FIRST, TestMasterKeys } from '../support/test-vault.ts';

const SCOPES = ['read', 'write', 'receipt:read'];

async function openSigned(
  more: { readonly journalBytesMax?: number } = {},
): Promise<OpenedConsole & { readonly key: string }> {
  const opened = await openConsole({ masterKeys: new TestMasterKeys(FIRST), ...more });
  await opened.ask('POST vault/keys', { key_id: FIRST });
  await opened.ask('POST signing/rotate', {});
  const { secret } = (await opened.ask('POST keys', { name: 'k', scopes: SCOPES })).json;
  return { ...opened, key: secret };
}

/** Receipts of `count` requests, a second apart, stored. */
async function serve(
  { service }: Pick<OpenedConsole, 'service'>,
  count: number,
  more: object = {},
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const opening = openingOf({ at: RECEIVED_AT + number * 1000, ...more });
    ids.push(opening.receiptId);
    service.receipts.open(opening).close(closingOf({ requestSha256: 'ab'.repeat(32) }));
  }
  expect(await service.receipts.flush()).toBe(true);
  return ids;
}

// spec: 2.2-signed, 4.2-one, 9-receipt-v1
test('a receipt can be read by its id, and an independent library verifies it', async () => {
  const opened = await openSigned();
  const { key, askMemory, service } = opened;
  const [id = ''] = await serve(opened, 1);
  const { status, json } = await askMemory(`requests/${id}`, key);
  expect([status, json.receipt_id, json.tenant_id]).toEqual([200, id, 'default']);
  const { signature, ...rest } = json;
  const { keys } = (await callService(service.url, '/.well-known/svc/receipt-keys.json')).json;
  const [header = '', , sealed = ''] = signature.jws.split('.');
  const payload = Buffer.from(canonicalJson(rest) ?? '').toString('base64url');
  const jws = { protected: header, payload, signature: sealed };
  const verified = await flattenedVerify(jws, await importJWK(keys[0], 'Ed25519'));
  expect(JSON.parse(Buffer.from(verified.payload).toString())).toEqual(rest);
  const forged = Buffer.from(canonicalJson({ ...rest, output_tokens: 0 }) ?? '').toString(
    'base64url',
  );
  await expect(
    flattenedVerify({ ...jws, payload: forged }, await importJWK(keys[0], 'Ed25519')),
  ).rejects.toThrow('signature verification failed');
});

// spec: 4.2-scope, 5.2-receipt-scope
test('receipts are read with receipt:read, in their own tenant; a young one may be on its way', async () => {
  const opened = await openSigned();
  const { ask, askMemory, key, clock } = opened;
  const [id = ''] = await serve(opened, 1);
  const reader = (await ask('POST keys', { name: 'r', scopes: ['read'] })).json.secret;
  expect((await askMemory(`requests/${id}`, reader)).json.error.code).toBe('SCOPE_DENIED');
  await ask('POST tenants', { tenant_id: 'acme' });
  const body = { name: 'o', scopes: SCOPES };
  const other = (await ask('POST keys', body, { tenant: 'acme' })).json.secret;
  const lost = await askMemory(`requests/${id}`, other);
  expect([lost.status, lost.json.error.code]).toEqual([404, 'NOT_FOUND']);
  expect((await askMemory('requests', other)).json.data).toEqual([]);
  const young = newReceiptId(clock.now(), () => new Uint8Array(10));
  const soon = await askMemory(`requests/${young}`, key);
  expect([soon.status, soon.headers['retry-after']]).toEqual([404, '1']);
  const old = newReceiptId(clock.now() - 3_600_000, () => new Uint8Array(10));
  expect((await askMemory(`requests/${old}`, key)).headers['retry-after']).toBe(undefined);
  expect((await askMemory('requests/rcpt_nonsense', key)).status).toBe(404);
});

// spec: 4.2-list
test('a list is newest first, in pages from both ends, with its filters', async () => {
  const opened = await openSigned();
  const { askMemory, key } = opened;
  const ids = (await serve(opened, 5)).toReversed();
  await serve(opened, 1, { at: RECEIVED_AT - 5000, model: 'claude', keyId: 'other' });
  const page = async (query: string) => (await askMemory(`requests?${query}`, key)).json;
  const first = await page('limit=2');
  const idsOf = ({ data }: { data: { receipt_id: string }[] }) => data.map((one) => one.receipt_id);
  expect(idsOf(first)).toEqual(ids.slice(0, 2));
  expect(first).toMatchObject({ has_more: true, next_cursor: ids[1], first_id: ids[0] });
  const second = await page(`limit=2&after=${first.next_cursor}`);
  expect(idsOf(second)).toEqual(ids.slice(2, 4));
  const back = await page(`limit=2&before=${ids[4]}`);
  expect(idsOf(back)).toEqual(ids.slice(2, 4));
  expect(back).toMatchObject({ has_more: true, next_cursor: null });
  expect(idsOf(await page(`limit=2&before=${ids[2]}`))).toEqual(ids.slice(0, 2));
  expect(idsOf(await page('model=claude'))).toHaveLength(1);
  expect(idsOf(await page('api_key_id=other&status=completed'))).toHaveLength(1);
  expect(idsOf(await page('status=unknown'))).toEqual([]);
  const from = new Date(RECEIVED_AT + 3000).toISOString();
  expect(idsOf(await page(`from=${from}&order=asc`))).toEqual(ids.slice(0, 2).toReversed());
  for (const wrong of [
    'limit=0',
    'limit=101',
    'status=done',
    'colour=red',
    'after=x',
    'limit=1&limit=2',
  ]) {
    // oxlint-disable-next-line no-await-in-loop
    expect([wrong, (await page(wrong)).error.code]).toEqual([wrong, 'INVALID_REQUEST']);
  }
});

// spec: 2.2-original_input_tokens, 2.2-forwarded_input_tokens, 2.2-recalled_tokens, 2.2-output_tokens
// spec: 2.2-memory_mode, 2.2-memory_state, 2.2-compression_mode
test('a receipt has the estimates, the counts of the provider, what was asked and what happened', async () => {
  const opened = await openSigned();
  const decided = {
    ...NOTHING_DECIDED,
    memory_mode: 'read-write',
    memory_mode_effective: 'read',
    memory_state: 'recalled',
    compression_mode_requested: 'deterministic',
    compression_mode: 'passthrough',
    continuity_state: 'bypassed_not_stored',
    original_input_tokens: 1200,
    forwarded_input_tokens: 1300,
    recalled_tokens: 100,
  } as const;
  const [id = ''] = await serve(opened, 1, { decided });
  const { json } = await opened.askMemory(`requests/${id}`, opened.key);
  expect(json).toMatchObject({
    original_input_tokens: 1200,
    forwarded_input_tokens: 1300,
    recalled_tokens: 100,
    output_tokens: 7,
    memory_mode: 'read-write',
    memory_mode_effective: 'read',
    memory_state: 'recalled',
    compression_mode_requested: 'deterministic',
    compression_mode: 'passthrough',
    continuity_state: 'bypassed_not_stored',
  });
});

test('heads say the last number of each node, signed, and closed once the node has ended', async () => {
  const opened = await openSigned();
  const { askMemory, key, service, ask } = opened;
  await serve(opened, 3);
  const [head] = (await askMemory('requests/heads', key)).json.data;
  expect(head).toMatchObject({ last_seq: 3, closed: false, tenant_id: 'default' });
  expect(head.signature.kid).toBe((await ask('GET signing')).json.data[0].kid);
  await service.receipts.close();
  const [closed] = (await askMemory('requests/heads', key)).json.data;
  expect(closed).toMatchObject({ last_seq: 3, closed: true, node: head.node });
});

test('admins see the same receipts, and what requests came to', async () => {
  const opened = await openSigned();
  const { ask, tokenOf } = opened;
  const ids = await serve(opened, 3);
  const viewer = { key: await tokenOf('viewer') };
  const list = await ask('GET requests?limit=2', undefined, viewer);
  expect(list.json.data).toHaveLength(2);
  expect((await ask(`GET requests/${ids[0]}`, undefined, viewer)).json.receipt_id).toBe(ids[0]);
  expect((await ask('GET requests/heads', undefined, viewer)).json.data[0].last_seq).toBe(3);
  const days = 'from=2026-11-01&to=2026-11-30';
  const usage = await ask(`GET usage?${days}&group_by=model,day`, undefined, viewer);
  expect(usage.json.data).toEqual([
    {
      day: '2026-11-20',
      model: 'gpt-5',
      requests: 3,
      failed: 0,
      original_input_tokens: 360,
      forwarded_input_tokens: 300,
      recalled_tokens: 0,
      elided_tokens: 0,
      input_tokens: 330,
      cache_read_tokens: 60,
      output_tokens: 21,
      spent_tokens: 351,
    },
  ]);
  await serve(opened, 1, { keyId: 'second' });
  const first = await ask(`GET usage?${days}&group_by=key&limit=1`, undefined, viewer);
  expect(first.json).toMatchObject({ has_more: true, data: [{ requests: 3 }] });
  const cursor: string = first.json.next_cursor;
  const rest = await ask(`GET usage?${days}&group_by=key&after=${cursor}`, undefined, viewer);
  expect(rest.json.data).toMatchObject([{ api_key_id: 'second', requests: 1 }]);
  const wrong = await ask(`GET usage?after=${cursor}&group_by=key,day`, undefined, viewer);
  expect(wrong.json.error.param).toBe('after');
});

test('a full journal makes the service not ready', async () => {
  const opened = await openSigned({ journalBytesMax: 1 << 20 });
  const { service, ask } = opened;
  expect((await callService(service.url, '/readyz')).status).toBe(200);
  expect(() => {
    for (;;) service.receipts.open(openingOf());
  }).toThrow(JournalFullError);
  opened.clock.goOn(2000);
  const { status, json } = await callService(service.url, '/readyz');
  expect([status, json.checks.journal.status]).toEqual([503, 'fail']);
  expect((await ask('GET status')).json.problems.journal).toContain('full');
});
