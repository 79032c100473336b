import type { Command } from 'commander';
import { PROXY_FLAG_NAMES, type ProxyFlags } from '../../core/settings/config-proxy.ts';

/** The settings of the proxy that setup and start accept on the command line. */
export type RawFlags = Partial<Record<(typeof PROXY_FLAG_NAMES)[number], string>>;

export function withProxyFlags(command: Command): Command {
  return command
    .option('--host <address>', 'the loopback address to listen on: 127.0.0.1 or ::1')
    .option('--port <number>', 'the port to listen on; 0 for any')
    .option('--memory-mode <mode>', 'off, read, write or read-write')
    .option('--compression-mode <mode>', 'passthrough, shadow or deterministic')
    .option(
      '--input-budget <tokens>',
      'estimated input tokens above which svc considers shortening',
    )
    .option(
      '--recalled-tokens-max <tokens>',
      'limit for the estimated tokens of recalled memory in a request',
    );
}

export function flagsOf(options: RawFlags): ProxyFlags {
  const given = PROXY_FLAG_NAMES.filter((name) => options[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, options[name]]));
}
