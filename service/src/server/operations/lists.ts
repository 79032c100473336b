import {
  type ItemsPage,
  itemsQuery,
  type MemoryItem,
  type SourcesPage,
} from '../../../../src/core/memory-api/contract.ts';
import { space as spaceShape } from '../../../../src/core/memory-api/words.ts';
import { ANSWER_BYTES_MAX, PAGE_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { ObjectKind, PageFilter } from '../../ports/service-store.ts';
import {
  type Call,
  chooseSpaces,
  listBody,
  type Operation,
  readValue,
  type Reply,
  replyJson,
} from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { itemOf, receiptOf, sourceOf } from '../wire.ts';
import { numberIn } from './retrieve.ts';

/** Pages of items, sources and purges. A cursor says how many are before the page. */

const LIMIT_FALLBACK = 20;
/** Room for the rest of a page besides its elements. */
const AROUND_BYTES = 64 * 1024;

export const listItems: Operation = async (call) => {
  const asked = readValue(queryOf(call), itemsQuery);
  const page = pageOf(call, asked.space);
  if (asked.kind === 'fact' || asked.kind === 'summary') return pageReply([], page, nameOfItem);
  const items = await call.store.listItems(
    {
      ...page,
      // One more than asked for: it says whether there is another page.
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
  const data: ItemsPage['data'] = items.map(itemOf);
  return pageReply(data, page, nameOfItem);
};

export const listSources: Operation = async (call) => {
  const page = pageOf(call, readValue(call.head.query.get('space'), spaceShape));
  const sources = await call.store.listSources({ ...page, limit: page.limit + 1 }, call.signal);
  const data: SourcesPage['data'] = sources.map(sourceOf);
  return pageReply(data, page, (source) => source.source_id);
};

export const listPurges: Operation = async (call, { parts }) => {
  const page = pageOf(call, undefined);
  const purges = await call.store.listPurges({ ...page, limit: page.limit + 1 }, call.signal);
  const signed = await Promise.all(purges.map((purge) => parts.signer.sign(receiptOf(purge))));
  return pageReply(signed, page, (purge) => purge.purge_id);
};

function nameOfItem(item: MemoryItem): string {
  return item.item_id;
}

/** As many as were asked for and fit into an answer. */
function pageReply<One>(
  found: readonly One[],
  { limit, offset }: PageFilter,
  nameOf: (one: One) => string,
): Reply {
  const data: One[] = [];
  let bytes = AROUND_BYTES;
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
  if (!/^\d{1,12}$/.test(after)) {
    throw new ServiceFault('INVALID_REQUEST', 'after is not a valid cursor.', { param: 'after' });
  }
  return { spaces: chooseSpaces(call.key, space), limit, offset: Number(after) };
}

/** Text as the shapes want it: numbers and lists read. */
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
