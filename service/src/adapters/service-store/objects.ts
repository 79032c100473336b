import { proofOf } from '../../../../src/core/shortening/proofs.ts';
import { referenceOf, isDigest } from '../../../../src/core/memory/reference.ts';
import type {
  CaptureBatch,
  CaptureOutcome,
  Coverage,
  MissingReason,
  NamedRecord,
  NameQuestion,
  NewObject,
  ObjectState,
  RetrieveAnswer,
  RetrieveQuestion,
  ServiceQuestion,
  SpaceChoice,
  StoredObject,
} from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import {
  type AddText,
  type IndexedPassage,
  PassageIndex,
  passagesOf,
} from '../../../../src/adapters/store/passage-index.ts';
import { addRecord, sayAgain } from '../../../../src/adapters/store/records.ts';
import { ORIGIN_COLUMNS, ORIGIN_JOINS, type OriginRow, originOf } from './row-shapes.ts';
import { spaceCondition, type Spaces } from './spaces.ts';

/** Records as their canonical bytes: taken in, proven, given back. */

/** A reference without a space may name a record in each of several spaces. */
const OBJECTS_MAX = 256;
const NAMED_MAX = 1000;
/** Proofs between two looks at the clock. Each proof reads a record, some 10 us. */
const PROOFS_PER_LOOK = 16;

interface ProofRow {
  readonly ref: string;
  readonly redactions: number;
  readonly bytes: Uint8Array;
}

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

interface RetrievedRow extends OriginRow {
  readonly kind: StoredObject['kind'];
  readonly tool_name: string | null;
  readonly size: number;
  readonly bytes: Uint8Array;
}

export class Objects {
  readonly #database: Database;
  readonly #spaces: Spaces;
  readonly #index: PassageIndex;
  readonly #bytesMax: number;

  /** `bytesMax`: canonical bytes that one space may hold. */
  constructor(database: Database, spaces: Spaces, bytesMax: number) {
    this.#database = database;
    this.#spaces = spaces;
    this.#index = new PassageIndex(database);
    this.#bytesMax = bytesMax;
  }

