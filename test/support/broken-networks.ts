import { createServer as createHttpsServer } from 'node:https';
import { makeCertificate } from './certificate.ts';
import { PROVIDER_KEY } from './config.ts';
import {
  listen,
  memoryService,
  provider,
  type Setup,
  upstream,
  wellBehaved,
} from './doctor-stage.ts';
import { homeWith } from './home.ts';

/** What the service tells of a key that may only read. */
const READER = {
  tenant_id: 't',
  key: { key_id: 'k', scopes: ['read'] },
  memory_mode_default: 'read',
  limits: {},
  features: ['coverage.pop.v1'],
  server_time: '2026-01-01T00:00:00Z',
  api_version: '1',
};

/** What is broken on the way to a provider or a memory service, or there. */
export const BROKEN_NETWORKS: readonly Setup[] = [
  {
    name: 'a key that the provider refuses',
    make: () =>
      provider((_, answer) => void answer.writeHead(401).end(`SECRET-ECHO ${PROVIDER_KEY}`)),
    subject: 'Provider',
    found: /the provider refuses the key \(401\)/,
    fix: /svc setup --yes --upstream anthropic --key-stdin/,
    isOnline: true,
  },
  {
    name: 'a provider whose name leads nowhere',
    make: () => ({ home: homeWith(upstream({ baseUrl: 'https://api.provider.invalid' })) }),
    subject: 'Network',
    found: /api\.provider\.invalid: its name (?:is not known|cannot be looked up)/,
    fix: /getent hosts api\.provider\.invalid; .*svc setup --yes --upstream anthropic --base-url/,
    isOnline: true,
  },
  {
    name: 'a provider that is not running',
    make: () => ({
      home: homeWith(upstream({ baseUrl: 'http://127.0.0.1:9', allowPrivate: true })),
    }),
    subject: 'Network',
    found: /127\.0\.0\.1:9: nothing listens at that address \(ECONNREFUSED\)/,
    fix: /curl -sI http:\/\/127\.0\.0\.1:9/,
    isOnline: true,
  },
  {
    name: 'a certificate that nobody has signed',
    make: async () => {
      const server = createHttpsServer(makeCertificate('localhost'), wellBehaved());
      const port = await listen(server);
      const baseUrl = `https://localhost:${port}`;
      return { home: homeWith(upstream({ baseUrl, allowPrivate: true })) };
    },
    subject: 'Network',
    found: /its certificate is self-signed/,
    fix: /^in the environment of svc start: export NODE_EXTRA_CA_CERTS=/,
    isOnline: true,
  },
  {
    name: 'R35: a provider at the address of a cloud’s metadata service',
    make: () => ({
      home: homeWith(upstream({ baseUrl: 'http://169.254.169.254', allowPrivate: true })),
    }),
    subject: 'Setting',
    found: /upstreams\[0\]\.baseUrl: expected a host that svc may connect to/,
    fix: /svc setup .*--base-url/,
  },
  {
    name: 'a base URL where the dialect is not spoken',
    make: () =>
      provider((request, answer) => {
        answer.writeHead(request.method === 'GET' ? 200 : 404).end('{"data":[{"id":"m"}]}');
      }),
    subject: 'Dialect',
    found: /it does not serve anthropic_messages at this address \(404\)/,
    fix: /--base-url .* --api-style/,
    isOnline: true,
  },
  {
    name: 'a clock that is an hour off',
    make: () => provider(wellBehaved({ date: new Date(Date.now() + 3_600_000).toUTCString() })),
    level: 'warning',
    subject: 'Clock',
    found: /this machine is 3[56]\d\d s behind anthropic: memories get wrong dates/,
    fix: /^Set the clock/,
    isOnline: true,
  },
  {
    name: 'a memory service that refuses its key',
    make: () => memoryService(401, 'SECRET-ECHO'),
    subject: 'Memory service',
    found: /the memory service answered 401/i,
    fix: /^Give another key: svc setup --yes --memory hosted --service-key-stdin/,
    isOnline: true,
  },
  {
    name: 'a memory service whose key may only read',
    make: () => memoryService(200, JSON.stringify(READER)),
    level: 'warning',
    subject: 'Memory service',
    found: /memoryMode is read-write, but the key may not write/,
    fix: /^Ask for a key with more scopes, or: svc setup --yes --memory-mode MODE/,
    isOnline: true,
  },
];
