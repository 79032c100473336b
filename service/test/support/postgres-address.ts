import { readServerUrl, type ServerAddress } from '../../src/adapters/postgres-store/server-url.ts';

/** The parts of an address that a test has made. */
export function addressOf(url: string): ServerAddress {
  const address = readServerUrl(url);
  if (address === undefined) throw new Error('That is no address of PostgreSQL.');
  return address;
}
