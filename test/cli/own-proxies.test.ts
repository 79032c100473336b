import { createServer } from 'node:http';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { listRunFiles, writeRunFile } from '../../src/adapters/processes/run-files.ts';
import { OwnProxies } from '../../src/cli/proxy/own-proxies.ts';
import { freePort } from '../support/free-port.ts';
import { tempFolder } from '../support/temp-folder.ts';

const access = { host: '127.0.0.1', port: 0, localToken: 'svc_local_test' };
const run = { host: '127.0.0.1', version: '0.1.2', startedAt: 1 };

test('a killed proxy whose process id belongs to another program leaves nothing to probe again', async () => {
  const folder = tempFolder();
  await writeRunFile(folder, { ...run, pid: process.pid, port: await freePort() });
  expect(await new OwnProxies(folder, access).find()).toEqual({ own: [], unproven: [] });
  expect(await listRunFiles(folder)).toEqual([]);
});

test('a process that listens and does not prove to be ours keeps its file', async () => {
  const folder = tempFolder();
  const server = createServer((_incoming, outgoing) => outgoing.end('other'));
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const file = { ...run, pid: process.pid, port };
  await writeRunFile(folder, file);
  expect(await new OwnProxies(folder, access).find()).toEqual({ own: [], unproven: [file] });
  expect(await listRunFiles(folder)).toEqual([file]);
});
