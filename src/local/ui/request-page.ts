import { isReferenceStart } from '../../core/memory/reference.ts';
import { EXCHANGE_HEAD } from '../../core/recall/own-blocks.ts';
import { quoteOf } from '../../core/recall/recall-block.ts';
import { LOCAL_TENANT } from '../../core/ledger/entries.ts';
import { cachePrices } from '../../core/shortening/pricing.ts';
import { factsOfModel } from '../../core/settings/model-facts.ts';
import { gistOf, stubOf } from '../../core/shortening/stubs.ts';
import type { Ledger } from '../../ports/ledger.ts';
import type { Memory, StoredRecord } from '../../ports/memory.ts';
import type { RequestLog, RequestRow } from '../../ports/request-log.ts';
import type {
  BlockLine,
  BlockText,
  KeptTexts,
  MemoryOrigin,
  RequestAnswer,
  TextAnswer,
} from '../../ports/ui-api.ts';
import type { KeptRequests } from '../../proxy/in-flight.ts';
import { type ApiCall, deadline, textIn, UiRefusal, type UiRoute } from './ui-routes.ts';

/** What the calls need for the view of one request, which shows its row, what svc added, and what svc left out. */
interface RequestPageParts {
  readonly requestLog: RequestLog;
  readonly memory: Memory;
  readonly ledger: Ledger;
  readonly kept: KeptRequests;
}

/**
 * Bound on the requests that are read to number a request of a conversation. A conversation with so many has no
 * numbers.
 */
const COUNTED_MAX = 500;
/** Deadline of reading the ledger, in milliseconds. */
const LEDGER_MS = 2000;
/** Bound on the characters of a text for the page. A longer text is cut, and the answer says so. */
const TEXT_CHARS_MAX = 512 << 10;
/** Bound on the bytes of each body of a kept request for the page. The rest of a longer body is left out. */
const KEPT_BYTES_MAX = 2 << 20;

export function requestPageRoutes(parts: RequestPageParts): readonly UiRoute[] {
  return [
    ['GET request', (call) => request(parts, call)],
    ['GET text', (call) => textOf(parts, call)],
  ];
}

async function request(parts: RequestPageParts, { query }: ApiCall): Promise<RequestAnswer> {
  const id = textIn(query, 'id', 64);
  const [row] = await parts.requestLog.list({ limit: 2, id });
  if (row === undefined || row.id !== id) {
    throw new UiRefusal(404, 'not_found', 'The request log no longer has this request.');
  }
  const [blocks, place] = await Promise.all([blocksOf(parts, row), placeOf(parts, row)]);
  const { read, write, writeHour } = cachePrices({
    dialect: row.dialect,
    facts: factsOfModel(row.model),
    ...(row.cacheMs === undefined ? {} : { cacheMs: row.cacheMs }),
  });
  const rates = { read, write, writeHour };
  return { row, place, blocks, rates, kept: keptOf(parts.kept, id) };
}

async function placeOf(
  { requestLog }: RequestPageParts,
  { id, conversation }: RequestRow,
): Promise<RequestAnswer['place']> {
  if (conversation === '') return null;
  const rows = await requestLog.conversation({ conversation, limit: COUNTED_MAX });
  const at = rows.findIndex((one) => one.id === id);
  return at === -1 || rows.length === COUNTED_MAX
    ? null
    : { number: rows.length - at, of: rows.length };
}

async function blocksOf(
  { ledger, memory }: RequestPageParts,
  row: RequestRow,
): Promise<readonly BlockText[]> {
  const { space } = row;
  const blocks = await carriedBlocks(ledger, row);
  return Promise.all(
    blocks.map(async ({ fingerprint, block }) => {
      return { fingerprint, lines: block === '' ? [] : await blockLines(block, { memory, space }) };
    }),
  );
}

/** Returns the blocks in a request, as the ledger has them; '' for a block that it no longer has, as after a forget. */
export async function carriedBlocks(
  ledger: Ledger,
  { conversation, items = [] }: RequestRow,
): Promise<readonly { readonly fingerprint: string; readonly block: string }[]> {
  const fingerprints = items
    .filter(({ edit }) => edit === 'block')
    .flatMap(({ refs = [] }) => refs);
  if (fingerprints.length === 0) return [];
  const addressOf = (fingerprint: string) =>
    ({ kind: 'own-block', tenant: LOCAL_TENANT, conversation, fingerprint }) as const;
  const found = await ledger.find(fingerprints.map(addressOf), LEDGER_MS);
  return fingerprints.map((fingerprint) => ({
    fingerprint,
    block: found.get(addressOf(fingerprint))?.block ?? '',
  }));
}

