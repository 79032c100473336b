/**
 * What is measured: the provider directly, the bare relay, the product as its users start it, and peers
 * by choice. A target is { name, host, port, headers, headersOf, model, dialects } and, when we start
 * it, { command, args, env }.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsup';

const root = join(import.meta.dirname, '..', '..');
/** Given to every target in both places; the product is told to take it as its local token. */
const CLIENT_KEY = 'svc_local_benchbenchbenchbenchbenchbenchbenchbenchben';
export const PROVIDER_KEY = 'bench-provider-key';

export const CLIENT_HEADERS = {
  'anthropic-version': '2023-06-01',
  authorization: `Bearer ${CLIENT_KEY}`,
};

const EVERY_DIALECT = ['messages', 'chat', 'responses'];

export function directTarget({ host, port }) {
  return { name: 'direct', host, port, dialects: EVERY_DIALECT, headers: {} };
}

/** Bundled as the product is, so that the time to start compares programs and not module loading. */
export async function bareTarget({ port, providerUrl, folder }) {
  await build({
    entry: { bare: join(root, 'bench', 'targets', 'bare.mjs') },
    config: false,
    outDir: join(folder, 'bare'),
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    keepNames: true,
    noExternal: [/.*/],
    silent: true,
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    outExtension: () => ({ js: '.mjs' }),
  });
  return {
    name: 'bare',
    host: '127.0.0.1',
    port,
    dialects: EVERY_DIALECT,
    headers: {},
    command: process.execPath,
    args: [join(folder, 'bare', 'bare.mjs')],
    env: { PORT: String(port), UPSTREAM: providerUrl },
  };
}

export const HOSTED_MEMORY = 'svc-hosted-memory';

/**
 * The built program with a home of its own: its defaults, so memory is on and its store is embedded.
 * `hosted`: { memory, certificate } of a service in its place.
 */
export function svcTarget({ port, providerUrl, folder, bin, hosted }) {
  const home = join(folder, hosted === undefined ? 'svc-home' : 'svc-hosted-home');
  const upstream = (apiStyle) => ({
    name: apiStyle,
    apiStyle,
    baseUrl: providerUrl,
    providerKey: PROVIDER_KEY,
    auth: apiStyle === 'anthropic_messages' ? 'x-api-key' : 'bearer',
    headers: {},
    query: {},
    allowPrivate: true,
  });
  const config = {
    version: 1,
    proxy: { host: '127.0.0.1', port },
    memory: hosted?.memory ?? { kind: 'embedded' },
    upstreams: ['anthropic_messages', 'openai_chat_completions', 'openai_responses'].map((it) =>
      upstream(it),
    ),
    localToken: CLIENT_KEY,
  };
  mkdirSync(join(home, 'config'), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, 'config', 'config.json'), JSON.stringify(config), { mode: 0o600 });
  return {
    name: hosted === undefined ? 'svc' : HOSTED_MEMORY,
    host: '127.0.0.1',
    port,
    dialects: EVERY_DIALECT,
    headers: {},
    command: process.execPath,
    args: [bin, 'start'],
    env: {
      HOME: home,
      SVC_CONFIG_HOME: join(home, 'config'),
      SVC_DATA_HOME: join(home, 'data'),
      XDG_CACHE_HOME: join(home, 'cache'),
      ...(hosted !== undefined && { NODE_EXTRA_CA_CERTS: hosted.certificate }),
    },
  };
}
