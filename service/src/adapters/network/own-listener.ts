import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * Where this process listens. A provider whose name leads there is the service itself: each request to
 * it would cause the next one.
 */
export class OwnListener {
  #port: number | undefined;

  /** The port is known once the listener is open. */
  listensOn(port: number): void {
    this.#port = port;
  }

  isAt(address: string, port: number): boolean {
    return port === this.#port && isOwnAddress(address);
  }
}

function isOwnAddress(address: string): boolean {
  const ip = ipaddr.process(address);
  if (ip.range() === 'loopback' || ip.range() === 'unspecified') return true;
  return Object.values(networkInterfaces()).some((held = []) =>
    held.some((one) => ipaddr.process(one.address).toString() === ip.toString()),
  );
}
