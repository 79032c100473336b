/**
 * Hosts that only programs on this very machine reach: the only ones that svc may reach without
 * TLS. RFC 6890 gives all of 127.0.0.0/8 to the loopback, and RFC 6761 the name.
 */

/** `hostname`: as URL writes it, or as the listener was given it. */
export function isOwnMachine(hostname: string): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Plain http to this machine and to no other. */
export function isOwnMachineUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'http:' && isOwnMachine(hostname);
}
