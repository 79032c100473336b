/**
 * What only programs on this very machine reach: the one place where svc may speak without TLS. RFC
 * 6890 gives all of 127.0.0.0/8 to the loopback, and RFC 6761 the name.
 */

/** `hostname`: as URL writes it, or as it is listened on. */
export function isOwnMachine(hostname: string): boolean {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Plain http, and to nobody else. */
export function isOwnMachineUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'http:' && isOwnMachine(hostname);
}
