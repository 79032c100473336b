/**
 * Recognises hosts that only programs on this machine reach, and hosts of private networks. RFC 6890 reserves all of
 * 127.0.0.0/8 for the loopback, and RFC 6761 the name localhost.
 */

/** Says whether a host is this machine. `hostname`: in URL's form, or as the listener was given it. */
export function isOwnMachine(hostname: string): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Says whether an address is plain http to this machine. */
export function isOwnMachineUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'http:' && isOwnMachine(hostname);
}

/**
 * 'own': this machine or a private network, for which an upstream needs "allowPrivate". 'never': a cloud's metadata
 * service, or an address that no server can have.
 */
type HostClass = 'public' | 'own' | 'never';

/**
 * Classifies the host of a base URL by its text, so that svc refuses a host already in the configuration and not only
 * when it connects. The addresses of a public name are classified when they are resolved. `hostname`: in URL's form,
 * so 0x7f.1 is already 127.0.0.1, and IPv6 is in brackets.
 */
export function classOfHost(hostname: string): HostClass {
  if (hostname.startsWith('[')) return classOfV6(groupsOf(hostname.slice(1, -1)));
  const name = hostname.replace(/\.+$/, '').toLowerCase();
  const parts = name.split('.');
  const bytes = parts.map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : -1));
  const isAddress = bytes.length === 4 && bytes.every((byte) => byte >= 0 && byte <= 255);
  if (isAddress) return classOfV4(bytes.reduce((sum, byte) => sum * 256 + byte, 0));
  if (METADATA_NAMES.has(name)) return 'never';
  return parts.length === 1 || LOCAL_NAME.test(name) ? 'own' : 'public';
}

/** Names of metadata services, which return the cloud credentials of the machine that asks. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  'instance-data',
  'instance-data.ec2.internal',
  'metadata',
  'metadata.azure.internal',
  'metadata.goog',
  'metadata.google.internal',
  'metadata.packet.net',
  'metadata.platformequinix.com',
  'metadata.tencentyun.com',
]);

const LOCAL_NAME =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/;

type Range = readonly [prefix: string, bits: number, place: HostClass];

/** The first range with the address decides; all other addresses are public. */
const V4_RANGES: readonly Range[] = [
  ['168.63.129.16', 32, 'never'], // Azure
  ['100.100.100.200', 32, 'never'], // Alibaba
  ['10.0.0.0', 8, 'own'],
  ['100.64.0.0', 10, 'own'],
  ['127.0.0.0', 8, 'own'],
  ['172.16.0.0', 12, 'own'],
  ['192.168.0.0', 16, 'own'],
  ['0.0.0.0', 8, 'never'],
  ['169.254.0.0', 16, 'never'],
  ['192.0.0.0', 24, 'never'],
  ['192.0.2.0', 24, 'never'],
  ['192.31.196.0', 24, 'never'],
  ['192.52.193.0', 24, 'never'],
  ['192.88.99.0', 24, 'never'],
  ['192.175.48.0', 24, 'never'],
  ['198.18.0.0', 15, 'never'],
  ['198.51.100.0', 24, 'never'],
  ['203.0.113.0', 24, 'never'],
  ['224.0.0.0', 3, 'never'],
];

const V4 = V4_RANGES.map(([prefix, bits, place]) => {
  const value = prefix.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  return { from: value, to: value + 2 ** (32 - bits), place };
});

function classOfV4(address: number): HostClass {
  return V4.find(({ from, to }) => address >= from && address < to)?.place ?? 'public';
}

function classOfV6(groups: readonly number[]): HostClass {
  const [first = 0, second = 0] = groups;
  const [high = 0, low = 0] = groups.slice(6);
  const startsWithZeros = (count: number): boolean =>
    groups.slice(0, count).every((group) => group === 0);
  // ::ffff:127.0.0.1 is dialled as the IPv4 address in it.
  if (startsWithZeros(5) && groups[5] === 0xffff) return classOfV4(high * 65_536 + low);
  if (startsWithZeros(7) && low === 1) return 'own';
  const text = groups.map((group) => group.toString(16)).join(':');
  if (text === 'fd00:ec2:0:0:0:0:0:254' || text === 'fd20:ce:0:0:0:0:0:254') return 'never';
  if ((first & 0xfe00) === 0xfc00) return 'own';
  // Global addresses are public, except 6to4, Teredo and others that contain another address, and reserved ones: those
  // for documentation (3fff::/20), and 2620:4f::/32 with the one for AS112.
  const isGlobal = (first & 0xe000) === 0x2000;
  const isSpecial = first === 0x2002 || (first === 0x2001 && (second < 0x200 || second === 0xdb8));
  const isReserved = (first === 0x3fff && second < 0x1000) || (first === 0x2620 && second === 0x4f);
  return isGlobal && !isSpecial && !isReserved ? 'public' : 'never';
}

/** Returns the eight groups of an IPv6 address in URL's form, which has no dotted part. */
function groupsOf(text: string): readonly number[] {
  const [head = '', tail] = text.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...missing, ...after].map((group) => Number.parseInt(group, 16));
}