  capture(batch: CaptureBatch): CaptureOutcome {
    // Before the transaction, so that a backup or the command line does not wait for it.
    const prepared = batch.objects.map(({ texts }) =>
      texts.map(({ text, role }) => passagesOf(text, role)),
    );
    return this.#database.transaction(() => {
      const before = this.#spaces.state(batch.space);
      const { ifGeneration } = batch;
      if (ifGeneration !== undefined && ifGeneration !== before.generation) {
        return { state: before, results: undefined };
      }
      const space = this.#spaces.make(batch.space);
      if (space === undefined) {
        return { state: before, results: batch.objects.map((): ObjectState => 'quota') };
      }
      let seq = before.commitSeq;
      const room = this.#spaces.roomOf(batch.space);
      const results = this.#index.adding((add) =>
        batch.objects.map((object, place) => {
          const passages = prepared[place] ?? [];
          const left = room - (seq - before.commitSeq);
          const at = { space, seq: seq + 1, now: batch.now, add, passages, room: left };
          const state = this.#captureOne(object, at);
          if (state === 'durable') seq += 1;
          return state;
        }),
      );
      return { state: this.#spaces.state(batch.space), results };
    });
  }

  /** Reads every byte that it proves. `isPartial`: the deadline left candidates unread. */
  prove(question: ServiceQuestion): { coverage: Coverage[]; isPartial: boolean } {
    const { space, candidates, ifGeneration, deadlineAt } = question;
    const state = this.#spaces.state(space);
    if (ifGeneration !== undefined && ifGeneration !== state.generation) {
      const coverage = candidates.map((digest) => ({ digest, state: 'stale_generation' as const }));
      return { coverage, isPartial: false };
    }
    const id = this.#spaces.idOf(space);
    const coverage: Coverage[] = [];
    let isPartial = false;
    for (const [place, digest] of candidates.entries()) {
      if (place % PROOFS_PER_LOOK === 0) isPartial ||= Date.now() > deadlineAt;
      if (isPartial) coverage.push({ digest, state: 'not_checked' });
      else coverage.push(this.#prove(digest, id, question.nonce));
    }
    return { coverage, isPartial };
  }

  retrieve({ spaces, refs, bytesMax }: RetrieveQuestion): RetrieveAnswer {
    const objects: StoredObject[] = [];
    const missing: { ref: string; reason: MissingReason }[] = [];
    let bytes = 0;
    for (const ref of new Set(refs)) {
      const rows = this.#find(ref, spaces);
      if (rows.length === 0) missing.push({ ref, reason: this.#whyMissing(ref, spaces) });
      for (const row of rows) {
        if (bytes + row.size > bytesMax || objects.length === OBJECTS_MAX) {
          missing.push({ ref, reason: 'over_max_bytes' });
          break;
        }
        bytes += row.size;
        const tool = row.tool_name === null ? {} : { toolName: row.tool_name };
        objects.push({ kind: row.kind, bytes: row.bytes, ...tool, origin: originOf(row) });
      }
    }
    const state = 'space' in spaces ? this.#spaces.state(spaces.space) : undefined;
    return { state, objects, missing };
  }

  lookUp({ spaces, names }: NameQuestion): NamedRecord[] {
    const space = spaceCondition(spaces);
    return names.flatMap((name) => {
      const { where, values } = recordNamed(name);
      const rows = this.#database.all<Pick<OriginRow, 'space' | 'digest'> & { ref: string | null }>(
        `SELECT s.name AS space, o.digest, o.text_ref AS ref FROM objects o
         JOIN spaces s ON s.id = o.space WHERE ${where} AND ${space.where}
         ORDER BY o.text_ref LIMIT ${NAMED_MAX}`,
        ...values,
        space.value,
      );
      return rows.map(({ ref, ...row }) => (ref === null ? row : { ...row, textRef: ref }));
    });
  }

  #captureOne(object: NewObject, at: Insertion): ObjectState {
    const { digest, ref, bytes } = object;
    const { space } = at;
    if (this.#has('purged WHERE space = ? AND digest = ?', space, digest)) return 'purged';
    if (this.#has('objects WHERE space = ? AND digest = ?', space, digest)) {
      this.#sayAgain(object, space);
      return 'duplicate';
    }
    if (this.#has('objects WHERE space = ? AND ref = ?', space, ref)) return 'ref_collision';
    if (at.room <= 0) return 'plan';
    if (this.#spaces.bytesOf(space) + bytes.length > this.#bytesMax) return 'quota';
    const id = this.#insert(object, at);
    for (const [message, { role, text }] of object.texts.entries()) {
      const passages = at.passages[message] ?? passagesOf(text, role);
      const row = {
        ...this.#nameOf(object, message, space),
        ...placeOf(object),
        role,
        text,
        passages,
      };
      const record = addRecord(this.#database, row, at);
      this.#database.run(
        'INSERT INTO object_texts (record, object, message) VALUES (?, ?, ?)',
        record,
        id,
        message,
      );
    }
    this.#spaces.grow(space, { records: 1, bytes: bytes.length });
    return 'durable';
  }

  #insert(object: NewObject, { space, seq, now }: { space: number; seq: number; now: number }) {
    const { textDigest } = object;
    const row = this.#database.get<{ id: number }>(
      `INSERT INTO objects (space, digest, ref, kind, text_digest, text_ref, source, observed_at,
         created_at, position, fingerprint, branch, dialect, tool_name, redactions, seq, size, bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
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
      `INSERT INTO sources (space, session, client, first_seen, last_seen, records, bytes)
       VALUES (?, ?, ?, ?, ?, 1, ?)
       ON CONFLICT (space, session, client) DO UPDATE SET records = records + 1,
         bytes = bytes + excluded.bytes, first_seen = min(first_seen, excluded.first_seen),
         last_seen = max(last_seen, excluded.last_seen)
       RETURNING id`,
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
    const isTaken =
      textDigest === undefined ||
      this.#has('records WHERE space = ? AND digest = ?', space, textDigest);
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
    const sql =
      'UPDATE objects SET observed_at = ? WHERE space = ? AND digest = ? AND observed_at < ?';
    this.#database.run(sql, at, space, digest, at);
  }

  #prove(digest: string, space: number | undefined, nonce: Uint8Array): Coverage {
    if (space === undefined) return { digest, state: 'unknown' };
    const record = recordNamed(digest);
    const row = this.#database.get<ProofRow>(
      `SELECT o.ref, o.redactions, o.bytes FROM objects o WHERE o.space = ? AND ${record.where}`,
      space,
      ...record.values,
    );
    if (row === undefined) {
      const purged = purgedNamed(digest);
      const sql = `purged p WHERE p.space = ? AND ${purged.where}`;
      return { digest, state: this.#has(sql, space, ...purged.values) ? 'purged' : 'unknown' };
    }
    // A masked record is another text than the one in the prompt: never to be left out.
    if (row.redactions > 0) return { digest, state: 'not_checked' };
    const { ref, bytes } = row;
    return { digest, state: 'durable', bytes: bytes.length, pop: proofOf(nonce, bytes), ref };
  }

  #find(name: string, spaces: SpaceChoice): RetrievedRow[] {
    const space = spaceCondition(spaces);
    const { where, values } = recordNamed(name);
    return this.#database.all<RetrievedRow>(
      `SELECT o.kind, o.tool_name, o.size, ${ORIGIN_COLUMNS}, o.bytes
       FROM objects o ${ORIGIN_JOINS} WHERE ${where} AND ${space.where}
       ORDER BY o.id LIMIT ${OBJECTS_MAX}`,
      ...values,
      space.value,
    );
  }

  #whyMissing(name: string, spaces: SpaceChoice): MissingReason {
    const space = spaceCondition(spaces);
    const { where, values } = purgedNamed(name);
    const sql = `purged p JOIN spaces s ON s.id = p.space WHERE ${where} AND ${space.where}`;
    return this.#has(sql, ...values, space.value) ? 'purged' : 'unknown';
  }

  #has(from: string, ...values: (string | number)[]): boolean {
    return this.#database.get(`SELECT 1 AS found FROM ${from} LIMIT 1`, ...values) !== undefined;
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

/**
 * A record has several names: the digest and the reference of its bytes and, where it holds one text
 * and no more, the digest and the reference of that text. The reference of a text is the beginning of
 * its digest, and the tables have an index of it.
 */

const TEXT_REFERENCE_START = /^m_[a-z2-7]{0,15}$/;

interface NameCondition {
  readonly where: string;
  readonly values: readonly string[];
}

/** A condition on o, the table of records. */
function recordNamed(name: string): NameCondition {
  if (isDigest(name)) {
    return { where: 'o.text_ref = ? AND o.text_digest = ?', values: [referenceOf(name), name] };
  }
  // No character of a reference comes after the brace.
  if (TEXT_REFERENCE_START.test(name)) {
    return { where: 'o.text_ref >= ? AND o.text_ref < ?', values: [name, `${name}{`] };
  }
  return { where: `o.${columnOf(name)} = ?`, values: [name] };
}

/** A condition on p, the table of what was purged. */
function purgedNamed(name: string): NameCondition {
  const known = isDigest(name) ? referenceOf(name) : name;
  return { where: `p.${columnOf(known)} = ?`, values: [known] };
}

function columnOf(name: string): 'digest' | 'text_ref' | 'ref' {
  if (name.startsWith('sha256:')) return 'digest';
  return name.startsWith('m_') ? 'text_ref' : 'ref';
}
