import { createHash, randomBytes } from 'node:crypto';
import { get, type IncomingMessage, request } from 'node:http';
import { CHALLENGE_HEADER, PROOF_HEADER, readProof } from '../../core/http/proxy-proof.ts';
import { OPEN_REQUESTS_PATH } from '../../core/http/routes.ts';
import { codeOf } from '../files/file-error.ts';

/**
 * Finds out which program listens on the proxy's address. It sends no token and no body: until the
 * listener has proven that it knows the token, it is a stranger (T4).
 */

/** 'svc': an answer such as only svc gives; 'stranger': another program; 'silent': no answer in time. */
export type Listener = 'nobody' | 'svc' | 'stranger' | 'silent' | 'unreachable';

// A proxy on this machine answers in a millisecond, a busy one in some hundred.
const WAIT_MS = 2000;
/** The answer of svc is one short line. */
const BODY_CHARS_MAX = 1024;

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
}

/** `pid` is there when the listener has proven that it holds the local token. */
export interface Probe {
  readonly listener: Listener;
  readonly pid?: number;
}

export async function probeProxy(address: ProxyAddress, localToken: string): Promise<Probe> {
  const challenge = randomBytes(24).toString('base64url');
  const { listener, proof } = await askHealth(address, challenge);
  if (proof === undefined) return { listener };
  const digest = createHash('sha256').update(localToken).digest();
  const pid = readProof(digest, { challenge, port: address.port }, proof);
  return pid === undefined ? { listener } : { listener, pid };
}

interface Health {
  readonly listener: Listener;
  readonly proof?: string;
}

function askHealth(address: ProxyAddress, challenge: string): Promise<Health> {
  return new Promise((resolve) => {
    const options = {
      ...address,
      path: '/health',
      agent: false,
      timeout: WAIT_MS,
      headers: { [CHALLENGE_HEADER]: challenge },
    };
    const asked = get(options, (answer) => {
      let body = '';
      answer.setEncoding('latin1');
      answer.on('data', (piece: string) => {
        body += piece;
        if (body.length > BODY_CHARS_MAX) answer.destroy();
      });
      answer.on('close', () => resolve(healthOf(answer, body)));
    });
    // The idle timeout of the socket does not end a trickle of bytes; this does.
    const deadline = setTimeout(() => asked.destroy(new Error('silent')), WAIT_MS);
    asked.on('close', () => clearTimeout(deadline));
    asked.on('timeout', () => asked.destroy(new Error('silent')));
    asked.on('error', (error) => {
      const code = codeOf(error);
      if (error.message === 'silent') resolve({ listener: 'silent' });
      else if (code === 'ECONNREFUSED') resolve({ listener: 'nobody' });
      else resolve({ listener: code === 'EADDRNOTAVAIL' ? 'unreachable' : 'stranger' });
    });
  });
}

function healthOf(answer: IncomingMessage, body: string): Health {
  const proof = answer.headers[PROOF_HEADER];
  const listener = isSvc(answer, body) ? 'svc' : 'stranger';
  return typeof proof === 'string' ? { listener, proof } : { listener };
}

// The header of every answer of svc, or its name in the body; neither contains a version.
function isSvc({ statusCode, headers }: IncomingMessage, body: string): boolean {
  return statusCode === 200 && ('x-svc-local-proxy' in headers || /"svc\b/.test(body));
}

/**
 * The status of the proxy's answer to a request with the token; undefined if it does not answer.
 * The gate refuses this request after the token check, so nothing is forwarded or logged. The path is
 * svc's own, because a model route may want a login besides. Call it only for a listener that has proven
 * to be svc.
 */
export function probeToken(address: ProxyAddress, localToken: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${localToken}` };
    const options = {
      ...address,
      method: 'DELETE',
      path: OPEN_REQUESTS_PATH,
      headers,
      agent: false,
    };
    const asked = request(options, (answer) => {
      answer.resume();
      answer.on('close', () => resolve(answer.statusCode));
    });
    const deadline = setTimeout(() => asked.destroy(new Error('silent')), WAIT_MS);
    asked.on('close', () => clearTimeout(deadline));
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