function keptOf(kept: KeptRequests, id: string): KeptTexts | null {
  const found = kept.find(id);
  if (found === undefined) return null;
  const went = found.went === undefined ? found.sent : Buffer.concat(found.went);
  return { sent: bounded(found.sent), went: bounded(went) };
}

function bounded(bytes: Buffer): string {
  return bytes.toString('utf8', 0, KEPT_BYTES_MAX);
}

/** Returns the text of a left-out output, or of a memory, by its reference. */
async function textOf({ memory }: RequestPageParts, { query }: ApiCall): Promise<TextAnswer> {
  const ref = textIn(query, 'ref', 64);
  const tool = query.get('tool') ?? '';
  const record = await memory.retrieve({ ref }, deadline());
  if (record === undefined) {
    throw new UiRefusal(404, 'forgotten', 'This text was forgotten, or is no longer stored.');
  }
  const said = record.text;
  const facts = { tool, digest: record.digest, text: said, gist: gistOf(said) };
  return {
    text: said.slice(0, TEXT_CHARS_MAX),
    isCut: said.length > TEXT_CHARS_MAX,
    stub: record.role === 'tool' ? stubOf(facts).text : null,
  };
}

/** Bound on the lines of a block that are shown. A block of 512 tokens has fewer. */
const LINES_MAX = 80;
/** Bound on the quotes of a block whose memories are searched, and on the characters of each search. */
const SEARCHED_MAX = 12;
const WORDS_CHARS = 200;
/** Matches what a block writes before a quote: the speaker, the day or `unverified`. */
const MARK = /^(?:user|assistant|unverified|\d{4}-\d\d-\d\d): /;

/**
 * Returns the lines of a recalled block, each quote with its memory if that is found. Before the quotes of an exchange,
 * a block for an agent has a line with the exchange's reference. For a quote without a reference svc searches for the
 * memory that has the quote word for word.
 */
async function blockLines(
  block: string,
  { memory, space }: { readonly memory: Memory; readonly space: string },
): Promise<readonly BlockLine[]> {
  const quotes = quotesOf(block.split('\n').slice(0, LINES_MAX));
  let searched = 0;
  const found = await Promise.all(
    quotes.map(async ({ lines, ref }) => {
      const isQuote = lines[0]?.startsWith('- ') === true;
      if (!isQuote) return undefined;
      if (ref !== undefined) return memory.retrieve({ ref }, deadline());
      searched += 1;
      return searched > SEARCHED_MAX
        ? undefined
        : findQuoted(lines.join('\n').slice(2), memory, space);
    }),
  ).catch(() => []);
  return quotes.map(({ lines }, at) => {
    const record = found[at];
    const text = lines.join('\n');
    const origin = record === undefined ? undefined : originOf(record);
    return origin === undefined ? { text } : { text, memory: origin };
  });
}

/** Returns where a memory comes from; undefined for a tool output. */
function originOf(record: StoredRecord): MemoryOrigin | undefined {
  const { ref, at, client, conversation, space, role } = record;
  return role === 'tool' ? undefined : { ref, at, client, conversation, space, role };
}

/**
 * Groups each line of a block with the indented lines below it. `ref`: the exchange's reference, from a line above.
 */
function quotesOf(lines: readonly string[]) {
  const quotes: { lines: string[]; ref: string | undefined }[] = [];
  let ref: string | undefined;
  for (const line of lines) {
    const last = quotes.at(-1);
    if (line.startsWith('  ') && last !== undefined) {
      last.lines.push(line);
      continue;
    }
    const [, named] = [...line.matchAll(EXCHANGE_HEAD)][0] ?? [];
    if (!line.startsWith('- '))
      ref = named !== undefined && isReferenceStart(named) ? named : undefined;
    quotes.push({ lines: [line], ref });
  }
  return quotes;
}

async function findQuoted(
  quote: string,
  memory: Memory,
  space: string,
): Promise<StoredRecord | undefined> {
  const text = quote.replace(MARK, '');
  const words = text.slice(0, WORDS_CHARS);
  for (const place of [space, 'global']) {
    // oxlint-disable-next-line no-await-in-loop -- Search 'global' only if the space has nothing.
    const records = await memory.list({ space: place, words, limit: 20 }, deadline());
    const record = records.find((one) => quoteOf(one.text).includes(text));
    if (record !== undefined) return record;
  }
  return undefined;
}
