import { createBodyDecoder } from '../../src/adapters/encoding/body-decoder.ts';
import { LocalServer } from '../../src/local/server.ts';
import { digestOf, PROXY_SETTINGS, TOKEN } from './local-server.ts';

// A listener in a process of its own, for what would harm the tests' own process. Prints its port,
// then one line for each report.
const server = new LocalServer({
  settings: () => PROXY_SETTINGS,
  tokenDigests: () => [digestOf(TOKEN)],
  decode: createBodyDecoder().decode,
  handler: async (_request, outgoing) => {
    outgoing.end('{}');
  },
  clock: { now: () => Date.now(), monotonic: () => performance.now() },
  newId: () => 'req_000000000000000000000000',
  report: ({ code }) => process.stdout.write(`${code}\n`),
  version: '0.1.2',
  modeLimits: () => ({ ...PROXY_SETTINGS, supports: { read: true, write: true } }),
});
const { port } = await server.listen();
process.stdout.write(`${port}\n`);
