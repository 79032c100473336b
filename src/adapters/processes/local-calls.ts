import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { asList, asRecord, isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import {
  CHALLENGE_HEADER,
  digestOf,
  PROOF_HEADER,
  readProof,
} from '../../core/http/local-token.ts';
import { OPEN_REQUESTS_PATH } from '../../core/http/routes.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { codeOf } from '../files/file-error.ts';

/**
 * Calls the program at a local port. probeProxy() asks the program to prove that it knows the local token; until it has
 * done so, callers send it no token and no body.
 */

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * What listens on the port. 'svc': a program that answers like svc. 'stranger': another program. 'silent': a program
 * that did not answer in time. 'unreachable': the address does not exist on this machine.
 */
export type Listener = 'nobody' | 'svc' | 'stranger' | 'silent' | 'unreachable';

/** `pid`: the listener's process id; only set if the listener has proven to know the local token. */
export interface Probe {
  readonly listener: Listener;
  readonly pid?: number;
}

/** Deadline of each call but a POST. A proxy on this machine answers within a millisecond, a busy one in some 100. */
const WAIT_MS = 2000;
/** Deadline of a POST. A test call of `svc doctor` waits for a model, and its provider may queue the request. */
const ANSWER_MS = 60_000;
/** Longest answer to a probe. svc sends one short line. */
const HEALTH_CHARS_MAX = 1024;
/** Longest answer to a POST or to probeToken(). The sixteen tokens of a test call or a hook's text need far less. */
const BODY_CHARS_MAX = 1024 * 1024;
/** Longest list of open requests. A row has about 1 kB, and a proxy has fewer than a thousand open requests. */
const ROWS_CHARS_MAX = 2 * 1024 * 1024;

/** Finds out what listens at an address. `key`: the local token, or its digest. */
export async function probeProxy(address: ProxyAddress, key: string | Buffer): Promise<Probe> {
  const challenge = randomBytes(24).toString('base64url');
  const headers = { [CHALLENGE_HEADER]: challenge };
  const limits = { waitMs: WAIT_MS, charsMax: HEALTH_CHARS_MAX };
  const answer = await call(address, { method: 'GET', path: '/health', headers }, limits);
  if ('failure' in answer) return { listener: LISTENERS[answer.failure] ?? 'stranger' };
  const proof = answer.headers[PROOF_HEADER];
  const listener = isSvc(answer) ? 'svc' : 'stranger';
  if (typeof proof !== 'string') return { listener };
  const digest = typeof key === 'string' ? digestOf(key) : key;
  const pid = readProof(digest, { challenge, port: address.port }, proof);
  return pid === undefined ? { listener } : { listener, pid };
}

/** Returns the newest of these proxies that proves to know the token; undefined if none does. `runs`: oldest first. */
export async function findProven<Run extends ProxyAddress & { readonly pid: number }>(
  runs: readonly Run[],
  localToken: string,
): Promise<Run | undefined> {
  for (const run of runs.toReversed()) {
    // oxlint-disable-next-line no-await-in-loop -- Most lists have one element.
    if ((await probeProxy(run, localToken)).pid === run.pid) return run;
  }
  return undefined;
}

const LISTENERS: Readonly<Record<string, Listener>> = {
  late: 'silent',
  ECONNREFUSED: 'nobody',
  EADDRNOTAVAIL: 'unreachable',
};

/** Says whether the answer looks like svc's: it has svc's header, or svc's name in the body. */
function isSvc({ status, headers, body }: Answer): boolean {
  return status === 200 && ('x-svc-local-proxy' in headers || /"svc\b/.test(body));
}

/**
 * Returns the status with which the proxy answers a request with the token; undefined without an answer. The proxy
 * refuses the method after it has checked the token, so it forwards and logs nothing. The path is not a model's,
 * because such a path may also need a login. Call it only for a listener that has proven to be svc.
 */
export async function probeToken(
  address: ProxyAddress,
  localToken: string,
): Promise<number | undefined> {
  const asked = { method: 'DELETE', path: OPEN_REQUESTS_PATH, headers: bearer(localToken) };
  const limits = { waitMs: WAIT_MS, charsMax: BODY_CHARS_MAX };
  const answer = await call(address, asked, limits);
  return 'failure' in answer ? undefined : answer.status;
}

/**
 * Returns the requests that a proxy is answering; an empty list if it does not answer with status 200. Call it only for
 * a listener that has proven to be svc.
 */
export async function askOpenRequests(
  address: ProxyAddress,
  localToken: string,
): Promise<readonly RequestRow[]> {
  const asked = { method: 'GET', path: OPEN_REQUESTS_PATH, headers: bearer(localToken) };
  const limits = { waitMs: WAIT_MS, charsMax: ROWS_CHARS_MAX };
  const answer = await call(address, asked, limits);
  if ('failure' in answer || answer.status !== 200) return [];
  return asList(asRecord(parseJson(answer.body))['requests']).filter(isRow);
}

/** Says whether a value has the members that a list of requests shows. The proxy may be another version of svc. */
function isRow(value: unknown): value is RequestRow {
  const texts = ['id', 'client', 'kind', 'model', 'space', 'conversation', 'end', 'memoryState'];
  const numbers = ['at', 'status', 'originalInputTokens', 'forwardedInputTokens', 'recalledTokens'];
  return (
    isRecord(value) &&
    texts.every((name) => typeof value[name] === 'string') &&
    numbers.every((name) => Number.isFinite(value[name])) &&
    isRecord(value['ms'])
  );
}

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

/**
 * Sends one POST to the proxy. The caller puts the local token into `headers`, so the listener must have proven to be
 * svc. Returns undefined if there is no whole answer in time.
 */
export async function callProxy(
  { host, port }: ProxyAddress,
  { path, headers, body }: LocalCall,
): Promise<LocalAnswer | undefined> {
  const asked = {
    method: 'POST',
    path,
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  };
  const limits = { waitMs: ANSWER_MS, charsMax: BODY_CHARS_MAX };
  const answer = await call({ host, port }, asked, limits);
  return 'failure' in answer || !answer.isWhole ? undefined : answer;
}

function bearer(localToken: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${localToken}` };
}

interface Answer extends LocalAnswer {
  /** False if the answer was late, was cut, or was too long. */
  readonly isWhole: boolean;
}

/** Sends one call. `failure`: 'late', or the system's error code. */
function call(
  { host, port }: ProxyAddress,
  { body: sent, ...asked }: Omit<LocalCall, 'body'> & { readonly method: string; body?: string },
  { waitMs, charsMax }: { readonly waitMs: number; readonly charsMax: number },
): Promise<Answer | { readonly failure: string }> {
  return new Promise((resolve) => {
    let failure = '';
    let isAnswered = false;
    const outgoing = request({ host, port, ...asked, agent: false }, (answer) => {
      isAnswered = true;
      const { statusCode: status = 0, headers } = answer;
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        body += piece;
        if (body.length > charsMax) answer.destroy();
      });
      answer.on('error', () => undefined);
      answer.on('close', () => {
        const isWhole = answer.complete && body.length <= charsMax;
        resolve({ status, headers, body, isWhole });
      });
    });
    // Use a timer: a socket's timeout is reset by every byte that arrives.
    const deadline = setTimeout(() => {
      failure = 'late';
      outgoing.destroy();
    }, waitMs);
    outgoing.on('error', (error) => {
      failure ||= codeOf(error);
    });
    outgoing.on('close', () => {
      clearTimeout(deadline);
      if (!isAnswered) resolve({ failure });
    });
    outgoing.end(sent);
  });
}
