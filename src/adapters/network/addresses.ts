import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { classOfHost } from '../../core/settings/own-machine.ts';

/**
 * Decides which addresses of an upstream may be dialled. A configured name must never lead svc, which holds a key,
 * into the machine's own network or to a cloud's metadata service.
 */
export interface AddressRule {
  /** The user has allowed loopback and private networks for this upstream. */
  readonly allowPrivate: boolean;
  /** Private networks that an operator has allowed, in addition to `allowPrivate`. */
  readonly networks?: readonly Network[];
  /** The connection uses TLS. Without it no key leaves the private network, whatever else is allowed. */
  readonly isSecure: boolean;
}

/** Ranges in ipaddr.js that are private networks: RFC 1918, RFC 6598 (overlays), RFC 4193. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  'loopback',
  'private',
  'carrierGradeNat',
  'uniqueLocal',
]);

/**
 * Addresses that return the machine's cloud credentials to any program on it: Azure, Alibaba, AWS and Google.
 * 169.254.169.254 and similar ones are already in the link-local range.
 */
const METADATA: ReadonlySet<string> = new Set([
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
]);

/** A network as `parseNetwork` returns it: its address and its prefix length. */
export type Network = ReturnType<typeof ipaddr.parseCIDR>;

/** Parses a network such as 10.1.0.0/16 or fd00:1::/32; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  return ipaddr.isValidCIDR(text) ? ipaddr.parseCIDR(text) : undefined;
}

/** Says whether an address may be dialled. `address`: from the system's resolver or a socket. */
export function mayDial(address: string, rule: AddressRule): boolean {
  if (isIP(address) === 0) return false;
  // `process` converts an IPv4 address inside IPv6 (::ffff:127.0.0.1) to the IPv4 address that would be dialled.
  const ip = ipaddr.process(address);
  if (METADATA.has(ip.toString())) return false;
  if (PRIVATE_RANGES.has(ip.range())) return rule.allowPrivate || isIn(ip, rule.networks);
  return rule.isSecure && isGlobal(ip);
}

/**
 * Says whether a host may be resolved. An address is checked here; a name is refused only if it must be local.
 * `hostname`: in URL's form.
 */
export function mayResolve(hostname: string, rule: AddressRule): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  if (isIP(host) !== 0) return mayDial(host, rule);
  const place = classOfHost(host);
  const isOpened = rule.allowPrivate || (rule.networks?.length ?? 0) > 0;
  return place === 'public' || (place === 'own' && isOpened);
}

/** The kind of network that an address is in, as users read it. */
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
  // ipaddr.js calls the deprecated ::/96 unicast, in which ::7f00:1 is 127.0.0.1 for some systems. So only 2000::/3
  // counts, which has all global addresses.
  if (ip instanceof ipaddr.IPv6) return ((ip.parts[0] ?? 0) & 0xe000) === 0x2000;
  return true;
}
