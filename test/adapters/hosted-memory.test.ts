import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { formatServiceKey } from '../../src/core/memory-api/service-key.ts';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { contentDigest, referenceOf, textDigest } from '../../src/core/memory/reference.ts';
import type { ForgetFilter } from '../../src/ports/memory.ts';
import { freePort } from '../support/free-port.ts';
import { blockEntry, foundBlocks, foundEntries } from '../support/ledger-entries.ts';
import { makeCertificate } from '../support/certificate.ts';
import { FakeService, refuse } from '../support/fake-service.ts';
import { openHostedScene, patience, settingsFor } from '../support/hosted.ts';
import { startMemoryService } from '../../service/test/support/memory-service.ts';
import { outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { MemoryError } from '../../src/core/errors.ts';

const CAPTURE = '/v1/svc/memory/capture';
const RECALL = '/v1/svc/memory/recall';

test('R22: over TLS with the certificate checked for the name, and not without', async () => {
  const { key, cert } = makeCertificate('localhost');
  const service = await new FakeService({ key, cert }).listen();
  onTestFinished(() => service.close());
  const open = (trust: object) => {
    const hosted = openHostedMemory({
      settings: settingsFor(service),
      recallMs: 10_000,
      report: () => undefined,
      ...trust,
    });
    onTestFinished(() => hosted.close());
    return hosted.memory;
  };
  const known = open({ trust: { ca: cert } });
  expect(await known.capture([recordOf('By TLS.')], patience())).toEqual(['stored']);
  const stranger = open({}).recall(questionOf('anything'), patience());
  await expect(stranger).rejects.toMatchObject({ reason: 'unavailable' });
  const other = open({ trust: { ca: makeCertificate('localhost').cert } });
  await expect(other.recall(questionOf('anything'), patience())).rejects.toThrowError(
    /could not be reached \([A-Z_]+\)/,
  );
  expect(service.count(RECALL)).toBe(0);
});

test('R35: a service on a private address or on open http is not asked unless it may be', async () => {
  const service = await new FakeService().listen();
  onTestFinished(() => service.close());
  const ask = async (baseUrl: string, allowPrivate: boolean): Promise<unknown> => {
    const settings = { ...settingsFor(service), baseUrl, allowPrivate };
    const hosted = openHostedMemory({ settings, recallMs: 1000, report: () => undefined });
    const asked = hosted.memory.recall(questionOf('anything'), patience());
    const result = await asked.catch((error: unknown) => error);
    await hosted.close();
    return result;
  };
  expect(await ask(service.url, false)).toMatchObject({ reason: 'unavailable' });
  expect(await ask('http://10.1.2.3:80', true)).toMatchObject({
    message: 'The address of the memory service is not allowed.',
  });
  expect(service.seen).toEqual([]);
  expect(await ask(service.url, true)).toEqual({ passages: [] });
});

// spec: 2.4-service-key, 2.4-recall-query, 5.7-service-key
test('R29: the service key stands in one header, and in no path, body, error or line', async () => {
  const { service, hosted, lines } = await openHostedScene();
  await hosted.watch();
  await hosted.memory.capture([recordOf('A fact.')], patience());
  await hosted.memory.recall(questionOf('fact'), patience());
  await hosted.memory.list({ limit: 5, words: 'fact' }, patience());
  service.revoked = true;
  const denied = await hosted.memory
    .recall(questionOf('fact'), patience())
    .catch((error: unknown) => error);
  for (const { headers, path, query, body } of service.seen) {
    expect(headers.filter((value) => value.includes(service.key))).toEqual([
      `Bearer ${service.key}`,
    ]);
    expect(path + query.toString() + body).not.toContain(service.key.slice(9));
  }
  expect(JSON.stringify([lines, String(denied)])).not.toContain(service.key.slice(9, 30));
});

test('a key that is revoked stops the memory at once, with one line, and nothing more is sent', async () => {
  const { service, hosted, lines } = await openHostedScene();
  await hosted.memory.capture([recordOf('A fact.')], patience());
  service.revoked = true;
  const ask = () => hosted.memory.recall(questionOf('fact'), patience());
  await expect(ask()).rejects.toMatchObject({ reason: 'denied' });
  const { length } = service.seen;
  await expect(ask()).rejects.toMatchObject({ reason: 'denied' });
  const capture = hosted.memory.capture([recordOf('Another.')], patience());
  await expect(capture).rejects.toMatchObject({ reason: 'denied' });
  expect(service.seen).toHaveLength(length);
  expect(lines).toEqual([expect.stringContaining('refuses the service key')]);
  // Renewed on the other side: whoami finds out.
  service.revoked = false;
  await hosted.watch();
  expect((await ask()).passages).toHaveLength(1);
});

test.each([
  ['the same', 't_1', 1],
  ['another', 't_2', 0],
])(
  'R27: what waits for a key that was revoked goes out with a key of %s tenant: %s',
  async (_, tenant, delivered) => {
    const { service, hosted, reopen } = await openHostedScene();
    await hosted.watch();
    service.key = formatServiceKey(new Uint8Array(8).fill(5), new Uint8Array(32).fill(5));
    expect(hosted.outbox.keep([recordOf('The ferry leaves at nine.')])).toBe(true);
    await hosted.outbox.flush(1_000);
    expect(hosted.outbox.waiting).toBe(1);
    await hosted.close();
    service.alter = ({ path }, answer) =>
      path.endsWith('/whoami') ? { ...answer, tenant_id: tenant } : answer;
    const other = reopen({ settings: settingsFor(service) });
    await other.watch();
    await other.outbox.flush(30_000);
    expect(await other.memory.list({ limit: 5 }, patience())).toHaveLength(delivered);
  },
);

// spec: 3.1-scopes-read-write, 3.1-scopes-read, 3.1-scopes-write, 3.1-scopes-none
test('the scopes of the key lower what the memory supports, from whoami and from a refusal', async () => {
  const { service, hosted, reopen } = await openHostedScene();
  expect(hosted.memory.supports).toEqual({ kind: 'hosted', read: true, write: true });
  service.operations.scopes = ['read'];
  await hosted.watch();
  expect(hosted.memory.supports).toMatchObject({ read: true, write: false });
  const other = reopen();
  const refused = other.memory.capture([recordOf('No.')], patience());
  await expect(refused).rejects.toMatchObject({ reason: 'denied' });
  expect(other.memory.supports).toMatchObject({ read: true, write: false });
  service.operations.scopes = ['write'];
  await other.watch();
  expect(other.memory.supports).toMatchObject({ read: false, write: true });
  service.operations.scopes = ['receipt:read'];
  await other.watch();
  expect(other.memory.supports).toMatchObject({ read: false, write: false });
});

test('R25: a key of one project recalls there, without what all projects share', async () => {
  const service = await startMemoryService();
  const settings = {
    kind: 'hosted',
    baseUrl: service.url,
    serviceKey: await service.makeKey({ spaces: ['project/*'] }),
    allowPrivate: true,
  } as const;
  const hosted = openHostedMemory({ settings, recallMs: 10_000, report: () => undefined });
  onTestFinished(() => hosted.close());
  const fact = recordOf('The quokka enclosure is north.', { space: 'project/zoo' });
  await hosted.memory.capture([fact], patience());
  const ask = async (space: string) =>
    hosted.memory.recall(questionOf('where is the quokka enclosure?', { space }), patience());
  expect((await ask('project/zoo')).passages).toHaveLength(1);
  await hosted.watch();
  expect((await ask('project/zoo')).passages).toHaveLength(1);
  expect(service.calls.filter(({ status }) => status === 403)).toHaveLength(1);
  await expect(ask('elsewhere')).rejects.toMatchObject({ reason: 'denied' });
});

// spec: 7-409
test('409: a space that has moved on is captured anew, and what was acknowledged before is not proven', async () => {
  const { service, hosted } = await openHostedScene();
  const output = outputRecordOf('a build log');
  await hosted.memory.capture([output], patience());
  service.operations.moveOn('project', { counter: 5 });
  expect(await hosted.memory.capture([recordOf('New.')], patience())).toEqual(['stored']);
  expect(service.count(CAPTURE)).toBe(3);
  const question = { space: 'project', digests: [output.digest], nonce: randomBytes(32) };
  expect(await hosted.memory.hold(question, patience())).toEqual([]);
  // Nothing to ask about: the acknowledgements of the old generation are gone.
  expect(service.count(RECALL)).toBe(0);
  expect(await hosted.memory.capture([output], patience())).toEqual(['duplicate']);
  expect(await hosted.memory.hold(question, patience())).toEqual([
    { digest: output.digest, proof: textProof(question.nonce, 'tool', output.text) },
  ]);
});

test('409 for ever is no endless loop', async () => {
  const { service, hosted } = await openHostedScene();
  service.intercept = (call, response) => {
    refuse(response, 'STALE_GENERATION', { details: { current_generation: 'gA.1' } });
    return call.path !== '';
  };
  const captured = hosted.memory.capture([recordOf('New.')], patience());
  await expect(captured).rejects.toBeInstanceOf(MemoryError);
  expect(service.seen).toHaveLength(2);
});

test('422: a record that the service cannot take is given up, an answer that is garbage loses nothing', async () => {
  const { service, hosted } = await openHostedScene();
  service.intercept = (_, response) => {
    refuse(response, 'INVALID_REQUEST');
    return true;
  };
  const refused = hosted.memory.capture([recordOf('New.')], patience());
  await expect(refused).rejects.toMatchObject({ reason: 'invalid' });
  service.intercept = (_, response) => {
    response.writeHead(422, { 'content-type': 'text/html' }).end('<html>');
    return true;
  };
  const garbage = hosted.memory.capture([recordOf('New.')], patience());
  await expect(garbage).rejects.toMatchObject({ reason: 'unavailable' });
});

// spec: 7-429, 7-503
test.each([
  ['RATE_LIMIT_EXCEEDED', { 'retry-after': '30' }, 'rate_limited'],
  ['STORE_UNAVAILABLE', { 'retry-after': '30' }, 'unavailable'],
  ['RATE_LIMITER_UNAVAILABLE', { 'x-should-retry': 'false' }, 'unavailable'],
  ['SHUTTING_DOWN', { 'retry-after-ms': '30000' }, 'unavailable'],
] as const)(
  '429, 503 %s: nothing is sent before the time that the service asked for (%o)',
  async (code, headers, reason) => {
    const { service, hosted } = await openHostedScene();
    service.intercept = (call, response) => {
      refuse(response, code, { headers });
      return call.path !== '';
    };
    const ask = () => hosted.memory.recall(questionOf('fact'), patience());
    await expect(ask()).rejects.toMatchObject({ reason });
    await expect(ask()).rejects.toMatchObject({ reason });
    expect(hosted.outbox.keep([recordOf('Waits.')])).toBe(true);
    await hosted.outbox.flush(300);
    expect(service.seen).toHaveLength(1);
    expect(hosted.outbox.waiting).toBe(1);
  },
);

test('one false proof: the service is left alone for as long as was said', async () => {
  const { service, hosted } = await openHostedScene();
  hosted.memory.distrust(15_000);
  const asked = hosted.memory.recall(questionOf('anything'), patience());
  await expect(asked).rejects.toMatchObject({ reason: 'invalid' });
  expect(service.seen).toEqual([]);
});

test('a service without proofs is asked for none', async () => {
  const { service, hosted } = await openHostedScene();
  service.operations.features = [];
  await hosted.watch();
  const output = outputRecordOf('a build log');
  await hosted.memory.capture([output], patience());
  const question = { space: 'project', digests: [output.digest], nonce: randomBytes(32) };
  expect(await hosted.memory.hold(question, patience())).toEqual([]);
  expect(service.count(RECALL)).toBe(0);
});

test('only digests of what was given and acknowledged are ever sent', async () => {
  const { service, hosted } = await openHostedScene();
  const [given, never] = [outputRecordOf('given'), outputRecordOf('never given')];
  await hosted.memory.capture([given], patience());
  const digests = [given.digest, never.digest];
  await hosted.memory.hold({ space: 'project', digests, nonce: randomBytes(32) }, patience());
  const held = recordOf('held here, never given');
  await hosted.memory.recall(questionOf('given', { excludeDigests: [held.digest] }), patience());
  const [proof, recall] = service.seen.slice(-2).map(({ body }) => JSON.parse(body));
  expect(proof.candidates).toHaveLength(1);
  expect(recall.exclude_digests).toBe(undefined);
  expect(JSON.stringify(service.seen)).not.toContain(never.digest);
  expect(JSON.stringify(service.seen)).not.toContain(held.digest);
});

test('acknowledgements outlive the process: the same outputs are proven after a restart', async () => {
  const { hosted, reopen, folder, service } = await openHostedScene();
  const output = outputRecordOf('a build log');
  await hosted.memory.capture([output], patience());
  for (const name of ['state.db', 'state.db-wal']) {
    const path = join(folder, name);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const text = readFileSync(path, 'latin1');
    expect(text).not.toContain('build log');
    expect(text).not.toContain(service.key.slice(9, 21));
  }
  await hosted.close();
  const question = { space: 'project', digests: [output.digest], nonce: randomBytes(32) };
  const again = reopen();
  expect(await again.memory.hold(question, patience())).toHaveLength(1);
});

test('what one process had acknowledged another one proves, and no longer once the space has moved on', async () => {
  const { hosted, reopen, service } = await openHostedScene();
  const beside = reopen();
  const [first, second] = [outputRecordOf('a build log'), outputRecordOf('another log')];
  const hold = (digest: string) => {
    const question = { space: 'project', digests: [digest], nonce: randomBytes(32) };
    return beside.memory.hold(question, patience());
  };
  await hosted.memory.capture([first], patience());
  expect(await hold(first.digest)).toHaveLength(1);
  service.operations.moveOn('project', { counter: 1, sequence: 0 });
  await hosted.memory.capture([second], patience());
  await beside.memory.recall(questionOf('anything'), patience());
  expect(await hold(second.digest)).toHaveLength(1);
  expect(await hold(first.digest)).toEqual([]);
});

test.each<[string, (ref: string) => ForgetFilter]>([
  ['by reference', (ref) => ({ refs: [ref] })],
  ['by words', () => ({ words: 'zebrafishlantern' })],
  ['with its space', () => ({ space: 'project' })],
])('R26: what is forgotten in a service %s is no more in what was placed', async (_, filterOf) => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  const { hosted } = await openHostedScene({ mirror: store.memory });
  const secret = recordOf('It rained. Never print the passphrase zebrafishlantern. We went home.');
  const kept = recordOf('The kiosk is in the hall.', { space: 'other' });
  await hosted.memory.capture([secret, kept], patience());
  const seen = {
    kind: 'last-request',
    tenant: 'local',
    space: 'default',
    conversation: 'c',
  } as const;
  const blockOf = (text: string) => writeRecallBlock([{ ...secret, text }], 512).text;
  const quoting = ({ digest, space }: typeof secret) => ({
    quoted: [{ ref: referenceOf(digest), space }],
  });
  const part = blockOf('Never print the passphrase zebrafishlantern.');
  await store.ledger.record([
    blockEntry('whole', { block: blockOf(secret.text), ...quoting(secret) }),
    blockEntry('a part', { block: part, ...quoting(secret) }),
    blockEntry('other', { block: blockOf(kept.text), ...quoting(kept) }),
    { ...seen, at: 1 },
  ]);
  const filter = filterOf(referenceOf(secret.digest));
  expect(await hosted.memory.forget(filter, patience())).toBe(1);
  const blocks = await foundBlocks(store.ledger, ['whole', 'a part', 'other']);
  expect(blocks).toEqual(['', '', blockOf(kept.text)]);
  expect((await foundEntries(store.ledger, [seen])).has(seen)).toBe(true);
});

