/** `http://127.0.0.1:8765` */
export function urlOf(
  { host, port }: { readonly host: string; readonly port: number },
  scheme: 'http' | 'https' = 'http',
): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** A port to propose when this one cannot be had. */
export function otherPort(port: number): number {
  return port < 1024 || port === 65_535 ? 8765 : port + 1;
}
