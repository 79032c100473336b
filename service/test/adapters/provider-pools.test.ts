import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openLinks } from '../../src/cli/compose-models.ts';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { upstreamRequest, upstreamSettings } from '../../../test/support/upstream.ts';

const NAME = 'models.provider.test';
/** More than one person's proxy opens to a provider. */
const STREAMS = 530;
/** On a busy machine the handshakes of all at once outlast the deadline of a connection. */
const AT_ONCE = 53;

test('however many answers of a preset are open, the request of another tenant is answered', async () => {
  const certificate = makeCertificate(NAME);
  const server = createServer(certificate, (incoming, outgoing) => {
    incoming.resume();
    outgoing.writeHead(200).write('the first of many words');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const links = openLinks(
    { ports: [port], allow: ['127.0.0.0/8'] },
    {
      trust: {
        ca: certificate.cert,
        resolve: (_name, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
      },
    },
  );
  const open: AbortController[] = [];
  onTestFinished(async () => {
    for (const one of open) one.abort();
    server.closeAllConnections();
    server.close();
    await links.close();
  });
  const settings = upstreamSettings({ baseUrl: `https://${NAME}:${port}` });
  const askAs = async (tenant: string): Promise<number> => {
    const provider = { providerId: tenant, version: 1, kind: 'preset' } as const;
    const own = new AbortController();
    open.push(own);
    const answer = await links.to(provider, settings).send(upstreamRequest(), own.signal);
    return answer.status;
  };
  for (let opened = 0; opened < STREAMS; opened += AT_ONCE) {
    const busy = Array.from({ length: AT_ONCE }, () => askAs('busy'));
    // oxlint-disable-next-line no-await-in-loop
    expect(new Set(await Promise.all(busy))).toEqual(new Set([200]));
  }
  expect(await askAs('other')).toBe(200);
}, 60_000);
