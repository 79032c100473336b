import { MemoryError } from '../../../../src/core/errors.ts';
import { referenceOf } from '../../../../src/core/memory/reference.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { FileSearch } from '../../../../src/adapters/store/file-search.ts';
import { PassageIndex } from '../../../../src/adapters/store/passage-index.ts';
import { addRecord, quoted, sayAgain, spaceId } from '../../../../src/adapters/store/records.ts';
import { PASSAGES_PER_SPACE } from '../../../../src/adapters/store/schema.ts';
import type { NewSignal, Signals } from '../../../../src/adapters/store/signals.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import type {
  CaptureOutcome,
  NewObject,
  ObjectState,
  ServiceAnswer,
} from '../../ports/service-store.ts';
import {
  CapturePlan,
  isStale,
  type KnownRow,
  namesIn,
  passagesIn,
  threadOf,
} from '../memory/capture-plan.ts';
import type { Records } from '../memory/records.ts';
import { type FoundText, recalledItems } from '../memory/row-shapes.ts';
import { Spaces } from '../memory/spaces.ts';
import { MEMORY, searchItems } from '../memory/statements.ts';
import {
  answerTo,
  type AskedText,
  type FoundItems,
  type MemoryEngine,
} from '../memory/tenant-memory.ts';

/**
 * The memory of tenants in an SQLite file, inside the worker. It uses the tables and the search of the local proxy's
 * store, in which spaces are named `tenant:space`. In this store only this file adds the tenant to a space's name and
 * removes it. It checks that everything that a recall finds belongs to the tenant of the call.
 */

/**
 * An answer with signals for the running share (src/core/recall/running-share.ts). The worker that writes stores them.
 */
export interface FoundAnswer extends ServiceAnswer {
  readonly signals: readonly NewSignal[];
}

interface Parts {
  readonly database: Database;
  readonly transactions: Transactions;
  readonly signals: Signals;
  readonly bytesMax: number;
}

// CROSS JOIN fixes the join's order: the spaces, then the words, then the passages in that space with that word.
const SEARCH = searchItems(`
  SELECT s.value AS space_id, p.record AS text_n, p.id AS n, w.key AS place
  FROM json_each($2) s CROSS JOIN json_each($13) w CROSS JOIN passage_terms f
    ON f.passage_terms MATCH w.value
    AND f.rowid BETWEEN s.value * ${PASSAGES_PER_SPACE} AND (s.value + 1) * ${PASSAGES_PER_SPACE} - 1
  CROSS JOIN passages p ON p.id = f.rowid`);

export function sqliteMemory({ database, transactions, signals, bytesMax }: Parts): MemoryEngine {
  const search = new FileSearch(database, signals);
  const index = new PassageIndex(database);
  const words = {
    statement: SEARCH,
    valuesOf: (_: unknown, terms: readonly string[]) => [terms.map(quoted)],
  };
  return {
    open: async () => transactions,
    wordsOf: async () => words,
    capture: (tenant, batch) => {
      // Cut the texts into passages before the transaction, so that other processes wait less for the lock.
      const passages = passagesIn(batch);
      const place = { tenant, space: batch.space };
      return transactions.write(async (rows): Promise<CaptureOutcome> => {
        const spaces = new Spaces(rows, tenant);
        const { state, bytes } = await spaces.find(batch.space);
        if (isStale(batch, state)) return { state, results: undefined };
        const space = await makeSpace(database, rows, place);
        if (space === undefined) {
          return { state, results: batch.objects.map((): ObjectState => 'quota') };
        }
        const plan = new CapturePlan(batch, {
          passages,
          held: await rows.all<KnownRow>(MEMORY.known, tenant, ...namesIn(batch)),
          room: await spaces.room(),
          seq: state.commit_seq,
          bytesLeft: bytesMax - bytes,
        });
        writeBatch({ database, index, tenant, space }, plan, batch.now);
        return { state: await spaces.state(batch.space), results: plan.results };
      });
    },
    recall: async (tenant, question): Promise<FoundAnswer> => {
      const answer = await transactions.read((rows) =>
        answerTo(rows, { tenant, question }, (asked, records) => ({
          recall: () => recall(search, { tenant, asked }, records),
        })),
      );
      return { ...answer, signals: signals.take() };
    },
    makeSpace: (rows, tenant, space) => makeSpace(database, rows, { tenant, space }),
    eraseTexts: async (_, { space }, records) => {
      const texts = database.all<{ record: number }>(
        'SELECT record FROM object_texts WHERE object IN (SELECT value FROM json_each(?))',
        JSON.stringify(records),
      );
      for (const { record } of texts) {
        index.remove({ space, record });
        database.run('DELETE FROM object_texts WHERE record = ?', record);
        database.run('DELETE FROM records WHERE id = ?', record);
      }
    },
    /**
     * Rewrites the file, because SQLite leaves copies of rows in unused bytes. VACUUM does not start while another
     * process reads, because each attempt would then add the whole file to the write-ahead log.
     */
    rewrite: async () => {
      if (database.emptyLog()) {
        database.exec('VACUUM');
        if (database.emptyLog()) return;
      }
      const message = 'Another process reads the file, which still has bytes of purged records.';
      throw new MemoryError('unavailable', message);
    },
  };
}

/**
 * Creates the space if it is missing. Returns its number, which `tenant:space` has in the local store's tables too;
 * undefined if there are too many spaces.
 */
