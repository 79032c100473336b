import { get } from 'node:http';
import { codeOf } from './file-error.ts';

/**
 * Asks who listens on the proxy's address. Sends no token and no body: until it has answered,
 * whoever listens there is a stranger (T4).
 */

/** 'svc': an answer such as only svc gives; 'stranger': another program; 'silent': no answer in time. */
export type Listener = 'nobody' | 'svc' | 'stranger' | 'silent' | 'unreachable';

// A proxy on this machine answers in a millisecond, a busy one in some hundred.
const WAIT_MS = 2000;

export function probeHealth(address: {
  readonly host: string;
  readonly port: number;
}): Promise<Listener> {
  return new Promise((resolve) => {
    const request = get(
      { ...address, path: '/health', agent: false, timeout: WAIT_MS },
      (answer) => {
        answer.resume();
        const isSvc = answer.statusCode === 200 && 'x-svc-local-proxy' in answer.headers;
        resolve(isSvc ? 'svc' : 'stranger');
        request.destroy();
      },
    );
    // The idle timeout of the socket does not end a trickle of bytes; this does.
    const deadline = setTimeout(() => request.destroy(new Error('silent')), WAIT_MS);
    request.on('close', () => clearTimeout(deadline));
    request.on('timeout', () => request.destroy(new Error('silent')));
    request.on('error', (error) => {
      const code = codeOf(error);
      if (error.message === 'silent') resolve('silent');
      else if (code === 'ECONNREFUSED') resolve('nobody');
      else resolve(code === 'EADDRNOTAVAIL' ? 'unreachable' : 'stranger');
    });
  });
}
