import type { Environment } from '../../core/settings/config-values.ts';

/** The variables with which clients send even loopback requests to a proxy of the network. */
const NAMES = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];

/** Those of them that are set. */
export function proxyVariables(environment: Environment): readonly string[] {
  return NAMES.filter((name) => Boolean(environment[name]));
}

/** True when NO_PROXY keeps requests to this machine on it. */
export function sparesLoopback(environment: Environment): boolean {
  const list = `${environment['NO_PROXY'] ?? ''},${environment['no_proxy'] ?? ''}`;
  const entries = list.split(/[\s,]+/);
  return entries.includes('127.0.0.1') || entries.includes('*');
}
