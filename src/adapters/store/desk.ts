import { dayName } from '../../core/meter/figures.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { RULE_TERM, rulesIn } from '../../core/recall/rules.ts';
import { rulesInForce } from '../../core/recall/rules-in-force.ts';
import type {
  ConversationPlace,
  DeskFilter,
  DeskPage,
  DeskRecord,
  DeskRule,
  PinChange,
  RuleChange,
  RulesFilter,
  Shelf,
  ShelfDay,
  DeskEdit,
  EditState,
  RecallLook,
  WeighedMemory,
} from '../../ports/memory-desk.ts';
import type { Pin, MemoryRecord, SpeakerRole } from '../../core/memory/record.ts';
import { marksOf, ruleDigest } from './recall-marks.ts';
import { type Conditions, decoded, type Stored, type StoredText, textOf } from './driver.ts';
import type { Database } from './database.ts';
import {
  newestFirst,
  RECORD_COLUMNS,
  type RecordRow,
  storedRecord,
  whereOf,
  type Records,
} from './records.ts';
import type { AgentLook } from '../../core/recall/agent-facts.ts';
import { strengthNeeded } from '../../core/recall/relevance.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import type { ForgetFilter, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import type { DeskCalls } from './protocol.ts';
import { FileSearch } from './file-search.ts';
import { type Signals, silent } from './signals.ts';

/**
 * Reads and changes records and their marks (pin, times of edit and import), for a user who manages the memories of
 * this machine.
 */

/** Bound on the spaces (shelves) that a user can choose from. */
const SHELVES_MAX = 500;
/** Bound on the days that days() returns: the newest ones that have records. */
const DAYS_MAX = 30;
const LIMIT_MAX = 500;
/**
 * Bound on the texts with rules that are read, newest first. For a list of rules it applies to each space. For a page
 * of records with rules it applies to all records that the filter selects.
 */
const STANDING_READ_MAX = 1000;
const BEGINNING_CHARS = 160;

interface DeskRow extends RecordRow {
  readonly pin: Pin | null;
  readonly edited_at: number | null;
  readonly imported_at: number | null;
}

class Desk {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  shelves(): Shelf[] {
    return this.#database.all<Shelf>(SHELVES);
  }

  /**
   * Counts the records of each of the newest days that have some, by a query on an index. Reading 100,000 records would
   * take a fifth of a second.
   */
  days(space: string): ShelfDay[] {
    const id = this.#database.get<{ id: number }>(SPACE_ID, space)?.id;
    if (id === undefined) return [];
    const days: ShelfDay[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    while (days.length < DAYS_MAX) {
      const newest = this.#database.get<{ at: number | null }>(NEWEST, id, before)?.at ?? undefined;
      if (newest === undefined) break;
      const since = new Date(newest).setHours(0, 0, 0, 0);
      const counted = this.#database.get<{ memories: number }>(COUNT, id, since, before);
      days.push({ day: dayName(since), memories: counted?.memories ?? 0 });
      before = since;
    }
    return days;
  }

  browse(filter: DeskFilter): DeskPage {
    const { limit, offset = 0 } = filter;
    const { where, values } = conditionsOf(filter);
    const records = (limitNow: number, offsetNow: number): DeskRecord[] =>
      this.#database
        .all<DeskRow>(
          `SELECT ${RECORD_COLUMNS}, ${MARKS} ${FROM} ${where}
           ORDER BY ${newestFirst(filter)} LIMIT ? OFFSET ?`,
          ...values,
          limitNow,
          offsetNow,
        )
        .map(deskRecord);
    if (filter.kind === 'standing') {
      const found = records(STANDING_READ_MAX, 0).filter(({ text }) => rulesIn(text).length > 0);
      return { records: found.slice(offset, offset + limit), total: found.length };
    }
    const sum = this.#database.get<{ total: number }>(
      `SELECT count(*) AS total ${FROM} ${where}`,
      ...values,
    );
    const page = records(Math.max(0, Math.min(limit, LIMIT_MAX)), Math.max(0, offset));
    return { records: page, total: sum?.total ?? 0 };
  }

