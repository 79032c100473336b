import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';

const root = join(import.meta.dirname, '..', '..');

test('no bundle has the assertions of Node, which parse a whole file to word a failure', () => {
  const names = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' });
  const bundles = names.filter((name) => /\.c?js$/.test(name) && !name.startsWith('ui'));
  expect(bundles.length).toBeGreaterThan(5);
  const loading = bundles.filter((name) =>
    /(?:require\(|from ?)["'](?:node:)?assert(?:\/strict)?["']/.test(
      readFileSync(join(root, 'dist', name), 'utf8'),
    ),
  );
  expect(loading).toEqual([]);
});

test('a provider’s status below 100 is a 502, and the next request is served', async () => {
  let status = '099 Nothing';
  const provider = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\n{}`));
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void provider.close());
  const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const upstream = { name: 'local', apiStyle: 'anthropic_messages', auth: 'none' };
  const upstreams = [{ ...upstream, baseUrl, allowPrivate: true }];
  const proxy = await startProxyProcess(homeWith({ ...validConfig(), upstreams }));
  const ask = async (): Promise<[number, string | null]> => {
    const answer = await fetch(`${proxy.url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${LOCAL_TOKEN}`, 'content-type': 'application/json' },
      body: '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    });
    await answer.text();
    return [answer.status, answer.headers.get('x-svc-error-source')];
  };
  expect(await ask()).toEqual([502, 'proxy']);
  status = '200 OK';
  expect(await ask()).toEqual([200, null]);
});