test('R26: outputs that are too many bytes for one answer of the service are all forgotten', async () => {
  const { hosted } = await openHostedScene();
  const outputs = Array.from({ length: 20 }, (_, at) =>
    outputRecordOf(`${at} ${'ä'.repeat(130_000)}`),
  );
  for (const output of outputs) await hosted.memory.capture([output], patience());
  const refs = outputs.map(({ digest }) => referenceOf(digest));
  expect(await hosted.memory.forget({ refs }, patience())).toBe(20);
  for (const ref of refs) expect(await hosted.memory.retrieve({ ref }, patience())).toBeUndefined();
});

test('R26: more memories with a word than one round reads are all forgotten', async () => {
  const { service, hosted } = await openHostedScene();
  await hosted.memory.capture([recordOf('The walrus is here.')], patience());
  const { operations } = service;
  const { data } = (await operations.items(new URLSearchParams())) as Listed;
  const [item] = data;
  const digestOf = (at: number) => contentDigest(Buffer.from(`walrus ${at}`));
  const itemAt = (at: number) => ({
    ...item,
    provenance: item?.provenance.map((source) => ({ ...source, digest: digestOf(at) })),
  });
  let left = 10_050;
  operations.items = async (query) => {
    const from = Number(query.get('after') ?? 0);
    const to = query.has('kind') ? from : Math.min(left, from + Number(query.get('limit')));
    const found = Array.from({ length: to - from }, (_, at) => itemAt(from + at));
    const hasMore = to > from && to < left;
    return {
      object: 'list',
      data: found,
      has_more: hasMore,
      next_cursor: hasMore ? `${to}` : null,
    };
  };
  const honest = operations.purge.bind(operations);
  operations.purge = async (asked) => {
    const count = 'digests' in asked.scope ? asked.scope.digests.length : 0;
    left -= count;
    return { ...((await honest(asked)) as object), counts: { records: count } };
  };
  expect(await hosted.memory.forget({ words: 'walrus' }, patience())).toBe(10_050);
});

