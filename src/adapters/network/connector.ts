import type { buildConnector } from 'undici';
import type { NetworkProxy } from '../../core/settings/network-proxy.ts';
import type { AddressRule } from './addresses.ts';
import { pinnedConnector, type Trust } from './pinned-connector.ts';
import { tunnelConnector } from './tunnel-connector.ts';

export interface Way {
  readonly rule: AddressRule;
  /** Absent: the host is dialled at an address that was checked. */
  readonly proxy?: NetworkProxy | undefined;
}

/** The one choice between the two ways to a host. */
export function connectorTo({ rule, proxy }: Way, trust: Trust): buildConnector.connector {
  return proxy === undefined
    ? pinnedConnector(rule, trust)
    : tunnelConnector({ proxy, rule }, trust);
}