  rules({ space }: RulesFilter): DeskRule[] {
    const spaces = this.#database.all<{ id: number; name: string }>(RULE_SPACES, space ?? null);
    return spaces.flatMap(({ id, name }) => this.#rulesOf(id, name));
  }

  /** Sets or removes the mark of a rule. Returns the rule; undefined if none has this id. */
  markRule({ id, mark, at }: RuleChange): DeskRule | undefined {
    const rule = this.rules({}).find((one) => one.id === id);
    if (rule === undefined) return undefined;
    const digest = ruleDigest(rule.text);
    if (mark === undefined) this.#database.run(UNMARK_RULE, digest, rule.space);
    else this.#database.run(MARK_RULE, digest, mark, at, rule.space);
    return rule;
  }

  #rulesOf(id: number, space: string): DeskRule[] {
    const said = this.#database.all<RuleRow>(RULE_TEXTS, id).map(decoded);
    const held = new Set(rulesInForce(said).map(({ text }) => text));
    const marks = marksOf(this.#database).rules([{ id }]);
    const known = new Set<string>();
    return said.flatMap(({ text: message, ref, at, client }) =>
      rulesIn(message).flatMap((text): DeskRule[] => {
        if (known.has(text)) return [];
        known.add(text);
        const state = marks.get(ruleDigest(text)) ?? (held.has(text) ? 'holds' : 'replaced');
        return [{ id: ruleId(space, text), space, text, ref, at, client, state }];
      }),
    );
  }

  beginnings(conversations: readonly ConversationPlace[]): string[] {
    return conversations.map(({ space, conversation }) => {
      const row = this.#database.get<StoredText>(BEGINNING, space, conversation);
      return row === undefined ? '' : textOf(row).slice(0, BEGINNING_CHARS);
    });
  }

  pin({ space, ref, pin }: PinChange): boolean {
    const id = this.#database.get<{ id: number }>(ID, space, ref)?.id;
    if (id === undefined) return false;
    this.#database.run(PIN, id, pin ?? null);
    return true;
  }

  /** Marks the tombstone of an edited text, so that the user may edit the record back to this text. */
  allowBack(space: string, digest: string): void {
    this.#database.run(ALLOW_BACK, digest, space);
  }

  /** Removes the tombstone of a text if the text was edited or moved, and not forgotten. */
  takeBack(space: string, digest: string): void {
    this.#database.run(TAKE_BACK, digest, space);
  }

  /** Removes the records' tombstones, so that they can be captured again. */
  unbury(records: readonly DeskRecord[]): void {
    for (const { space, digest } of records) this.#database.run(UNBURY, digest, space);
  }

  /** Sets the marks of deleted records on the records that are stored again, or in their place. */
  putMarks(records: readonly DeskRecord[]): void {
    for (const { space, ref, pin, digest, editedAt, importedAt } of records) {
      if (pin !== undefined) this.pin({ space, ref, pin });
      if (editedAt !== undefined) this.#database.run(EDITED, editedAt, space, digest);
      if (importedAt !== undefined) this.#database.run(IMPORTED, importedAt, space, digest);
    }
  }
}

function conditionsOf({ kind, source, client, exchange, ...filter }: DeskFilter): Conditions {
  const conditions = whereOf(filter);
  conditions.add('r.client = ?', client);
  conditions.add('r.exchange = ?', exchange);
  if (kind !== undefined) conditions.require(KINDS[kind]);
  if (source !== undefined) conditions.require(SOURCES[source]);
  return conditions;
}

/** Selects the user's own texts that state a rule: a passage of each has RULE_TERM in the index. */
const STATES_RULES = `r.role = 'user' AND r.source IS NULL AND r.id IN (SELECT p.record FROM passage_terms f
  JOIN passages p ON p.id = f.rowid WHERE f.passage_terms MATCH '"${RULE_TERM}"')`;

const KINDS: Readonly<Record<NonNullable<DeskFilter['kind']>, string>> = {
  edited: 'm.edited_at IS NOT NULL',
  always: `m.pin = 'always'`,
  never: `m.pin = 'never'`,
  standing: STATES_RULES,
};

/** Characters of a rule's id: 40 bits. With 10,000 rules the chance that two have the same id is 1 in 20,000. */
const ID_CHARS = 8;

function ruleId(space: string, text: string): string {
  return referenceOf(ruleDigest(`${space}\n${text}`))
    .replace('m_', 'r_')
    .slice(0, 2 + ID_CHARS);
}

type RuleRow = Stored<Pick<DeskRecord, 'text' | 'ref' | 'at' | 'client'>>;

const RULE_SPACES = 'SELECT id, name FROM spaces WHERE name = ?1 OR ?1 IS NULL ORDER BY name';
const RULE_TEXTS = `SELECT r.ref, r.text, r.is_utf16, r.at, r.client FROM records r
  WHERE r.space = ? AND ${STATES_RULES}
  ORDER BY r.at DESC, r.id DESC LIMIT ${STANDING_READ_MAX}`;
const MARK_RULE = `INSERT INTO rule_marks (space, rule, mark, at)
  SELECT id, ?1, ?2, ?3 FROM spaces WHERE name = ?4
  ON CONFLICT (space, rule) DO UPDATE SET mark = excluded.mark, at = excluded.at`;
const UNMARK_RULE = `DELETE FROM rule_marks WHERE rule = ?
  AND space = (SELECT id FROM spaces WHERE name = ?)`;

const BY_HAND = `r.conversation LIKE 'added!_%' ESCAPE '!'`;

const SOURCES: Readonly<Record<NonNullable<DeskFilter['source']>, string>> = {
  live: `m.imported_at IS NULL AND NOT (${BY_HAND})`,
  imported: 'm.imported_at IS NOT NULL',
  by_hand: BY_HAND,
  unverified: `r.source = 'unverified'`,
};

function deskRecord({
  pin,
  edited_at: editedAt,
  imported_at: importedAt,
  ...row
}: DeskRow): DeskRecord {
  return {
    ...storedRecord(row),
    ...(pin === null ? {} : { pin }),
    ...(editedAt === null ? {} : { editedAt }),
    ...(importedAt === null ? {} : { importedAt }),
  };
}

const MARKS = 'm.pin, m.edited_at, m.imported_at';
const FROM = `FROM records r JOIN spaces s ON s.id = r.space LEFT JOIN marks m ON m.record = r.id`;

const SHELVES = `SELECT s.name AS space, count(*) AS memories, max(r.at) AS newest
  FROM records r JOIN spaces s ON s.id = r.space GROUP BY r.space ORDER BY newest DESC LIMIT ${SHELVES_MAX}`;

const SPACE_ID = 'SELECT id FROM spaces WHERE name = ?';
const NEWEST = 'SELECT max(at) AS at FROM records WHERE space = ? AND at < ?';
const COUNT = 'SELECT count(*) AS memories FROM records WHERE space = ? AND at >= ? AND at < ?';

const BEGINNING = `SELECT r.text, r.is_utf16 FROM records r JOIN spaces s ON s.id = r.space
  WHERE s.name = ? AND r.conversation = ? AND r.role = 'user' ORDER BY r.exchange, r.at LIMIT 1`;

const ID = `SELECT r.id FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ? AND r.ref = ?`;

const PIN = `INSERT INTO marks (record, pin) VALUES (?, ?)
  ON CONFLICT (record) DO UPDATE SET pin = excluded.pin`;

const EDITED = `INSERT INTO marks (record, edited_at)
  SELECT r.id, ? FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ? AND r.digest = ?
  ON CONFLICT (record) DO UPDATE SET edited_at = excluded.edited_at`;

const IMPORTED = `INSERT INTO marks (record, imported_at)
  SELECT r.id, ? FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ? AND r.digest = ?
  ON CONFLICT (record) DO UPDATE SET imported_at = excluded.imported_at`;

const ALLOW_BACK = `UPDATE tombstones SET is_moved = 1 WHERE digest = ?
  AND space = (SELECT id FROM spaces WHERE name = ?)`;

const TAKE_BACK = `DELETE FROM tombstones WHERE digest = ? AND is_moved = 1
  AND space = (SELECT id FROM spaces WHERE name = ?)`;

const UNBURY = `DELETE FROM tombstones WHERE digest = ?
  AND space = (SELECT id FROM spaces WHERE name = ?)`;

interface DeskParts {
  readonly database: Database;
  readonly records: Records;
  readonly signals: Signals;
  /** Deletes records. Afterwards `emptyForgotten` and `eraseForgotten` must be called. */
  readonly forget: (filter: ForgetFilter) => void;
  /** Keeps placed blocks that quote this record out of new conversations. */
  readonly retire: (ref: string) => void;
}

/**
 * Bound on the candidates that look() returns from the question's own spaces. A user reads no more, and for each a text
 * is read.
 */
const WEIGHED_MAX = 24;
/** Bound on the other projects in which look() searches too: those with the newest memories. */
const PROJECTS_MAX = 6;
/** Bound on the memories that look() returns from each other project. */
const FROM_OTHERS_MAX = 2;

/** Implements the calls with which a user manages memories. */
export function deskCalls(parts: DeskParts): Omit<DeskCalls, 'sightings'> {
  const { database, records, retire } = parts;
  const desk = new Desk(database);
  const look = new Look(parts, desk);
  return {
    shelves: () => desk.shelves(),
    days: (space) => desk.days(space),
    browse: (filter) => desk.browse(filter),
    look: (question) => look.at(question),
    beginnings: (conversations) => desk.beginnings(conversations),
    rules: (filter) => desk.rules(filter),
    markRule: (change) => {
      const marked = desk.markRule(change);
      if (marked !== undefined && change.mark === 'retired') retire(marked.ref);
      return marked !== undefined;
    },
    pin: (change) => {
      const isPinned = desk.pin(change);
      if (isPinned && change.pin === 'never') retire(change.ref);
      return isPinned;
    },
    edit: (change) => edit(parts, desk, change),
    restore: (given) => {
      desk.unbury(given);
      const states = records.capture(given.map(recordOf));
      desk.putMarks(given);
      return states.filter((state) => state === 'stored' || state === 'duplicate').length;
    },
  };
}

/** Edits a record. It stores the new text before it deletes the old one, so that a kill in between loses nothing. */
function edit({ records, forget }: DeskParts, desk: Desk, change: DeskEdit): EditState {
  const { space, ref, text, at } = change;
  const [old] = desk.browse({ space, refs: [ref], limit: 1 }).records;
  if (old === undefined) return 'gone';
  if (old.digest === text.digest) return 'same';
  desk.takeBack(space, text.digest);
  // Clear the fingerprint: with it the new text could prove that an exchange with the old text is stored.
  const { lastFrom: _, ...place } = recordOf(old);
  const [state] = records.capture([{ ...place, ...text, fingerprint: '' }]);
  if (state === 'forgotten') return 'forgotten';
  if (state !== 'stored' && state !== 'duplicate') return 'rejected';
  desk.putMarks([{ ...old, digest: text.digest, ref: referenceOf(text.digest), editedAt: at }]);
  forget({ refs: [ref], space });
  desk.allowBack(space, old.digest);
  return 'edited';
}

/** Returns the record for a capture: without the user's marks and the reference. */
function recordOf(given: DeskRecord): MemoryRecord<SpeakerRole> {
  const { pin: _, editedAt: __, importedAt: ___, ref: ____, ...record } = given;
  return record;
}

/** Runs recalls that the user inspects. They record no signals, which would influence later recalls. */
class Look {
  readonly #desk: Desk;
  readonly #search: FileSearch;
  readonly #unmarked: FileSearch;