interface Listed {
  readonly data: readonly { readonly provenance: readonly object[] }[];
}

test('R26: a service that keeps what it says it has purged is asked a bounded number of times, and that is an error', async () => {
  const { service, hosted } = await openHostedScene();
  const outputs = Array.from({ length: 12 }, (_, at) =>
    outputRecordOf(`${at} ${'ä'.repeat(260_000)}`),
  );
  for (const output of outputs) await hosted.memory.capture([output], patience());
  const refs = outputs.map(({ digest }) => referenceOf(digest));
  const { operations } = service;
  const honest = operations.purge.bind(operations);
  // The receipt of an honest purge, of an output that is not there.
  operations.purge = ({ space }) =>
    honest({ space, scope: { digests: [textDigest('tool', 'gone')] }, confirm: space });
  await expect(hosted.memory.forget({ refs }, patience())).rejects.toMatchObject({
    reason: 'invalid',
  });
  expect(service.count('/purges')).toBeLessThanOrEqual(refs.length);
});

test('a list that the service begins again and again ends with an error', async () => {
  const { service, hosted } = await openHostedScene();
  await hosted.memory.capture([recordOf('One.'), recordOf('Two.')], patience());
  let first: unknown;
  service.alter = ({ path }, answer) =>
    path.endsWith('/items') ? (first ??= { ...answer, has_more: true, next_cursor: '2' }) : answer;
  const listed = hosted.memory.list({ limit: 100 }, patience());
  await expect(listed).rejects.toMatchObject({ reason: 'invalid' });
  expect(service.count('/items')).toBe(2);
});

