import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { runCli } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY } from '../support/config.ts';
import { config, listen, UPSTREAM, wellBehaved } from '../support/doctor-stage.ts';
import { type Behaviour, type ForwardProxy, startForwardProxy } from '../support/forward-proxy.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';

/** A company's network: the provider's name resolves nowhere here, only the network's proxy knows it. */

vi.setConfig({ testTimeout: 90_000 });

const PASSWORD = 'SECRET-of-the-proxy';
let certificate: { key: string; cert: string };
beforeAll(() => {
  certificate = makeCertificate('provider.test');
});

async function network(behaviour: Behaviour, listener: RequestListener = wellBehaved()) {
  const port = await listen(createServer(certificate, listener));
  const hosts = { 'provider.test:443': port };
  const proxy = await startForwardProxy({ hosts, ...behaviour });
  const baseUrl = 'https://provider.test';
  const home = homeWith(config({ upstreams: [{ ...UPSTREAM, baseUrl }] }));
  const caFile = join(home, 'ca.pem');
  writeFileSync(caFile, certificate.cert);
  const withPassword = `http://me:${PASSWORD}@127.0.0.1:${proxy.port}`;
  return { home, proxy, withPassword, ca: { NODE_EXTRA_CA_CERTS: caFile } };
}

function ask(url: string): Promise<Response> {
  return fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': LOCAL_TOKEN, 'content-type': 'application/json' },
    body: '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
  });
}

test('svc reaches a provider through HTTPS_PROXY with a password, and the key goes inside TLS', async () => {
  const heard: string[] = [];
  const answer = '{"type":"message","role":"assistant","content":[]}';
  const { home, proxy, withPassword, ca } = await network(
    { credentials: `me:${PASSWORD}` },
    (request, response) => {
      heard.push(JSON.stringify(request.rawHeaders));
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    },
  );
  const svc = await startProxyProcess(home, { ...ca, HTTPS_PROXY: withPassword });
  const response = await ask(svc.url);
  expect([response.status, await response.text()]).toEqual([200, answer]);
  expect(heard.join('')).toContain(PROVIDER_KEY);
  expect(heard.join('')).not.toMatch(/proxy|SECRET/i);
  expect(JSON.stringify(proxy.asked)).not.toContain(PROVIDER_KEY);
  expect(svc.stderr()).not.toContain(PASSWORD);
});

test.each<[string, Behaviour, number, string]>([
  ['refuses', { refusal: 403 }, 502, 'PROXY_FORBIDDEN'],
  ['wants other credentials', { credentials: 'me:other' }, 502, 'PROXY_CREDENTIALS_REFUSED'],
  ['hangs', { isHanging: true }, 504, 'PROXY_TIMEOUT'],
])('a client behind a proxy that %s gets an error of its dialect', async (...row) => {
  const [, behaviour, status, code] = row;
  const { home, withPassword, ca } = await network(behaviour);
  const svc = await startProxyProcess(home, { ...ca, https_proxy: withPassword });
  const response = await ask(svc.url);
  expect(response.status).toBe(status);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: expect.any(String) } });
  expect(text).toContain(code);
  expect(text).toContain('svc doctor');
  expect(text + svc.stderr()).not.toContain(PASSWORD);
});

interface Told {
  readonly level: string;
  readonly subject: string;
  readonly found: string;
  readonly fix?: string;
}

async function doctorIn(home: string, env: Record<string, string>) {
  const { stdout, stderr } = await runCli(['doctor', '--json'], { home, env });
  expect(stdout + stderr).not.toContain(PASSWORD);
  const { checks } = JSON.parse(stdout) as { checks: readonly Told[] };
  const about = checks.filter(
    ({ found, subject }) => subject !== 'Upstream' && found.includes('provider.test'),
  );
  return { about, providers: checks.filter(({ subject }) => subject === 'Provider') };
}

type Network = Awaited<ReturnType<typeof network>>;

test.each<[string, Behaviour, RegExp, RegExp]>([
  ['refuses the host', { refusal: 403 }, /refuses to connect to this host/, /^Ask the operator/],
  ['wants credentials', { credentials: 'me:x' }, /asks for a user name and password/, /USER:PASS/],
  ['hangs', { isHanging: true }, /does not answer in time/, /^Set HTTPS_PROXY/],
  ['cannot resolve the host', { hosts: {} }, /cannot find or reach this host/, /^Ask the operator/],
])('doctor names a network proxy that %s, once', async (...row) => {
  const [, behaviour, found, fix] = row;
  const { home, proxy, ca } = await network(behaviour);
  const { about, providers } = await doctorIn(home, { ...ca, HTTPS_PROXY: proxy.url });
  expect(about).toMatchObject([{ level: 'problem', subject: 'Network' }]);
  expect(about[0]?.found).toContain(`provider.test through ${proxy.url}: `);
  expect(about[0]?.found).toMatch(found);
  expect(about[0]?.fix).toMatch(fix);
  expect(providers).toEqual([]);
});

test('doctor names wrong credentials, a proxy that is not there, and the way that works', async () => {
  const place: Network = await network({ credentials: `me:${PASSWORD}` });
  const { home, ca, proxy, withPassword } = place;
  const wrong = withPassword.replace('me:', 'you:');
  const refused = await doctorIn(home, { ...ca, HTTPS_PROXY: wrong });
  expect(refused.about[0]?.found).toContain('refuses the user name or password (407)');
  const dead = await doctorIn(home, { ...ca, HTTPS_PROXY: 'http://127.0.0.1:9' });
  expect(dead.about).toHaveLength(1);
  expect(dead.about[0]?.found).toContain('the network proxy cannot be reached');
  const right = await doctorIn(home, { ...ca, HTTPS_PROXY: withPassword });
  // The stand-in's certificate ends in two days, which is all that doctor has to say.
  expect(right.about).toMatchObject([{ level: 'warning', subject: 'Network' }]);
  expect(right.about[0]?.found).toContain(`through the network proxy ${proxy.url}, TLSv1.3`);
  expect(right.providers).toMatchObject([{ level: 'ok' }]);
});

test('doctor names a proxy that opens TLS, and the variable for its certificate', async () => {
  const own: ForwardProxy = await startForwardProxy({ opensTls: makeCertificate('provider.test') });
  const { home, ca } = await network({});
  const { about } = await doctorIn(home, { ...ca, HTTPS_PROXY: own.url });
  expect(about).toHaveLength(1);
  expect(about[0]?.found).toContain(`the network proxy ${own.url} seems to intercept TLS`);
  expect(about[0]?.fix).toMatch(/^in the environment of svc start: export NODE_EXTRA_CA_CERTS=/);
});

test('without a proxy an unknown name is told once, with what may be the reason', async () => {
  const { home } = await network({});
  const { about } = await doctorIn(home, {});
  expect(about).toMatchObject([{ level: 'problem', subject: 'Network' }]);
  expect(about[0]?.found).not.toContain('slip');
});