  constructor({ database, signals }: DeskParts, desk: Desk) {
    this.#desk = desk;
    this.#search = new FileSearch(database, silent(signals), marksOf(database));
    this.#unmarked = new FileSearch(database, silent(signals));
  }

  at(question: RecallQuestion): RecallLook {
    const { agent: _, ...chat } = question;
    const { isQuestion, passages } = this.#unmarked.weigh(chat, WEIGHED_MAX);
    const added = new Set(this.#search.recall(chat).passages.map(({ digest }) => digest));
    const { space } = question;
    const { records } = this.#desk.browse({ space, kind: 'never', limit: LIMIT_MAX });
    const never = new Set(records.map(({ digest }) => digest));
    let agent: AgentLook | undefined;
    const { exchanges = [] } = this.#search.recall(question, undefined, (look) => (agent = look));
    const weighed = passages.map(({ isKept, ...passage }): WeighedMemory => {
      const { digest } = passage;
      if (never.has(digest)) return weighedOf(passage, 'never');
      if (added.has(digest)) return weighedOf(passage, 'added');
      return weighedOf(passage, isKept ? 'no_room' : 'weak');
    });
    return {
      isQuestion,
      needed: strengthNeeded(isQuestion),
      // Recall's own order also depends on age and repetition. The user sees only the score, so sort by it.
      weighed: [...weighed, ...this.#fromOthers(chat)].toSorted((a, b) => b.score - a.score),
      exchanges,
      agent,
    };
  }

  #fromOthers(chat: RecallQuestion): readonly WeighedMemory[] {
    const others = this.#desk
      .shelves()
      .map(({ space }) => space)
      .filter((space) => space !== chat.space && space !== GLOBAL_SPACE)
      .slice(0, PROJECTS_MAX);
    return others.flatMap((space) =>
      this.#search
        .weigh({ ...chat, space, olderSpaces: [] }, WEIGHED_MAX)
        .passages.filter((one) => one.isKept && one.space === space)
        .slice(0, FROM_OTHERS_MAX)
        .map((one) => weighedOf(one, 'other_project')),
    );
  }
}

function weighedOf(
  { ref, space, role, text, at, client, score }: RecalledPassage,
  verdict: WeighedMemory['verdict'],
): WeighedMemory {
  return { ref, space, role, text, at, client, score, verdict };
}