async function makeSpace(
  database: Database,
  rows: Rows,
  { tenant, space }: { readonly tenant: string; readonly space: string },
): Promise<number | undefined> {
  const { id: known } = await new Spaces(rows, tenant).find(space);
  if (known !== undefined) return known;
  const id = spaceId(database, `${tenant}:${space}`);
  if (id !== undefined) {
    database.run(
      'INSERT INTO tenant_spaces (tenant_id, id, name) VALUES (?, ?, ?)',
      tenant,
      id,
      space,
    );
  }
  return id;
}

async function recall(
  search: FileSearch,
  { tenant, asked }: { readonly tenant: string; readonly asked: AskedText },
  records: Records,
): Promise<FoundItems> {
  const start = `${tenant}:`;
  const whole = (space: string): string => start + space;
  // Throws if the search found a row of another tenant: such an answer must not leave the service.
  const bare = (space: string): string => {
    if (!space.startsWith(start)) throw new TypeError('A row of another tenant was found.');
    return space.slice(start.length);
  };
  const bared = <One extends { readonly space: string }>(found: readonly One[]): One[] =>
    found.map((one) => ({ ...one, space: bare(one.space) }));
  const excludeDigests = await records.textsOf(asked);
  const space = whole(asked.space);
  const olderSpaces = asked.olderSpaces?.map(whole) ?? [];
  const { passages, exchanges, sessions, ...more } = search.recall(
    { ...asked, excludeDigests, space, olderSpaces },
    asked.otherSpaces.map(whole),
  );
  const found: FoundText[] = [];
  for (const passage of passages) {
    // oxlint-disable-next-line no-await-in-loop -- The file answers one query after the other.
    const item = await records.itemOf(bare(passage.space), passage.digest);
    if (item !== undefined) found.push({ ...item, passage });
  }
  return {
    ...more,
    ...recalledItems(found, asked),
    ...(exchanges === undefined ? {} : { exchanges: bared(exchanges) }),
    ...(sessions === undefined ? {} : { sessions: bared(sessions) }),
  };
}

interface WritePlace {
  readonly database: Database;
  readonly index: PassageIndex;
  readonly tenant: string;
  readonly space: number;
}

function writeBatch(place: WritePlace, plan: CapturePlan, now: number): void {
  const { database, index, tenant, space } = place;
  index.adding((add) => {
    for (const { object, seq, texts } of plan.records) {
      const id = addObject(place, object, { seq, now });
      for (const { message, ...text } of texts) {
        const record = addRecord(database, { ...text, ...placeOf(object) }, space, add);
        const values = [record, tenant, id, message] as const;
        database.run(ADD_TEXT, ...values);
      }
    }
  });
  database.run(GROW, plan.records.length, plan.bytes, tenant, space);
  for (const { digest, textDigest = '', observedAt: at, isTimed, source } of plan.again) {
    sayAgain(database, space, { digest: textDigest, at, isTimed, source });
    if (isTimed === true) database.run(RENEW, at, tenant, space, digest, at);
  }
}

const ADD_TEXT =
  'INSERT INTO object_texts (record, tenant_id, object, message) VALUES (?, ?, ?, ?)';
const GROW = `UPDATE tenant_spaces SET seq = seq + ?1, records = records + ?1, bytes = bytes + ?2
  WHERE tenant_id = ?3 AND id = ?4`;
const RENEW = `UPDATE objects SET observed_at = ?
  WHERE tenant_id = ? AND space_id = ? AND digest = ? AND observed_at < ?`;
const ADD_SOURCE = `INSERT INTO sources (tenant_id, space_id, session, client, first_seen, last_seen,
    records, bytes)
  VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1, ?6)
  ON CONFLICT (tenant_id, space_id, session, client) DO UPDATE SET records = records + 1,
    bytes = bytes + excluded.bytes, first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen)
  RETURNING id`;
const ADD_OBJECT = `INSERT INTO objects (tenant_id, space_id, digest, ref, kind, text_digest, text_ref,
    source_id, observed_at, created_at, position, fingerprint, branch, dialect, tool_name, redactions, seq,
    size, bytes)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`;

function addObject(
  { database, tenant, space }: WritePlace,
  object: NewObject,
  { seq, now }: { readonly seq: number; readonly now: number },
): number {
  const { textDigest, session, client, observedAt, bytes } = object;
  const from = [tenant, space, session, client, observedAt, bytes.length] as const;
  const row = database.get<{ id: number }>(
    ADD_OBJECT,
    tenant,
    space,
    object.digest,
    object.ref,
    object.kind,
    textDigest ?? null,
    textDigest === undefined ? null : referenceOf(textDigest),
    database.get<{ id: number }>(ADD_SOURCE, ...from)?.id ?? 0,
    observedAt,
    now,
    object.position,
    object.fingerprint,
    object.branch ?? null,
    object.dialect ?? null,
    object.toolName ?? null,
    object.redactions,
    seq,
    bytes.length,
    bytes,
  );
  return row?.id ?? 0;
}

function placeOf(object: NewObject) {
  const { session, client, observedAt, fingerprint, position, branch, source, lastFrom } = object;
  return {
    conversation: session,
    thread: threadOf(object),
    client,
    at: observedAt,
    fingerprint,
    exchange: position,
    ...(branch === undefined ? {} : { branch }),
    ...(source === undefined ? {} : { source }),
    ...(lastFrom === undefined ? {} : { lastFrom }),
  };
}
