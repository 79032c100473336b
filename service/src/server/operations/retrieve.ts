import { type RetrieveAnswer, retrieveRequest } from '../../../../src/core/memory-api/contract.ts';
import {
  reference,
  space as spaceShape,
  textReference,
} from '../../../../src/core/memory-api/words.ts';
import { ANSWER_BYTES_MAX } from '../../../../src/core/memory-api/limits.ts';
import { type ContentRecord, recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { eitherOf, integer, oneOf } from '../../../../src/core/memory-api/shape.ts';
import { chooseSpaces, type Operation, readBody, readValue, replyJson } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { objectOf } from '../wire.ts';

/** The contract's default. */
const BYTES_FALLBACK = 1_048_576;
/** Room for the rest of an answer besides its 256 records. */
const AROUND_BYTES = 256 * 1024;
const LINES_MAX = 20_000;
const LINES_FALLBACK = 2000;

export const retrieve: Operation = async (call) => {
  const { space, refs, max_bytes: bytesMax = BYTES_FALLBACK } = readBody(call, retrieveRequest);
  const found = await call.store.retrieve(
    {
      spaces: chooseSpaces(call.key, space),
      refs,
      bytesMax: Math.min(bytesMax, ANSWER_BYTES_MAX.retrieve - AROUND_BYTES),
    },
    call.signal,
  );
  const answer: RetrieveAnswer = {
    ...(found.state === undefined
      ? {}
      : { space: found.state.space, generation: found.state.generation }),
    objects: found.objects.map(objectOf),
    missing: found.missing,
  };
  return replyJson(answer);
};

/** One record as plain text, by lines: for an agent with a shell. */
export const getObject: Operation = async (call) => {
  const { query } = call.head;
  const named = query.get('space');
  const space = named === null ? undefined : readValue(named, spaceShape);
  const spaces = chooseSpaces(call.key, space);
  const ref = readValue(call.parameter, eitherOf(reference, textReference));
  readValue(query.get('format') ?? 'text', oneOf('text'));
  const { first, count } = linesIn(query);
  const bytesMax = ANSWER_BYTES_MAX.retrieve;
  const { objects } = await call.store.retrieve({ spaces, refs: [ref], bytesMax }, call.signal);
  const [object] = objects;
  if (object === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such record.');
  const lines = plainText(recordOfBytes(object.bytes)).split('\n');
  return {
    body: lines.slice(first - 1, first - 1 + count).join('\n'),
    contentType: 'text/plain; charset=utf-8',
    headers: {
      'x-svc-digest': object.origin.digest,
      'x-svc-total-lines': String(lines.length),
    },
  };
};

/** `lines=1-200`, or where the first one is and how many. */
function linesIn(query: URLSearchParams): { readonly first: number; readonly count: number } {
  const lines = query.get('lines');
  if (lines === null) {
    const first = numberIn(query, 'offset_line', { min: 1, max: Number.MAX_SAFE_INTEGER, or: 1 });
    const count = numberIn(query, 'max_lines', { min: 1, max: LINES_MAX, or: LINES_FALLBACK });
    return { first, count };
  }
  const [, from = '', to = ''] = /^(\d{1,15})-(\d{1,15})$/.exec(lines) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from !== '' && first >= 1 && last >= first) {
    return { first, count: Math.min(last - first + 1, LINES_MAX) };
  }
  const message = 'lines is not a range of whole numbers such as 1-200.';
  throw new ServiceFault('INVALID_REQUEST', message, { param: 'lines' });
}

function plainText(record: ContentRecord): string {
  if (record.k !== 'exchange') return record.t.join('\n');
  return record.m.map(({ r, t }) => `${r}: ${t.join('\n')}`).join('\n');
}

/** A number of the query. Throws ServiceFault INVALID_REQUEST. */
export function numberIn(
  query: URLSearchParams,
  name: string,
  { min, max, or }: { readonly min: number; readonly max: number; readonly or: number },
): number {
  const text = query.get(name);
  if (text === null) return or;
  return readValue(/^\d{1,15}$/.test(text) ? Number(text) : text, integer(min, max));
}
