import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { classOfHost } from '../../core/settings/own-machine.ts';

/**
 * Which addresses an upstream may be dialled at. A configured name must never lead svc, which holds
 * a key, into the machine's own network or to a cloud's metadata service.
 */
export interface AddressRule {
  /** Loopback and private networks too: the user said so for this upstream. */
  readonly allowPrivate: boolean;
  /** Private networks that an operator has opened, beside what `allowPrivate` says. */
  readonly networks?: readonly Network[];
  /** TLS. Without it no key leaves the private network, whatever else is allowed. */
  readonly isSecure: boolean;
  /** True for an address at which this program itself would answer. */
  readonly isOwn?: (address: string) => boolean;
}

/** Ranges of ipaddr.js that are private networks: RFC 1918, RFC 6598 (overlays), RFC 4193. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  'loopback',
  'private',
  'carrierGradeNat',
  'uniqueLocal',
]);

/**
 * Addresses that give any program on the machine that machine's cloud credentials: Azure, Alibaba,
 * AWS and Google. 169.254.169.254 and its like fall under the link-local range already.
 */
const METADATA: ReadonlySet<string> = new Set([
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
]);

/** As `parseNetwork` gives it: the network's address, and the bits that count. */
export type Network = ReturnType<typeof ipaddr.parseCIDR>;

/** Undefined for a text that is no network such as 10.1.0.0/16 or fd00:1::/32. */
export function parseNetwork(text: string): Network | undefined {
  return ipaddr.isValidCIDR(text) ? ipaddr.parseCIDR(text) : undefined;
}

/** `address` as the system's resolver or a socket gives it. */
export function mayDial(address: string, rule: AddressRule): boolean {
  if (isIP(address) === 0) return false;
  // `process` turns an IPv4 address inside IPv6 (::ffff:127.0.0.1) into what would be dialled.
  const ip = ipaddr.process(address);
  if (METADATA.has(ip.toString()) || rule.isOwn?.(address) === true) return false;
  if (PRIVATE_RANGES.has(ip.range())) return rule.allowPrivate || isIn(ip, rule.networks);
  return rule.isSecure && isGlobal(ip);
}

/** `hostname` as URL writes it. An address is judged here, a name only when it can be none but local. */
export function mayResolve(hostname: string, rule: AddressRule): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  if (isIP(host) !== 0) return mayDial(host, rule);
  const place = classOfHost(host);
  const isOpened = rule.allowPrivate || (rule.networks?.length ?? 0) > 0;
  return place === 'public' || (place === 'own' && isOpened);
}

/** The kind of network that an address is in, for people. */
export type AddressClass = 'public' | 'this machine' | 'a private network' | 'never allowed';

export function classOf(address: string): AddressClass {
  if (mayDial(address, { allowPrivate: false, isSecure: true })) return 'public';
  if (!mayDial(address, { allowPrivate: true, isSecure: true })) return 'never allowed';
  return ipaddr.process(address).range() === 'loopback' ? 'this machine' : 'a private network';
}

function isIn(ip: ipaddr.IPv4 | ipaddr.IPv6, networks: readonly Network[] = []): boolean {
  return networks.some(([network, bits]) => {
    return network.kind() === ip.kind() && ip.match(network, bits);
  });
}

function isGlobal(ip: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (ip.range() !== 'unicast') return false;
  // The library calls the deprecated ::/96 (::7f00:1 is 127.0.0.1 to some stacks) unicast.
  // Addresses assigned for global use are in 2000::/3.
  if (ip instanceof ipaddr.IPv6) return ((ip.parts[0] ?? 0) & 0xe000) === 0x2000;
  return true;
}
