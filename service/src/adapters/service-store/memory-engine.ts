import { MemoryError } from '../../../../src/core/errors.ts';
import { referenceOf } from '../../../../src/core/memory/reference.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { FileSearch } from '../../../../src/adapters/store/file-search.ts';
import {
  type AddText,
  type IndexedPassage,
  PassageIndex,
  passagesOf,
} from '../../../../src/adapters/store/passage-index.ts';
import { addRecord, quoted, sayAgain, spaceId } from '../../../../src/adapters/store/records.ts';
import { PASSAGES_PER_SPACE } from '../../../../src/adapters/store/schema.ts';
import type { NewSignal, Signals } from '../../../../src/adapters/store/signals.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import type {
  CaptureBatch,
  CaptureOutcome,
  NewObject,
  ObjectState,
  ServiceAnswer,
  ServiceItem,
} from '../../ports/service-store.ts';
import type { Items } from '../memory/items.ts';
import { allowedItems, recalledItem } from '../memory/row-shapes.ts';
import { bareState, Spaces } from '../memory/spaces.ts';
import { searchItems } from '../memory/statements.ts';
import {
  answerTo,
  type AskedText,
  type FoundItems,
  type MemoryEngine,
  searchedFor,
} from '../memory/tenant-memory.ts';

/**
 * The memory of tenants in a SQLite file, inside the worker: captures, and recalls by the search of the
 * embedded store. Its spaces are named `tenant:space`, and this file alone puts the tenant in front and
 * takes it off again: what is found must be of its own tenant.
 */

/** With the signals that are to be written. The worker that answers does not write. */
export interface FoundAnswer extends ServiceAnswer {
  readonly signals: readonly NewSignal[];
}

interface Parts {
  readonly database: Database;
  readonly transactions: Transactions;
  readonly signals: Signals;
  /** Canonical bytes that one space may hold. */
  readonly bytesMax: number;
}

