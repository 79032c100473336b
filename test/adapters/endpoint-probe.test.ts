import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { classOf } from '../../src/adapters/network/addresses.ts';
import { probeEndpoint } from '../../src/adapters/network/endpoint-probe.ts';
import { makeCertificate } from '../support/certificate.ts';

test('R35: what kind of place an address is in', () => {
  expect(classOf('93.184.215.14')).toBe('public');
  expect(classOf('2606:4700::1')).toBe('public');
  expect(classOf('127.0.0.1')).toBe('this machine');
  expect(classOf('::1')).toBe('this machine');
  expect(classOf('::ffff:127.0.0.1')).toBe('this machine');
  expect(classOf('10.1.2.3')).toBe('a private network');
  expect(classOf('fd12::1')).toBe('a private network');
  for (const address of ['169.254.169.254', '168.63.129.16', '0.0.0.0', '224.0.0.1', 'no']) {
    expect(classOf(address)).toBe('never allowed');
  }
});

test('R22: the way to a host: its address, TLS, and how long the certificate lives', async () => {
  const certificate = makeCertificate('localhost');
  const heard: string[] = [];
  const server = createServer(certificate, ({ url }) => heard.push(url ?? ''));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = new URL(`https://localhost:${port}`);
  const found = await probeEndpoint(url, { allowPrivate: true }, { ca: certificate.cert });
  expect(found.failure).toBeUndefined();
  expect(found.classes).toEqual(['this machine']);
  expect(found.tls?.protocol).toMatch(/^TLSv1\.[23]$/);
  const days = ((found.tls?.validUntil ?? 0) - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(1);
  expect(days).toBeLessThan(3);
  // Nobody vouches for it here; and without leave this machine is not gone to at all.
  const { failure: untrusted } = await probeEndpoint(url, { allowPrivate: true });
  expect(untrusted).toEqual({ step: 'connection', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  const { failure: refused } = await probeEndpoint(
    url,
    { allowPrivate: false },
    { ca: certificate.cert },
  );
  expect(refused).toEqual({ step: 'address', code: 'SVC_ADDRESS_REFUSED' });
  // Nothing was asked.
  expect(heard).toEqual([]);
});

test('a name that leads nowhere and a port where nobody listens are told apart', async () => {
  const nowhere = await probeEndpoint(new URL('https://host.invalid'), { allowPrivate: false });
  expect(nowhere.failure?.step).toBe('name');
  const nobody = await probeEndpoint(new URL('http://127.0.0.1:9'), { allowPrivate: true });
  expect(nobody.failure).toEqual({ step: 'connection', code: 'ECONNREFUSED' });
});
