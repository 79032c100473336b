import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { fetchCatalog } from '../../src/adapters/catalog/catalog-feed.ts';
import { openHostedMemory } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { ProxyError } from '../../src/core/errors.ts';
import type { UpstreamSettings } from '../../src/core/settings/settings.ts';
import { makeCertificate } from '../support/certificate.ts';
import { type Behaviour, startForwardProxy } from '../support/forward-proxy.ts';
import { head, pause, startProvider } from '../support/sockets.ts';
import { readAnswer, upstreamRequest, upstreamSettings } from '../support/upstream.ts';

vi.setConfig({ testTimeout: 30_000 });

const never = new AbortController().signal;
const BASIC = `Basic ${Buffer.from('me:SECRET-pass').toString('base64')}`;
let certificate: { key: string; cert: string };
beforeAll(() => {
  certificate = makeCertificate('provider.test');
});

async function stage(behaviour: Behaviour, authorization = '') {
  const provider = await startProvider(
    ({ socket }) => socket.write(head('200 OK', 'Content-Length: 2') + 'ok'),
    certificate,
  );
  const proxy = await startForwardProxy({
    hosts: { [`provider.test:${provider.port}`]: provider.port },
    ...behaviour,
  });
  const open = (changes: Partial<UpstreamSettings> = {}) => {
    const settings = upstreamSettings({
      baseUrl: `https://provider.test:${provider.port}`,
      proxy: { origin: proxy.url, authorization },
      ...changes,
    });
    const upstream = createUpstream(settings, { headersMs: 600_000 }, { ca: certificate.cert });
    onTestFinished(async () => upstream.close());
    return upstream;
  };
  return { provider, proxy, open };
}

async function errorOf(upstream: ReturnType<typeof createUpstream>): Promise<ProxyError> {
  const error: unknown = await upstream.send(upstreamRequest(), never).catch((it) => it);
  expect(error).toBeInstanceOf(ProxyError);
  return error as ProxyError;
}

test('R22: a request goes through CONNECT, TLS is checked end to end, one tunnel serves many', async () => {
  const { provider, proxy, open } = await stage({ credentials: 'me:SECRET-pass' }, BASIC);
  const upstream = open();
  for (let count = 0; count < 2; count += 1) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other, so that the tunnel is kept.
    const answer = await readAnswer(await upstream.send(upstreamRequest(), never));
    expect(answer.body.toString()).toBe('ok');
    // oxlint-disable-next-line no-await-in-loop -- The connection is free a moment after the answer's end.
    await pause(50);
  }
  expect(proxy.asked.map(({ target }) => target)).toEqual([`provider.test:${provider.port}`]);
  expect(proxy.asked[0]?.headers['host']).toBe(`provider.test:${provider.port}`);
  expect(proxy.asked[0]?.headers['proxy-authorization']).toBe(BASIC);
  // The provider sees neither the proxy nor its credentials.
  expect(provider.requests).toHaveLength(2);
  for (const { headers, socket } of provider.requests) {
    expect(headers.join('\n')).not.toMatch(/proxy|SECRET|Basic/i);
    expect(socket).toHaveProperty('servername', 'provider.test');
  }
});

test.each<[string, Behaviour, string, string, number]>([
  ['asks for credentials', { credentials: 'me:x' }, '', 'PROXY_CREDENTIALS_MISSING', 502],
  ['refuses credentials', { credentials: 'me:x' }, BASIC, 'PROXY_CREDENTIALS_REFUSED', 502],
  ['refuses the host', { refusal: 403 }, BASIC, 'PROXY_FORBIDDEN', 502],
  ['cannot resolve the host', { hosts: {} }, BASIC, 'PROXY_HOST_UNREACHABLE', 502],
  ['hangs', { isHanging: true }, BASIC, 'PROXY_TIMEOUT', 504],
])('a proxy that %s is named, without its credentials', async (...row) => {
  const [, behaviour, authorization, code, status] = row;
  const { provider, open } = await stage(behaviour, authorization);
  const error = await errorOf(open());
  expect(error.message).toContain(code);
  expect(error.status).toBe(status);
  expect(error.hint).toContain('svc doctor');
  expect(`${error.message} ${error.hint} ${String(error.cause)}`).not.toMatch(/SECRET|Basic/);
  expect(provider.connections).toHaveLength(0);
});

test('a proxy that nobody runs, and one whose name is not known', async () => {
  const { open } = await stage({});
  const dead = open({ proxy: { origin: 'http://127.0.0.1:9', authorization: '' } });
  expect((await errorOf(dead)).message).toContain('PROXY_UNREACHABLE');
  const lost = open({ proxy: { origin: 'http://proxy.invalid:3128', authorization: '' } });
  expect((await errorOf(lost)).message).toContain('PROXY_NAME_UNKNOWN');
});

test('R22: a proxy that opens TLS with a certificate nobody vouches for is refused', async () => {
  const { open } = await stage({ opensTls: makeCertificate('provider.test') });
  expect((await errorOf(open())).message).toMatch(/SELF_SIGNED|UNABLE_TO_VERIFY/);
});

test('R22: a proxy that leads to a host with a certificate of another name is refused', async () => {
  const { provider, proxy, open } = await stage({});
  const other = await startForwardProxy({ hosts: { 'other.test:443': provider.port } });
  const upstream = open({
    baseUrl: 'https://other.test',
    proxy: { origin: other.url, authorization: '' },
  });
  expect((await errorOf(upstream)).message).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
  expect(other.asked.map(({ target }) => target)).toEqual(['other.test:443']);
  expect([provider.requests.length, proxy.asked.length]).toEqual([0, 0]);
});

test.each([
  'https://10.0.0.5',
  'https://169.254.169.254',
  'https://127.0.0.1',
  'https://[::1]',
  'https://localhost',
])('R35: %s stays refused where a proxy would be asked for it', async (baseUrl) => {
  const { proxy, open } = await stage({});
  expect((await errorOf(open({ baseUrl }))).code).toBe('UPSTREAM_ADDRESS_REFUSED');
  expect(proxy.asked).toEqual([]);
});

test('the catalog and a memory service are asked through the proxy too', async () => {
  const { provider, proxy } = await stage({});
  const url = `https://provider.test:${provider.port}`;
  const environment = { HTTPS_PROXY: proxy.url };
  const request = { url: `${url}/api.json`, etag: '', environment, signal: never };
  await fetchCatalog(request, (settings, limits) =>
    createUpstream(settings, limits, { ca: certificate.cert }),
  );
  const service = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl: url,
      serviceKey: 'a-service-key',
      allowPrivate: false,
      proxy: { origin: proxy.url, authorization: '' },
    },
    recallMs: 5000,
    trust: { ca: certificate.cert },
    report: () => undefined,
  });
  onTestFinished(() => service.close());
  await service.operations.whoAmI(AbortSignal.timeout(5000)).catch(() => undefined);
  const target = `provider.test:${provider.port}`;
  expect(proxy.asked.map((one) => one.target)).toEqual([target, target]);
  expect(provider.requests).toHaveLength(2);
});
