import type { LookupAddress } from 'node:dns';
import { afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { ProxyError } from '../../src/core/errors.ts';
import type { UpstreamSettings } from '../../src/core/settings/settings.ts';
import type { Upstream } from '../../src/ports/upstream.ts';
import { makeCertificate } from '../support/certificate.ts';
import {
  head,
  pause,
  startProvider,
  startSocketProvider,
  type Provider,
} from '../support/sockets.ts';
import { readAnswer, upstreamRequest, upstreamSettings } from '../support/upstream.ts';

const never = new AbortController().signal;
let certificate: { key: string; cert: string };
beforeAll(() => {
  certificate = makeCertificate('provider.test', 'public.example');
});

afterEach(() => {
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
});

interface Opened {
  readonly upstream: Upstream;
  readonly lookedUp: string[];
}

function open(
  changes: Partial<UpstreamSettings>,
  addresses: readonly string[],
  trusts: 'our certificate' | 'the system' = 'our certificate',
): Opened {
  const lookedUp: string[] = [];
  const upstream = createUpstream(
    upstreamSettings(changes),
    { headersMs: 600_000 },
    {
      ...(trusts === 'the system' ? {} : { ca: certificate.cert }),
      resolve: (hostname, done) => {
        lookedUp.push(hostname);
        const found = addresses.map((address): LookupAddress => {
          return { address, family: address.includes(':') ? 6 : 4 };
        });
        setImmediate(done, null, found);
      },
    },
  );
  onTestFinished(async () => upstream.close());
  return { upstream, lookedUp };
}

async function startTlsProvider(): Promise<Provider> {
  return await startProvider(
    ({ socket }) => socket.write(head('200 OK', 'Content-Length: 2') + 'ok'),
    certificate,
  );
}

async function codeOf({ upstream }: Opened): Promise<string> {
  const error: unknown = await upstream.send(upstreamRequest(), never).catch((it) => it);
  return error instanceof ProxyError ? `${error.code} ${error.message}` : 'answered';
}

// spec: 5.6-pinned-public
test('R35: the address that was looked up is dialled, Host and SNI stay the name', async () => {
  const provider = await startTlsProvider();
  const baseUrl = `https://provider.test:${provider.port}`;
  const { upstream, lookedUp } = open({ baseUrl, allowPrivate: true }, ['127.0.0.1']);
  const answer = await upstream.send(upstreamRequest(), never);
  expect((await readAnswer(answer)).body.toString()).toBe('ok');
  expect(lookedUp).toEqual(['provider.test']);
  expect(provider.requests[0]?.headers.slice(0, 2)).toEqual([
    'host',
    `provider.test:${provider.port}`,
  ]);
  expect(provider.requests[0]?.socket).toHaveProperty('servername', 'provider.test');
});

test('R14: a Host header of the client moves neither Host nor SNI', async () => {
  // core/header-rules drops it; the transport must not depend on that alone for the certificate.
  const provider = await startTlsProvider();
  const baseUrl = `https://provider.test:${provider.port}`;
  const { upstream } = open({ baseUrl, allowPrivate: true }, ['127.0.0.1']);
  const request = upstreamRequest({ headers: ['Host', 'evil.example'] });
  await expect(upstream.send(request, never)).rejects.toHaveProperty(
    'code',
    'UPSTREAM_UNREACHABLE',
  );
  expect(provider.requests.length).toBe(0);
});

test.each([
  ['a private address', ['10.0.0.5']],
  ['loopback', ['127.0.0.1']],
  ['a public and a metadata address', ['8.8.8.8', '169.254.169.254']],
  ['a mapped address', ['::ffff:127.0.0.1']],
  ['no address', []],
])(
  'R35: a name that resolves to %s is refused, and nothing is dialled',
  async (_name, addresses) => {
    const provider = await startTlsProvider();
    const opened = open({ baseUrl: `https://public.example:${provider.port}` }, addresses);
    const [code] = (await codeOf(opened)).split(' ');
    expect(code).toBe('UPSTREAM_ADDRESS_REFUSED');
    expect(opened.lookedUp).toEqual(['public.example']);
    expect(provider.connections.length).toBe(0);
  },
);

test.each([
  '127.0.0.1',
  '0x7f.1',
  '2130706433',
  '127.1',
  '[::ffff:127.0.0.1]',
  '\uff11\uff12\uff17.\uff10.\uff10.\uff11',
  'localhost',
])('R35: %s in the base URL is refused before a look-up', async (host) => {
  const provider = await startTlsProvider();
  const opened = open({ baseUrl: `https://${host}:${provider.port}` }, ['127.0.0.1']);
  expect(await codeOf(opened)).toBe(
    'UPSTREAM_ADDRESS_REFUSED The address of the provider is not allowed.',
  );
  await pause(20);
  expect(opened.lookedUp).toEqual([]);
  expect(provider.connections.length).toBe(0);
});

test.each(['169.254.169.254', '[fe80::1]', '168.63.129.16', '[fd00:ec2::254]'])(
  'R35: %s is refused even with allowPrivate',
  async (host) => {
    const opened = open({ baseUrl: `http://${host}`, allowPrivate: true }, []);
    expect(await codeOf(opened)).toContain('UPSTREAM_ADDRESS_REFUSED');
  },
);

test('R22: plain http needs allowPrivate, and never goes to a public address', async () => {
  const plain = open({ baseUrl: 'http://public.example' }, ['8.8.8.8']);
  const leaving = open({ baseUrl: 'http://public.example', allowPrivate: true }, ['8.8.8.8']);
  expect(await codeOf(plain)).toContain('UPSTREAM_ADDRESS_REFUSED');
  expect(plain.lookedUp).toEqual([]);
  expect(await codeOf(leaving)).toContain('UPSTREAM_ADDRESS_REFUSED');
});

test('R35: a user name in the base URL is refused', async () => {
  const opened = open({ baseUrl: 'https://user:secret@public.example' }, ['8.8.8.8']);
  expect(await codeOf(opened)).toContain('UPSTREAM_ADDRESS_REFUSED');
});

// spec: 5.6-https-only
test('R22: a certificate that nobody vouches for is refused, whatever the environment says', async () => {
  const provider = await startTlsProvider();
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  const baseUrl = `https://provider.test:${provider.port}`;
  const opened = open({ baseUrl, allowPrivate: true }, ['127.0.0.1'], 'the system');
  expect(await codeOf(opened)).toContain('UPSTREAM_UNREACHABLE');
  expect(provider.requests.length).toBe(0);
});

test('R22: a certificate for another name is refused', async () => {
  const provider = await startTlsProvider();
  const baseUrl = `https://other.test:${provider.port}`;
  const opened = open({ baseUrl, allowPrivate: true }, ['127.0.0.1']);
  expect(await codeOf(opened)).toBe(
    'UPSTREAM_UNREACHABLE The provider could not be reached (ERR_TLS_CERT_ALTNAME_INVALID).',
  );
  expect(provider.requests.length).toBe(0);
});

test('R22: TLS older than 1.2 is refused', async () => {
  const provider = await startSocketProvider(() => {}, {
    tls: { ...certificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' },
  });
  const baseUrl = `https://provider.test:${provider.port}`;
  const opened = open({ baseUrl, allowPrivate: true }, ['127.0.0.1']);
  expect(await codeOf(opened)).toContain('UPSTREAM_UNREACHABLE');
});

test('R18: a name that does not exist is UPSTREAM_UNREACHABLE', async () => {
  const upstream = createUpstream(
    upstreamSettings({ baseUrl: 'https://gone.example' }),
    { headersMs: 600_000 },
    {
      resolve: (_hostname, done) => {
        setImmediate(done, Object.assign(new Error('gone'), { code: 'ENOTFOUND' }), []);
      },
    },
  );
  expect(await codeOf({ upstream, lookedUp: [] })).toContain('(ENOTFOUND)');
});

test('proxy settings of the environment are not read', async () => {
  const squid = await startSocketProvider(() => {});
  const provider = await startTlsProvider();
  process.env['HTTPS_PROXY'] = squid.url;
  process.env['ALL_PROXY'] = squid.url;
  try {
    const baseUrl = `https://provider.test:${provider.port}`;
    const { upstream } = open({ baseUrl, allowPrivate: true }, ['127.0.0.1']);
    await readAnswer(await upstream.send(upstreamRequest(), never));
  } finally {
    delete process.env['HTTPS_PROXY'];
    delete process.env['ALL_PROXY'];
  }
  expect(squid.connections.length).toBe(0);
});
