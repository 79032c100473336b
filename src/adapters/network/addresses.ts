import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { classOfHost } from '../../core/settings/own-machine.ts';

/**
 * Decides which addresses of an upstream svc may connect to. svc sends a key there, so a configured name must not lead
 * it into the machine's own network unless the user allows that, and never to a cloud's metadata service.
 */
export interface AddressRule {
  /** True if the user has allowed loopback and private networks for this upstream. */
  readonly allowPrivate: boolean;
  /** Private networks that are allowed even if `allowPrivate` is false. */
  readonly networks?: readonly Network[];
  /** True if the connection uses TLS. Without TLS only private networks may be allowed. */
  readonly isSecure: boolean;
}

/** The ranges of ipaddr.js that are private networks: loopback, RFC 1918, RFC 6598 (used by overlays), RFC 4193. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  'loopback',
  'private',
  'carrierGradeNat',
  'uniqueLocal',
]);

/**
 * Addresses at which Azure, Alibaba, AWS and Google give a machine's cloud credentials to any program on it. Others,
 * such as 169.254.169.254, are refused because they are in the link-local range.
 */
const METADATA: ReadonlySet<string> = new Set([
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
]);

/** The address and the prefix length of a network. */
export type Network = ReturnType<typeof ipaddr.parseCIDR>;

/** Parses a network such as 10.1.0.0/16 or fd00:1::/32; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  return ipaddr.isValidCIDR(text) ? ipaddr.parseCIDR(text) : undefined;
}

/** Says whether svc may connect to an address, which comes from the system's resolver or from a socket. */
export function mayDial(address: string, rule: AddressRule): boolean {
  if (isIP(address) === 0) return false;
  // ipaddr.process() converts an IPv4 address in IPv6 form (::ffff:127.0.0.1) to the IPv4 address.
  const ip = ipaddr.process(address);
  if (METADATA.has(ip.toString())) return false;
  if (PRIVATE_RANGES.has(ip.range())) return rule.allowPrivate || isIn(ip, rule.networks);
  return rule.isSecure && isGlobal(ip);
}

/**
 * Says whether svc may look up a host. An address is checked like in mayDial(). A name of a cloud's metadata service is
 * refused, and so is one that is local by definition, such as localhost, if local addresses are not allowed.
 * `hostname`: as URL.hostname gives it.
 */
export function mayResolve(hostname: string, rule: AddressRule): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  if (isIP(host) !== 0) return mayDial(host, rule);
  const place = classOfHost(host);
  const isOpened = rule.allowPrivate || (rule.networks?.length ?? 0) > 0;
  return place === 'public' || (place === 'own' && isOpened);
}

/** The kind of network that an address is in, in words for users. */
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
  // Accept only 2000::/3, which has all global IPv6 addresses. ipaddr.js reports the deprecated range ::/96 as unicast
  // too, and some systems route its ::7f00:1 to 127.0.0.1.
  if (ip instanceof ipaddr.IPv6) return ((ip.parts[0] ?? 0) & 0xe000) === 0x2000;
  return true;
}
