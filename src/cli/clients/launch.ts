import type { Dialect } from '../../core/conversation/view.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';

/**
 * How `svc run` starts a client: arguments and environment say where the proxy is. No file changes.
 */
export interface LaunchedClient {
  /** The name in the search path. */
  readonly program: string;
  /** The command that installs it. */
  readonly install: string;
  /** The dialects that it can speak to svc, the best one first. */
  readonly dialects: readonly [Dialect, ...Dialect[]];
  launch(facts: LaunchFacts): Promise<Launch> | Launch;
}

export interface LaunchFacts {
  /** Where the proxy listens. */
  readonly host: string;
  readonly port: number;
  readonly localToken: string;
  readonly environment: Environment;
  /** The provider of the client's first dialect as the configuration has it; undefined where there is none. */
  readonly upstream: Draft | undefined;
  /** All providers, as the configuration has them. */
  readonly upstreams: readonly Draft[];
  /** The person's own arguments. */
  readonly args: readonly string[];
  /** The script of this program. */
  readonly script: string;
  /** The output of `PROGRAM --version`; '' where it prints nothing in time. */
  readonly version: () => Promise<string>;
}

export interface Launch {
  /** Before the person's own arguments. */
  readonly args: readonly string[];
  readonly environment: Environment;
  /** Lines for the person: who pays, what is separate. */
  readonly notes: readonly string[];
}

/** True for a provider to which svc passes the client's own login on. */
export function takesLogin(upstream: Draft | undefined): boolean {
  return upstream?.['auth'] === 'client';
}
