import { get, type IncomingMessage } from 'node:http';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { OPEN_REQUESTS_PATH } from '../../core/http/routes.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { ProxyAddress } from './health-probe.ts';

/** Asks a running proxy what it is answering. Only for a listener that has proven to be ours. */

// A proxy on this machine answers in a millisecond, a busy one in some hundred.
const WAIT_MS = 2000;
/** A row is about 1 kB; more than a thousand open requests is more than one process carries. */
const BODY_CHARS_MAX = 2 * 1024 * 1024;

/** Empty when it does not answer, or is of a version that does not know the question. */
export function askOpenRequests(
  address: ProxyAddress,
  localToken: string,
): Promise<readonly RequestRow[]> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${localToken}` };
    const asked = get({ ...address, path: OPEN_REQUESTS_PATH, headers, agent: false }, (answer) => {
      void textOf(answer).then((text) => resolve(rowsIn(answer.statusCode === 200 ? text : '')));
    });
    const deadline = setTimeout(() => asked.destroy(), WAIT_MS);
    asked.on('close', () => {
      clearTimeout(deadline);
      resolve([]);
    });
    asked.on('error', () => resolve([]));
  });
}

function textOf(answer: IncomingMessage): Promise<string> {
  let text = '';
  answer.setEncoding('utf8');
  answer.on('data', (piece: string) => {
    text += piece;
    if (text.length > BODY_CHARS_MAX) answer.destroy();
  });
  return new Promise((resolve) => {
    answer.on('end', () => resolve(text));
    answer.on('close', () => resolve(''));
  });
}

function rowsIn(text: string): readonly RequestRow[] {
  try {
    const value: unknown = JSON.parse(text);
    const rows: unknown = isRecord(value) ? value['requests'] : undefined;
    return Array.isArray(rows) ? rows.filter(isRow) : [];
  } catch {
    return [];
  }
}

/** The members that the view reads; the proxy has proven to be svc, perhaps of another version. */
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
