import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { runCli, runHere } from './cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY } from './config.ts';
import {
  config,
  configFile,
  listen,
  type Setup,
  upstream,
  UPSTREAM,
  withStore,
} from './doctor-stage.ts';
import { homeWith } from './home.ts';
import { requestRow } from './request-row.ts';

/** What is broken on this machine: files, settings, ports, the store, clients. */
export const BROKEN_SETUPS: readonly Setup[] = [
  {
    name: 'no configuration yet',
    make: () => ({ home: homeWith('{}', 'elsewhere') }),
    subject: 'Configuration',
    found: /config\.json does not exist/,
    fix: /^svc setup --yes --upstream/,
  },
  {
    name: 'a configuration file that others may read',
    make: () => {
      const home = homeWith(config());
      chmodSync(configFile(home), 0o644);
      return { home };
    },
    subject: 'Configuration',
    found: /config\.json is open to others \(mode 0644\)/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'a configuration folder that others may list',
    make: () => {
      const home = homeWith(config());
      chmodSync(join(home, '.config/svc'), 0o755);
      return { home };
    },
    subject: 'Configuration',
    found: /svc is open to others \(mode 0755\)/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'a configuration that is not JSON any more',
    make: () => ({ home: homeWith(`{ "localToken": "${LOCAL_TOKEN}", }`) }),
    subject: 'Configuration',
    found: /is not valid JSON, near line 1/,
    fix: /Correct it, or move it away and run: svc setup/,
  },
  {
    name: 'a configuration behind a symbolic link',
    make: () => {
      const home = homeWith(config(), 'elsewhere');
      mkdirSync(join(home, '.config/svc'), { recursive: true, mode: 0o700 });
      symlinkSync(join(home, 'elsewhere/config.json'), configFile(home));
      return { home };
    },
    subject: 'Configuration',
    found: /is a symbolic link/,
    fix: /rm .*then svc setup/,
  },
  {
    name: 'what a write that was cut off has left behind',
    make: () => {
      const home = homeWith(config());
      const left = join(home, '.config/svc/.writing-a1b2c3');
      mkdirSync(left, { mode: 0o700 });
      writeFileSync(join(left, 'config.json'), PROVIDER_KEY, { mode: 0o600 });
      return { home };
    },
    level: 'warning',
    subject: 'Configuration',
    found: /\.writing-a1b2c3 was left by an interrupted write/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'a mode that does not exist',
    make: () => ({ home: homeWith(config({ proxy: { port: 0, memoryMode: 'on' } })) }),
    subject: 'Setting',
    found: /proxy\.memoryMode: expected one of off, read, write, read-write, found "on"/,
    fix: /^svc setup --yes --memory-mode read-write$/,
  },
  {
    name: 'a misspelled setting',
    make: () => ({ home: homeWith(config({ proxy: { port: 0, memorymode: 'off' } })) }),
    level: 'warning',
    subject: 'Setting',
    found: /proxy\.memorymode: expected one of .*found an unknown setting/,
    fix: /^Edit .*config\.json$/,
  },
  {
    name: 'a wrong variable of the environment',
    make: () => ({ home: homeWith(config()), env: { SVC_PORT: 'eighty' } }),
    subject: 'Setting',
    found: /proxy\.port \(SVC_PORT\): expected a whole number/,
    fix: /^unset SVC_PORT$/,
  },
  {
    name: 'no local token',
    make: () => {
      const { localToken: _, ...rest } = config();
      return { home: homeWith(rest) };
    },
    subject: 'Setting',
    found: /localToken: expected a token that svc setup made.*found nothing/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'no provider',
    make: () => ({ home: homeWith(config({ upstreams: [] })) }),
    level: 'warning',
    subject: 'Setting',
    found: /upstreams: expected at least one upstream/,
    fix: /^svc setup$/,
  },
  {
    name: 'two providers for one API style',
    make: () => ({
      home: homeWith(config({ upstreams: [UPSTREAM, { ...UPSTREAM, name: 'work' }] })),
    }),
    subject: 'Setting',
    found: /upstreams\[1\]\.apiStyle: expected one upstream for each API style/,
    fix: /^svc setup --yes --remove work/,
  },
  {
    name: 'a key in a variable that is not set',
    make: () => ({ home: homeWith(upstream({ providerKey: { env: 'NOT_SET' } })) }),
    subject: 'Setting',
    found: /expected a key in \$NOT_SET, found nothing/,
    fix: /^export NOT_SET=…, in the shell that runs svc start$/,
  },
  {
    name: 'a provider on http that nobody allowed',
    make: () => ({ home: homeWith(upstream({ baseUrl: 'http://127.0.0.1:11434' })) }),
    subject: 'Setting',
    found: /upstreams\[0\]\.baseUrl: expected https:\/\//,
    fix: /^svc setup --yes --upstream anthropic --base-url https/,
  },
  {
    name: 'R35: a provider in the own network, and nobody allowed that',
    make: () => ({ home: homeWith(upstream({ baseUrl: 'https://10.1.2.3' })) }),
    subject: 'Setting',
    found: /upstreams\[0\]\.baseUrl: expected a public host/,
    fix: /^svc setup --yes --upstream anthropic --base-url https/,
  },
  {
    name: 'a port that another program has',
    make: async () => {
      const port = await listen(createHttpServer((_, answer) => void answer.end('hello')));
      return { home: homeWith(config({ proxy: { port } })) };
    },
    subject: 'Port',
    found: /the program on 127\.0\.0\.1:\d+ is not svc/,
    fix: /svc setup --yes --port \d+/,
  },
  {
    name: 'a proxy that runs with another token',
    make: async () => {
      const answer: RequestListener = (_, reply) => {
        reply.setHeader('x-svc-local-proxy', '0.1.0');
        reply.end('{}');
      };
      const port = await listen(createHttpServer(answer));
      return { home: homeWith(config({ proxy: { port } })) };
    },
    subject: 'Port',
    found: /does not know the token of this configuration/,
    fix: /^Stop that svc, or: svc setup --yes --port/,
  },
  {
    name: 'a proxy of an earlier version that still runs',
    make: async () => {
      const home = homeWith(config());
      const env = { SVC_DATA_HOME: join(home, 'data') };
      await runCli(['start', '--detach'], { home, env });
      onTestFinished(async () => void (await runHere(['stop'], { home, env })));
      const [run] = readdirSync(env.SVC_DATA_HOME).filter((name) => /^proxy-\d+\.json$/.test(name));
      const file = join(env.SVC_DATA_HOME, run ?? '');
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(/"version":"[^"]*"/, '"version":"0.0.9"'),
      );
      return { home, env };
    },
    level: 'warning',
    subject: 'Proxy',
    found: /is version 0\.0\.9, this command is \d+\.\d+\.\d+/,
    fix: /^svc stop && svc start --detach$/,
  },
  {
    name: 'a data folder that others may list',
    make: async () => {
      const place = await withStore();
      chmodSync(place.env.SVC_DATA_HOME, 0o755);
      return place;
    },
    subject: 'Store',
    found: /data is open to others \(mode 0755\)/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'memories that others may read',
    make: async () => {
      const place = await withStore();
      chmodSync(join(place.env.SVC_DATA_HOME, 'memory.db'), 0o644);
      return place;
    },
    subject: 'Store',
    found: /memory\.db is open to others \(mode 0644\)/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'left-out outputs that others may read',
    make: async () => {
      const place = await withStore();
      mkdirSync(join(place.env.SVC_DATA_HOME, 'outputs'), { mode: 0o755 });
      return place;
    },
    subject: 'Store',
    found: /outputs is open to others \(mode 0755\)/,
    fix: /^svc doctor --fix$/,
    isMended: true,
  },
  {
    name: 'a store that is no database any more',
    make: async () => {
      const place = await withStore();
      const file = join(place.env.SVC_DATA_HOME, 'memory.db');
      writeFileSync(file, Buffer.alloc(statSync(file).size, 'x'));
      return place;
    },
    subject: 'Store',
    found: /The memory's file was damaged\. svc kept it as .*memory\.db\.corrupt-/,
    fix: /svc memory import --from claude-code/,
  },
  {
    name: 'memories that were moved away beside the log of the requests that used them',
    make: async () => {
      const place = await withStore();
      const folder = place.env.SVC_DATA_HOME;
      const store = openEmbeddedStore({ folder, report: () => undefined });
      store.requestLog.add(requestRow());
      await store.close();
      for (const name of readdirSync(folder)) {
        if (name.startsWith('memory.db')) rmSync(join(folder, name));
      }
      return place;
    },
    level: 'warning',
    subject: 'Store',
    found: /memory\.db is missing, and earlier requests used it/,
    fix: /^To restore a copy: svc stop/,
  },
  {
    name: 'a data folder that is a file',
    make: () => {
      const home = homeWith(config());
      writeFileSync(join(home, 'data'), '');
      return { home, env: { SVC_DATA_HOME: join(home, 'data') } };
    },
    subject: 'Store',
    found: /data is not a folder/,
    fix: /Move the file away/,
  },
  {
    name: 'a client that points somewhere else',
    make: () => {
      const home = homeWith(config());
      mkdirSync(join(home, '.claude'));
      const env = { ANTHROPIC_BASE_URL: 'https://gateway.example.com' };
      writeFileSync(join(home, '.claude/settings.json'), JSON.stringify({ env }));
      return { home };
    },
    level: 'warning',
    subject: 'Claude Code',
    found: /settings\.json names another address, which overrides svc run/,
    fix: /^svc connect claude$/,
  },
  {
    name: 'a client whose own settings send it here, and no proxy runs',
    make: () => {
      const home = homeWith(config({ proxy: { port: 18_799 } }));
      mkdirSync(join(home, '.claude'));
      const env = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:18799', ENABLE_TOOL_SEARCH: 'true' };
      writeFileSync(join(home, '.claude/settings.json'), JSON.stringify({ env }));
      return { home };
    },
    level: 'warning',
    subject: 'Claude Code',
    found: /its settings name this proxy, and no proxy runs/,
    fix: /^svc start --detach, .*svc disconnect claude$/,
  },
  {
    name: 'a proxy of the network that takes even local requests',
    make: () => ({
      home: homeWith(config()),
      env: { HTTPS_PROXY: 'http://proxy.example.com:8080' },
    }),
    level: 'warning',
    subject: 'Clients',
    found: /HTTPS_PROXY sends even requests for 127\.0\.0\.1 to that proxy/,
    fix: /^export NO_PROXY=127\.0\.0\.1,localhost$/,
  },
];
