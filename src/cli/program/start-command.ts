import { PROXY_FLAG_NAMES, type ProxyFlags } from '../../core/settings/config-proxy.ts';
import type { StartOptions } from '../proxy/start.ts';
import type { Call } from '../context.ts';
import type { CliCommand } from './program.ts';

/** The settings of the proxy that `svc setup` and `svc start` accept as options. */
export type RawFlags = Partial<Record<(typeof PROXY_FLAG_NAMES)[number], string>>;

export const PROXY_OPTIONS = {
  '--host <address>': 'the loopback address to listen on: 127.0.0.1 or ::1',
  '--port <number>': 'the port to listen on; 0 for any',
  '--memory-mode <mode>': 'off, read, write or read-write',
  '--compression-mode <mode>': 'passthrough, shadow or deterministic',
  '--input-budget <tokens>': 'estimated input tokens above which svc considers shortening',
  '--recalled-tokens-max <tokens>':
    'limit for the estimated tokens of recalled memory in a conversation',
} as const;

export function flagsOf(options: RawFlags): ProxyFlags {
  const given = PROXY_FLAG_NAMES.filter((name) => options[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, options[name]]));
}

type StartFlags = Omit<StartOptions, 'flags'> &
  RawFlags & { readonly detach?: boolean; readonly atLogin?: boolean; readonly print?: boolean };

/** The command `svc start`. It is in COMMANDS, and is the only command in the bundle of quick-start.ts. */
export const START_COMMAND: CliCommand = {
  name: 'start',
  group: 'more',
  description: 'Start the proxy; --at-login keeps it running',
  options: {
    '-d, --detach': 'start in the background and return when it accepts requests',
    '--at-login': 'start now and at every login, by a user service of systemd or launchd',
    '--no-at-login': 'stop and remove that user service',
    '--print': 'with --at-login: print the file of the user service and change nothing',
    '-q, --quiet': 'print problems only',
    '--log <form>':
      'a line for each request: text on stderr (as on a terminal), json on stdout, or off',
    '--json': 'print the address as a line of JSON on stdout',
    ...PROXY_OPTIONS,
  },
  more: `If there is no configuration, and ANTHROPIC_API_KEY or OPENAI_API_KEY is set, start creates a
configuration that names those variables.

On a company network, start obeys HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and "proxy" of an upstream.
NODE_EXTRA_CA_CERTS adds trusted certificates. See: svc help networks`,
  examples: [
    'svc start',
    'svc start --detach',
    'svc start --at-login',
    'svc start --port 9000 --memory-mode read',
    'svc start --log json | jq .memoryState',
    'SVC_PORT=9000 svc start',
  ],
  async run({ options, context }: Call<StartFlags>) {
    if (options.atLogin !== undefined) {
      const { installUnit, uninstallUnit } = await import('../proxy/unit.ts');
      return options.atLogin ? installUnit(options, context) : uninstallUnit(context);
    }
    const flags = flagsOf(options);
    if (options.detach === true) {
      const { startDetached } = await import('../proxy/proxy-process.ts');
      return startDetached({ ...options, flags }, context);
    }
    const { start } = await import('../proxy/start.ts');
    const { startProxy } = await import('../compose.ts');
    return start({ ...options, flags }, context, { startProxy, signals: process });
  },
};
