import { get, type IncomingMessage } from 'node:http';
import { codeOf } from './file-error.ts';

/**
 * Asks who listens on the proxy's address. Sends no token and no body: until it has answered,
 * whoever listens there is a stranger (T4).
 */

/** 'svc': an answer such as only svc gives; 'stranger': another program; 'silent': no answer in time. */
export type Listener = 'nobody' | 'svc' | 'stranger' | 'silent' | 'unreachable';

// A proxy on this machine answers in a millisecond, a busy one in some hundred.
const WAIT_MS = 2000;
/** The answer of svc is one short line. */
const BODY_CHARS_MAX = 1024;

export function probeHealth(address: {
  readonly host: string;
  readonly port: number;
}): Promise<Listener> {
  return new Promise((resolve) => {
    const request = get(
      { ...address, path: '/health', agent: false, timeout: WAIT_MS },
      (answer) => {
        let body = '';
        answer.setEncoding('latin1');
        answer.on('data', (piece: string) => {
          body += piece;
          if (body.length > BODY_CHARS_MAX) answer.destroy();
        });
        answer.on('close', () => resolve(isSvc(answer, body) ? 'svc' : 'stranger'));
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

// The header of every answer of svc, or its name in the body; neither tells a version.
function isSvc({ statusCode, headers }: IncomingMessage, body: string): boolean {
  return statusCode === 200 && ('x-svc-local-proxy' in headers || /"svc\b/.test(body));
}
