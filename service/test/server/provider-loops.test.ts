import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, expect, test } from 'vitest';
import {
  formatServiceKey,
  parseServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../../src/core/memory-api/service-key.ts';
import { hashKey } from '../../../src/core/memory-api/keys.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { errorIn, HOST, openModelService, providerCertificate } from '../support/model-service.ts';
import { addKeyTo } from '../support/service-control.ts';

/** A provider that leads back to the service would turn one request into an endless one. */

const DIALECT = 'openai_chat_completions';
const PRIVATE = ['127.0.0.0/8'];

function keyText(): string {
  return formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES));
}

/** Ends TLS under the name of the providers, as a balancer does. `key`: it sends this one instead. */
async function startFront(
  port: number,
  frontPort: number,
  { key }: { readonly key?: string },
): Promise<void> {
  const front = createHttpsServer(providerCertificate(), (incoming, outgoing) => {
    const { method, url: path } = incoming;
    const own = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const headers = { ...incoming.headers, ...own };
    const passed = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  front.listen(frontPort, '127.0.0.1');
  await once(front, 'listening');
  onTestFinished(() => {
    front.closeAllConnections();
    front.close();
  });
}

test('a provider whose credential is a key of the service is not saved', async () => {
  const { ask, makeKey, addProvider } = await openModelService();
  const key = await makeKey();
  await addProvider(DIALECT);
  const { data } = (await ask('GET providers')).json;
  const body = {
    name: 'own',
    kind: 'custom',
    api_style: DIALECT,
    base_url: 'https://gateway.example.com',
    default_model: 'n',
    allowed_models: ['n'],
  };
  const refused = await ask('POST providers', { ...body, credential: key });
  expect([refused.status, refused.json.error.param]).toEqual([422, 'credential']);
  expect(refused.text).not.toContain(key);
  const custom_headers = [{ name: 'x-key', value: `Bearer ${key}` }];
  const header = await ask('POST providers', {
    ...body,
    credential: 'sk-1',
    custom_headers,
  });
  expect([header.status, header.json.error.param]).toEqual([422, 'custom_headers']);
  const path = `PATCH providers/${data[0].provider_id}`;
  const changed = await ask(path, { version: 1, credential: key });
  expect([changed.status, changed.json.error.param]).toEqual([422, 'credential']);
  // A key of another service is a credential like any other.
  expect((await ask('POST providers', { ...body, credential: keyText() })).status).toBe(201);
});

test('a provider at the address of the service is not saved, whatever its credential', async () => {
  const { ask, addProvider } = await openModelService({
    limits: { publicUrl: 'https://svc.example' },
  });
  await addProvider(DIALECT);
  const body = {
    name: 'own',
    kind: 'custom',
    api_style: DIALECT,
    default_model: 'n',
    allowed_models: ['n'],
    credential: 'sk-1',
  };
  for (const base_url of ['https://svc.example/v1', 'https://SVC.example:443/']) {
    // oxlint-disable-next-line no-await-in-loop
    const refused = await ask('POST providers', { ...body, base_url });
    expect([refused.status, refused.json.error.param]).toEqual([422, 'base_url']);
  }
});

/** A service behind a front, and a provider whose address is that front. */
async function openLoop({ isGateway }: { readonly isGateway: boolean }) {
  const [port, frontPort] = [await freePort(), await freePort()];
  const stage = await openModelService({ port, egress: { ports: [frontPort], allow: PRIVATE } });
  // Both are saved before the service knows the key, so the request itself has to find out.
  const secret = keyText();
  await startFront(port, frontPort, isGateway ? { key: secret } : {});
  await stage.addProvider(DIALECT, {
    base_url: `https://${HOST}:${frontPort}`,
    credential: isGateway ? 'sk-of-the-gateway' : secret,
  });
  const { pepper, store } = stage.service;
  await addKeyTo(store.of('default'), {
    keyId: parseServiceKey(secret)?.publicId ?? '',
    name: 'loop',
    hash: hashKey(pepper, secret),
    scopes: ['read', 'write'],
    createdAt: Date.now(),
  });
  return { ...stage, key: await stage.makeKey() };
}

test('a request to the service itself, behind a balancer of any name, is refused at its first step', async () => {
  const { send, key, service } = await openLoop({ isGateway: false });
  const answer = await send(DIALECT, promptOf(DIALECT, 'Hello'), { key });
  expect([answer.status, errorIn(answer).code]).toEqual([502, 'PROVIDER_ADDRESS_REFUSED']);
  expect(answer.headers['x-should-retry']).toBe('false');
  expect(service.calls.filter(({ operation }) => operation === 'model')).toHaveLength(1);
});

test('a loop through a gateway that svc cannot see ends, and other tenants are served meanwhile', async () => {
  const { send, key, ask, askMemory, makeKey } = await openLoop({ isGateway: true });
  await ask('POST tenants', { tenant_id: 'acme' });
  const other = await makeKey({ tenant: 'acme' });
  const loop = { hasEnded: false };
  const looping = send(DIALECT, promptOf(DIALECT, 'Hello'), { key }).finally(() => {
    loop.hasEnded = true;
  });
  let served = 0;
  while (!loop.hasEnded) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await askMemory('memory/items', other)).status).toBe(200);
    served += 1;
    // oxlint-disable-next-line no-await-in-loop -- The loop needs the processor too.
    await sleep(50);
  }
  const answer = await looping;
  expect([answer.status, errorIn(answer).code]).toEqual([503, 'TOO_BUSY']);
  expect(served).toBeGreaterThan(0);
});
