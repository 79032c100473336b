import { request } from 'node:http';
import type { ProxyAddress } from './health-probe.ts';

/**
 * One model request to a proxy on this machine, as a client of it. Only for a listener that has
 * proven to be ours: it is sent the local token.
 */
export interface LocalCall {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface LocalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A small model answers sixteen tokens in seconds; a queue at the provider may take longer. */
const ANSWER_MS = 60_000;
/** Limit for an answer of sixteen tokens. */
const BODY_CHARS_MAX = 1024 * 1024;

/** Undefined when there was no whole answer in time. */
export function callProxy(
  address: ProxyAddress,
  call: LocalCall,
): Promise<LocalAnswer | undefined> {
  return new Promise((resolve) => {
    const { path, body } = call;
    const headers = { ...call.headers, 'content-type': 'application/json' };
    const options = { ...address, method: 'POST', path, headers, agent: false };
    const asked = request(options, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        text += piece;
        if (text.length > BODY_CHARS_MAX) asked.destroy(new Error('too long'));
      });
      answer.on('end', () => {
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text });
      });
    });
    const deadline = setTimeout(() => asked.destroy(new Error('late')), ANSWER_MS);
    asked.on('close', () => {
      clearTimeout(deadline);
      resolve(undefined);
    });
    asked.on('error', () => resolve(undefined));
    asked.end(body);
  });
}
