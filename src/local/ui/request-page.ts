import { LOCAL_TENANT } from '../../core/ledger/entries.ts';
import { cachePrices } from '../../core/shortening/pricing.ts';
import { factsOfModel } from '../../core/settings/model-facts.ts';
import { gistOf, stubOf } from '../../core/shortening/stubs.ts';
import type { Ledger } from '../../ports/ledger.ts';
import type { Memory } from '../../ports/memory.ts';
import type { RequestLog, RequestRow } from '../../ports/request-log.ts';
import type { BlockText, KeptTexts, RequestAnswer, TextAnswer } from '../../ports/ui-api.ts';
import type { KeptRequests } from '../../proxy/in-flight.ts';
import { blockLines } from './block-lines.ts';
import { type ApiCall, deadline, textIn, UiRefusal, type UiRoute } from './ui-routes.ts';

/** One request: its row, the texts that svc added, and those that it left out. */
export interface RequestPageParts {
  readonly requestLog: RequestLog;
  readonly memory: Memory;
  readonly ledger: Ledger;
  readonly kept: KeptRequests;
}

/** A conversation's newest requests, among which this one's number is looked for. */
const COUNTED_MAX = 500;
const LEDGER_MS = 2000;
/** A longer text is cut, and says so. */
const TEXT_CHARS_MAX = 512 << 10;
const KEPT_CHARS_MAX = 2 << 20;

export function requestPageRoutes(parts: RequestPageParts): readonly UiRoute[] {
  return [
    ['GET request', (call) => request(parts, call)],
    ['GET text', (call) => text(parts, call)],
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

/** The blocks that the request carried, from the ledger; '' for one that was forgotten since. */
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
  return bytes.toString('utf8', 0, KEPT_CHARS_MAX);
}

/** The text behind a reference: an output that was left out, or a memory. */
async function text({ memory }: RequestPageParts, { query }: ApiCall): Promise<TextAnswer> {
  const ref = textIn(query, 'ref', 64);
  const tool = query.get('tool') ?? '';
  const record = await memory.retrieve({ ref }, deadline());
  if (record === undefined) {
    throw new UiRefusal(404, 'forgotten', 'This text was forgotten, or is no longer stored.');
  }
  const said = record.text;
  const facts = { tool, digest: record.digest, text: said, gist: gistOf(said) };
  return {
    ref,
    role: record.role,
    text: said.slice(0, TEXT_CHARS_MAX),
    isCut: said.length > TEXT_CHARS_MAX,
    stub: record.role === 'tool' ? stubOf(facts).text : null,
  };
}