test('a record whose bytes are not what its digest says is not given out', async () => {
  const { service, hosted } = await openHostedScene();
  const output = outputRecordOf('a build log');
  await hosted.memory.capture([output], patience());
  service.alter = (_, answer) => {
    const [object] = (answer['objects'] as Record<string, unknown>[]) ?? [];
    return {
      ...answer,
      objects: [{ ...object, record: { k: 'tool_output', v: 1, t: ['rm -rf'] } }],
    };
  };
  const asked = hosted.memory.retrieve(output, patience());
  await expect(asked).rejects.toMatchObject({ reason: 'invalid' });
});

test.each(['deferred', 'store_error', 'quota'])(
  'what the service puts off (%s) stays in the outbox until it is acknowledged, once',
  async (kind) => {
    const { service, hosted } = await openHostedScene();
    let putsOff = true;
    service.alter = (call, answer) => {
      if (!putsOff || !call.path.endsWith('/capture')) return answer;
      const [, ...rest] = answer['results'] as Record<string, unknown>[];
      const [first] = answer['results'] as Record<string, unknown>[];
      const state = kind === 'deferred' ? { state: kind } : { state: 'rejected', reason: kind };
      return { ...answer, results: [{ digest: first?.['digest'], ...state }, ...rest] };
    };
    hosted.outbox.keep([recordOf('One.'), recordOf('Two.')]);
    await hosted.outbox.flush(200);
    expect(hosted.outbox.waiting).toBe(2);
    putsOff = false;
    await hosted.outbox.flush(30_000);
    expect(hosted.outbox.waiting).toBe(0);
    const stored = await service.operations.memory.list({ limit: 10 }, patience());
    expect(stored.map(({ text }) => text).toSorted()).toEqual(['One.', 'Two.']);
  },
);

test('R27: what a service that is away is to keep waits on disk and drains without duplicates', async () => {
  const port = await freePort();
  const { service, hosted } = await openHostedScene({}, port);
  await service.close();
  const records = Array.from({ length: 150 }, (_, at) => recordOf(`Fact ${at}.`, { exchange: at }));
  expect(hosted.outbox.keep(records)).toBe(true);
  await hosted.outbox.flush(100);
  expect(hosted.outbox.waiting).toBe(150);
  const back = await new FakeService().listen(port);
  onTestFinished(() => back.close());
  await hosted.outbox.flush(30_000);
  expect(hosted.outbox.waiting).toBe(0);
  const digests = back.operations.memory.captured.map(({ digest }) => digest);
  expect(new Set(digests).size).toBe(150);
  expect(digests).toHaveLength(150);
});
