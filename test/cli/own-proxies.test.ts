import { createServer } from 'node:http';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { listRunFiles, writeRunFile } from '../../src/adapters/processes/run-files.ts';
import {
  CHALLENGE_HEADER,
  digestOf,
  makeProof,
  PROOF_HEADER,
} from '../../src/core/http/local-token.ts';
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

test('the file of a killed proxy goes once another proxy of ours has its port, whoever has its process id', async () => {
  const folder = tempFolder();
  const [running, killed] = [process.pid, process.ppid];
  const server = createServer(({ headers, socket }, outgoing) => {
    const challenge = String(headers[CHALLENGE_HEADER]);
    const proven = { pid: running, port: socket.localPort ?? 0 };
    const proof = makeProof(digestOf(access.localToken), challenge, proven);
    outgoing.setHeader(PROOF_HEADER, proof ?? '').end('{}');
  });
  onTestFinished(() => void server.close());
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const proxies = new OwnProxies(folder, { ...access, port });
  await writeRunFile(folder, { ...run, pid: killed, port });
  // The proxy that runs has no file: its folder was full when it started.
  const own = { pid: running, host: run.host, port };
  expect(await proxies.find()).toEqual({ own: [own], unproven: [] });
  await writeRunFile(folder, { ...run, pid: killed, port });
  await writeRunFile(folder, { ...run, pid: running, port });
  expect(await proxies.find()).toEqual({ own: [{ ...run, ...own }], unproven: [] });
  expect(await listRunFiles(folder)).toEqual([{ ...run, ...own }]);
});