// CROSS JOIN keeps the order: the words first, each within the passages of one space.
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
      // Before the transaction, so that a backup or the command line does not wait for it.
      const passages = batch.objects.map(({ texts }) =>
        texts.map(({ text, role }) => passagesOf(text, role)),
      );
      return transactions.write(async (rows) => {
        const writer = new BatchWriter(database, index, { tenant, bytesMax });
        return writer.capture(rows, batch, passages);
      });
    },
    recall: async (tenant, question): Promise<FoundAnswer> => {
      const answer = await transactions.read((rows) =>
        answerTo(rows, { tenant, question }, (asked, items) => ({
          recall: () => recall(search, { tenant, asked }, items),
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
     * SQLite copies rows within its file, and leaves such copies in bytes that it does not use. Only a new
     * file is without them. It is not begun beside a long read: each attempt would make the log longer by
     * the whole file.
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

/** The space's number, which is that of an embedded one; undefined when there are too many. */
async function makeSpace(
  database: Database,
  rows: Rows,
  { tenant, space }: { readonly tenant: string; readonly space: string },
): Promise<number | undefined> {
  const { id: known } = await new Spaces(rows, tenant).state(space);
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
  items: Items,
): Promise<FoundItems> {
  const start = `${tenant}:`;
  const whole = (space: string): string => start + space;
  // A search that found a row of another tenant must not be answered.
  const bare = (space: string): string => {
    if (!space.startsWith(start)) throw new TypeError('A row of another tenant was found.');
    return space.slice(start.length);
  };
  const bared = <One extends { readonly space: string }>(found: readonly One[]): One[] =>
    found.map((one) => ({ ...one, space: bare(one.space) }));
  const question = searchedFor(asked, await items.textsOf(asked));
  const space = whole(question.space);
  const olderSpaces = question.olderSpaces?.map(whole) ?? [];
  const { passages, exchanges, sessions, ...more } = search.recall(
    { ...question, space, olderSpaces },
    asked.otherSpaces.map(whole),
  );
  const seen = new Map<string, number>();
  const found: ServiceItem[] = [];
  for (const passage of passages) {
    // oxlint-disable-next-line no-await-in-loop -- The file answers one after the other.
    const item = await items.itemOf(bare(passage.space), passage.digest);
    if (item !== undefined) {
      found.push(recalledItem(item.facts, { whole: item.whole, passage }, seen));
    }
  }
  return {
    ...more,
    ...allowedItems(found, asked),
    ...(exchanges === undefined ? {} : { exchanges: bared(exchanges) }),
    ...(sessions === undefined ? {} : { sessions: bared(sessions) }),
  };
}

/** By object, by text. */
type BatchPassages = readonly (readonly (readonly IndexedPassage[])[])[];

interface Insertion {
  readonly space: number;
  readonly seq: number;
  readonly now: number;
  /** Records that the plan allows from here on. */
  readonly room: number;
  readonly add: AddText;
  /** One for each text of the record. */
  readonly passages: readonly (readonly IndexedPassage[])[];
}

/** Takes a batch of records in, within one transaction. */
class BatchWriter {
  readonly #database: Database;
  readonly #index: PassageIndex;
  readonly #tenant: string;
  readonly #bytesMax: number;

  constructor(
    database: Database,
    index: PassageIndex,
    { tenant, bytesMax }: { readonly tenant: string; readonly bytesMax: number },
  ) {
    this.#database = database;
    this.#index = index;
    this.#tenant = tenant;
    this.#bytesMax = bytesMax;
  }

  async capture(rows: Rows, batch: CaptureBatch, prepared: BatchPassages): Promise<CaptureOutcome> {
    const spaces = new Spaces(rows, this.#tenant);
    const before = bareState(await spaces.state(batch.space));
    const { ifGeneration } = batch;
    if (ifGeneration !== undefined && ifGeneration !== before.generation) {
      return { state: before, results: undefined };
    }
    const place = { tenant: this.#tenant, space: batch.space };
    const space = await makeSpace(this.#database, rows, place);
    if (space === undefined) {
      return { state: before, results: batch.objects.map((): ObjectState => 'quota') };
    }
    let seq = before.commitSeq;
    const room = await spaces.room();
    const results = this.#index.adding((add) =>
      batch.objects.map((object, at) => {
        const passages = prepared[at] ?? [];
        const left = room - (seq - before.commitSeq);
        const insertion = { space, seq: seq + 1, now: batch.now, add, passages, room: left };
        const state = this.#captureOne(object, insertion);
        if (state === 'durable') seq += 1;
        return state;
      }),
    );
    return { state: bareState(await spaces.state(batch.space)), results };
  }

  #captureOne(object: NewObject, at: Insertion): ObjectState {
    const { digest, ref, bytes } = object;
    const { space } = at;
    if (this.#has('purged', 'digest', space, digest)) return 'purged';
    if (this.#has('objects', 'digest', space, digest)) {
      this.#sayAgain(object, space);
      return 'duplicate';
    }
    if (this.#has('objects', 'ref', space, ref)) return 'ref_collision';
    if (at.room <= 0) return 'plan';
    if (this.#bytesOf(space) + bytes.length > this.#bytesMax) return 'quota';
    const id = this.#insert(object, at);
    for (const [message, { role, text }] of object.texts.entries()) {
      const passages = at.passages[message] ?? passagesOf(text, role);
      const name = this.#nameOf(object, message, space);
      const row = { ...name, ...placeOf(object), role, text, passages };
      const record = addRecord(this.#database, row, at);
      this.#database.run(
        'INSERT INTO object_texts (record, tenant_id, object, message) VALUES (?, ?, ?, ?)',
        record,
        this.#tenant,
        id,
        message,
      );
    }
    this.#database.run(
      `UPDATE tenant_spaces SET seq = seq + 1, records = records + 1, bytes = bytes + ?
       WHERE tenant_id = ? AND id = ?`,
      bytes.length,
      this.#tenant,
      space,
    );
    return 'durable';
  }

  #insert(object: NewObject, { space, seq, now }: Insertion): number {
    const { textDigest } = object;
    const row = this.#database.get<{ id: number }>(
      `INSERT INTO objects (tenant_id, space_id, digest, ref, kind, text_digest, text_ref, source_id,
         observed_at, created_at, position, fingerprint, branch, dialect, tool_name, redactions, seq, size,
         bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      this.#tenant,
      space,
      object.digest,
      object.ref,
      object.kind,
      textDigest ?? null,
      textDigest === undefined ? null : referenceOf(textDigest),
      this.#sourceOf(object, space),
      object.observedAt,
      now,
      object.position,
      object.fingerprint,
      object.branch ?? null,
      object.dialect ?? null,
      object.toolName ?? null,
      object.redactions,
      seq,
      object.bytes.length,
      object.bytes,
    );
    return row?.id ?? 0;
  }

  #sourceOf({ session, client, observedAt, bytes }: NewObject, space: number): number {
    const row = this.#database.get<{ id: number }>(
      `INSERT INTO sources (tenant_id, space_id, session, client, first_seen, last_seen, records, bytes)
       VALUES (?, ?, ?, ?, ?, ?, 1, ?)
       ON CONFLICT (tenant_id, space_id, session, client) DO UPDATE SET records = records + 1,
         bytes = bytes + excluded.bytes, first_seen = min(first_seen, excluded.first_seen),
         last_seen = max(last_seen, excluded.last_seen)
       RETURNING id`,
      this.#tenant,
      space,
      session,
      client,
      observedAt,
      observedAt,
      bytes.length,
    );
    return row?.id ?? 0;
  }

  /** The same words may be in two records (a note, a longer exchange): the name is the first's. */
  #nameOf({ digest, ref, textDigest }: NewObject, message: number, space: number) {
    const taken = 'SELECT 1 FROM records WHERE space = ? AND digest = ?';
    const isTaken =
      textDigest === undefined || this.#database.get(taken, space, textDigest) !== undefined;
    return {
      digest: isTaken ? `${digest}#${message}` : textDigest,
      ref: textDigest === undefined ? ref : referenceOf(textDigest),
    };
  }

  #sayAgain(object: NewObject, space: number): void {
    const { digest, textDigest, observedAt: at, isTimed, source } = object;
    if (textDigest === undefined) return;
    sayAgain(this.#database, space, { digest: textDigest, at, isTimed, source });
    if (isTimed !== true) return;
    const sql = `UPDATE objects SET observed_at = ?
      WHERE tenant_id = ? AND space_id = ? AND digest = ? AND observed_at < ?`;
    this.#database.run(sql, at, this.#tenant, space, digest, at);
  }

  #bytesOf(space: number): number {
    const sql = 'SELECT bytes FROM tenant_spaces WHERE tenant_id = ? AND id = ?';
    return this.#database.get<{ bytes: number }>(sql, this.#tenant, space)?.bytes ?? 0;
  }

  #has(
    table: 'purged' | 'objects',
    column: 'digest' | 'ref',
    ...[space, name]: [number, string]
  ): boolean {
    const sql = `SELECT 1 FROM ${table} WHERE tenant_id = ? AND space_id = ? AND ${column} = ?`;
    return this.#database.get(sql, this.#tenant, space, name) !== undefined;
  }
}

/** A text of no conversation has no neighbours: its digest is a conversation of its own. */
function placeOf(object: NewObject) {
  const { digest, session, client, observedAt, fingerprint, position, branch, source } = object;
  return {
    conversation: session,
    thread: session === '' ? digest : session,
    client,
    at: observedAt,
    fingerprint,
    exchange: position,
    ...(branch === undefined ? {} : { branch }),
    ...(source === undefined ? {} : { source }),
  };
}
