import {
  itemsQuery,
  type MemoryItem,
  type RetrieveAnswer,
  retrieveRequest,
} from '../../../../src/core/memory-api/contract.ts';
import { ANSWER_BYTES_MAX, PAGE_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { ContentRecord } from '../../../../src/core/memory-api/records.ts';
import { eitherOf, integer, oneOf } from '../../../../src/core/memory-api/shape.ts';
import {
  reference,
  space as spaceShape,
  textReference,
} from '../../../../src/core/memory-api/words.ts';
import type { ObjectKind, PageFilter } from '../../ports/service-store.ts';
import {
  type Call,
  chooseSpaces,
  listBody,
  type Operation,
  readBody,
  readValue,
  type Reply,
  replyJson,
} from '../call.ts';
import { invalid, ServiceFault } from '../fault.ts';

/** The operations that read: whole records, one record as text, and pages of items, sources and purges. */

/** Bound on the bytes of records in an answer, if the call names none: the contract's default. */
const BYTES_FALLBACK = 1_048_576;
/** Bytes of an answer for what it states about each record besides the record: 1 kB for each of at most 256 records. */
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
    objects: found.objects,
    missing: found.missing,
  };
  return replyJson(answer);
};

/** Returns lines of one record as plain text, for an agent that reads it with a shell command. */
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
  const lines = plainText(object.record).split('\n');
  return {
    body: lines.slice(first - 1, first - 1 + count).join('\n'),
    contentType: 'text/plain; charset=utf-8',
    headers: {
      'x-svc-digest': object.digest,
      'x-svc-total-lines': String(lines.length),
    },
  };
};

/** Reads the first line and the number of lines, from `lines=1-200` or from `offset_line` and `max_lines`. */
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
  throw invalid('lines is not a range of whole numbers such as 1-200.', 'lines');
}

function plainText(record: ContentRecord): string {
  if (record.k !== 'exchange') return record.t.join('\n');
  return record.m.map(({ r, t }) => `${r}: ${t.join('\n')}`).join('\n');
}

/** Reads a number from the query. Throws ServiceFault INVALID_REQUEST. */
export function numberIn(
  query: URLSearchParams,
  name: string,
  { min, max, or }: { readonly min: number; readonly max: number; readonly or: number },
): number {
  const text = query.get(name);
  if (text === null) return or;
  return readValue(/^\d{1,15}$/.test(text) ? Number(text) : text, integer(min, max));
}

// The cursor of a page is the number of elements before the page.

const LIMIT_FALLBACK = 20;
/** Bytes of a page for everything but its elements. */
const PAGE_AROUND_BYTES = 64 * 1024;

export const listItems: Operation = async (call) => {
  const asked = readValue(queryOf(call), itemsQuery);
  const page = pageOf(call, asked.space);
  if (asked.kind === 'fact' || asked.kind === 'summary') return pageReply([], page, nameOfItem);
  const items = await call.store.listItems(
    {
      ...page,
      // One element more than asked for shows whether there is another page.
      limit: page.limit + 1,
      kind: asked.kind satisfies ObjectKind | undefined,
      role: asked.role,
      session: asked.session_id,
      sourceId: asked.source_id,
      refs: asked.refs,
      since: timeIn(asked.since),
      until: timeIn(asked.until),
      words: asked.q,
    },
    call.signal,
  );
  return pageReply(items, page, nameOfItem);
};

export const listSources: Operation = async (call) => {
  const page = pageOf(call, readValue(call.head.query.get('space'), spaceShape));
  const sources = await call.store.listSources({ ...page, limit: page.limit + 1 }, call.signal);
  return pageReply(sources, page, (source) => source.source_id);
};

export const listPurges: Operation = async (call, { signer }) => {
  const page = pageOf(call, undefined);
  const purges = await call.store.listPurges({ ...page, limit: page.limit + 1 }, call.signal);
  const signed = await Promise.all(purges.map((purge) => signer.sign(purge)));
  return pageReply(signed, page, (purge) => purge.purge_id);
};

function nameOfItem(item: MemoryItem): string {
  return item.item_id;
}

/** Makes a page: as many elements as were asked for and fit into an answer, but at least one if there is any. */
function pageReply<One>(
  found: readonly One[],
  { limit, offset }: PageFilter,
  nameOf: (one: One) => string,
): Reply {
  const data: One[] = [];
  let bytes = PAGE_AROUND_BYTES;
  for (const one of found.slice(0, limit)) {
    bytes += Buffer.byteLength(JSON.stringify(one)) + 1;
    if (bytes > ANSWER_BYTES_MAX.items && data.length > 0) break;
    data.push(one);
  }
  const hasMore = data.length < found.length;
  const cursor = String(offset + data.length);
  return replyJson(listBody({ data, ids: data.map(nameOf), hasMore, cursor }));
}

function pageOf(call: Call, space: string | undefined): PageFilter {
  const { query } = call.head;
  const limit = numberIn(query, 'limit', { min: 1, max: PAGE_MAX, or: LIMIT_FALLBACK });
  const after = query.get('after') ?? '0';
  if (!/^\d{1,12}$/.test(after)) throw invalid('after is not a valid cursor.', 'after');
  return { spaces: chooseSpaces(call.key, space), limit, offset: Number(after) };
}

/** Returns the query with the types that the shape `itemsQuery` expects: a number and a list. */
function queryOf({ head: { query } }: Call): Record<string, unknown> {
  const fields: Record<string, unknown> = Object.fromEntries(query);
  const { limit, refs } = fields;
  if (typeof limit === 'string') fields['limit'] = /^\d{1,3}$/.test(limit) ? Number(limit) : limit;
  if (typeof refs === 'string') fields['refs'] = refs.split(',');
  return fields;
}

function timeIn(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}
