import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RunningProxy, StartProxyOptions } from '../../src/cli/compose.ts';
import { reportError } from '../../src/cli/cli-error.ts';
import { start } from '../../src/cli/proxy/start.ts';
import { Terminal } from '../../src/cli/terminal.ts';

/**
 * `svc start` around a server that only listens: what start itself does, in a process of its own.
 * The server says what settings it was given, and takes STOP_MS to stop.
 */
async function startProxy({ settings }: StartProxyOptions): Promise<RunningProxy> {
  let current = settings;
  const server = createServer((_, answer) => {
    answer.setHeader('x-svc-local-proxy', 'test');
    answer.end(JSON.stringify({ mode: current.proxy.memoryMode, token: current.localToken }));
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(settings.proxy.port, settings.proxy.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    host: settings.proxy.host,
    port,
    apply: (next) => {
      current = next;
    },
    stop: async () => {
      await new Promise((resolve) => setTimeout(resolve, Number(process.env['STOP_MS'] ?? '0')));
      process.stderr.write('stopped\n');
      server.close();
    },
  };
}

const terminal = new Terminal({
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
});
const context = { environment: process.env, terminal };
const parts = { startProxy, signals: process };
try {
  process.exitCode = await start({ flags: {}, json: true }, context, parts);
} catch (error) {
  process.exitCode = reportError(error, terminal);
}
