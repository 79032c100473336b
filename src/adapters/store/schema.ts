import type { Connection } from './driver.ts';

/**
 * The tables, and how an older file becomes a newer one. A migration that was released is never
 * edited: it runs once, inside one transaction with the number that says so.
 */

/**
 * A passage's id is its space's id in the upper part and a number in the lower one. A full-text
 * query for one space is a range of ids, which FTS5 seeks instead of filtering. No query that has
 * such a range can see another space.
 */
export const PASSAGES_PER_SPACE = 2 ** 32;
/** Ids stay exact as numbers: 2^20 spaces of 2^32 passages are below 2^53. */
export const SPACES_MAX = 2 ** 20;

/**
 * Places in the order of a conversation. A record has fewer passages than a quarter of these: the
 * question takes the first half of its exchange, the answer the second. An unverified question is
 * in the second half too, before the answer: it weighs no more than that.
 */
export const POSITIONS_PER_EXCHANGE = 2 ** 17;

// A text is a blob: SQLite's own would end at a NUL and lose half a surrogate pair, and svc must
// return exactly the stored text.
//
// Contentless FTS5 could not forget: without the old terms a delete leaves the words in the index.
// The index keeps no positions and no sizes. bm25() needs 5 us a row to look them up, ten times the
// cost of the list of rows, and the ranking reads the terms of the few best anyway.
//
// The ascii tokenizer takes the terms of core/recall/terms.ts unchanged: it knows blanks, nothing
// else.
const VERSION_1 = `
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  passages INTEGER NOT NULL DEFAULT 0,
  terms INTEGER NOT NULL DEFAULT 0,
  next INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  ref TEXT NOT NULL,
  role TEXT NOT NULL,
  text BLOB NOT NULL,
  is_utf16 INTEGER NOT NULL,
  conversation TEXT NOT NULL,
  client TEXT NOT NULL,
  at INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  exchange INTEGER NOT NULL,
  branch TEXT,
  UNIQUE (space, digest)
);
CREATE INDEX records_by_ref ON records(ref);
CREATE INDEX records_by_time ON records(at);
CREATE INDEX records_by_conversation ON records(space, conversation);
CREATE TABLE conversations (
  id INTEGER PRIMARY KEY,
  space INTEGER NOT NULL REFERENCES spaces(id),
  key TEXT NOT NULL,
  UNIQUE (space, key)
);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY,
  record INTEGER NOT NULL REFERENCES records(id),
  conversation INTEGER NOT NULL REFERENCES conversations(id),
  position INTEGER NOT NULL,
  start INTEGER NOT NULL,
  end INTEGER NOT NULL,
  terms TEXT NOT NULL
);
CREATE INDEX passages_by_record ON passages(record);
CREATE INDEX passages_by_position ON passages(conversation, position);
CREATE VIRTUAL TABLE passage_terms USING fts5(
  terms, content='passages', content_rowid='id', tokenize="ascii tokenchars '_'",
  detail=none, columnsize=0
);
INSERT INTO passage_terms(passage_terms, rank) VALUES ('secure-delete', 1);
CREATE TABLE tombstones (
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (space, digest)
) WITHOUT ROWID;
CREATE TABLE ledger (
  key TEXT PRIMARY KEY,
  block TEXT NOT NULL,
  form TEXT NOT NULL,
  drops_earlier INTEGER NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ledger_by_time ON ledger(at);
CREATE TABLE requests (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  at INTEGER NOT NULL,
  row TEXT NOT NULL
);
CREATE INDEX requests_by_id ON requests(id);
`;

// Texts of tools, kept beside the memories: never searched, and deleted after a while (outputs.ts).
const VERSION_2 = `
CREATE TABLE outputs (
  id INTEGER PRIMARY KEY,
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  ref TEXT NOT NULL,
  text BLOB NOT NULL,
  conversation TEXT NOT NULL,
  client TEXT NOT NULL,
  at INTEGER NOT NULL,
  used INTEGER NOT NULL,
  UNIQUE (space, digest)
);
CREATE INDEX outputs_by_ref ON outputs(ref);
CREATE INDEX outputs_by_use ON outputs(used);
`;

// svc reads a conversation's cost so far when it comes back after a restart.
const VERSION_3 = `
CREATE INDEX requests_by_conversation ON requests(row ->> '$.conversation', number);
`;

// Where a record's words come from; NULL for a person's or an assistant's own.
const VERSION_4 = `
ALTER TABLE records ADD COLUMN source TEXT;
`;

// A table of how much the last prompts of a space shared with its memory (signals.ts). An index of
// the newest records of a space, from which the sessions of a brief are made (session-search.ts).
const VERSION_5 = `
CREATE TABLE signals (
  space INTEGER NOT NULL REFERENCES spaces(id),
  number INTEGER NOT NULL,
  signal REAL NOT NULL,
  PRIMARY KEY (space, number)
) WITHOUT ROWID;
CREATE INDEX records_by_space_time ON records(space, at);
`;

// The commit and the files that a record concerns (provenance.ts). It stays on this machine, and goes
// with its record. An exchange grows by some 200 bytes with one file, 400 with three, 1.4 kB with twelve.
const VERSION_6 = `
CREATE TABLE provenance (
  record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE,
  root TEXT NOT NULL,
  head TEXT NOT NULL,
  files TEXT NOT NULL
);
`;

// The marks that a person gave a record in the page: whether it is recalled, and when it was edited.
const VERSION_7 = `
CREATE TABLE marks (
  record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE,
  pin TEXT,
  edited_at INTEGER
);
`;

// The page sums requests day by day. A record that was imported says so, beside the marks of a person.
const VERSION_8 = `
CREATE INDEX requests_by_time ON requests(at);
ALTER TABLE marks ADD COLUMN imported_at INTEGER;
`;

// Each recall asks for the pinned records. Each imported record has a mark too, and hardly any has a pin.
const VERSION_9 = `
CREATE INDEX marks_by_pin ON marks(pin) WHERE pin IS NOT NULL;
`;

// Ledger and request log have a file of their own (state-file.ts). Each deletion or change of a text is
// counted, so that a proof that was given earlier is not believed after it; the id tells two files apart.
// `forgetting` has hashes of the forgotten quotes until no block of the ledger has them any more.
const VERSION_10 = `
DROP TABLE ledger;
DROP TABLE requests;
CREATE TABLE removals (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL, count INTEGER NOT NULL);
INSERT INTO removals VALUES (1, random() & 9007199254740991, 0);
CREATE TRIGGER record_removed AFTER DELETE ON records
  BEGIN UPDATE removals SET count = count + 1; END;
CREATE TRIGGER output_removed AFTER DELETE ON outputs
  BEGIN UPDATE removals SET count = count + 1; END;
CREATE TRIGGER record_changed AFTER UPDATE OF text, is_utf16, role, digest, space ON records
  BEGIN UPDATE removals SET count = count + 1; END;
CREATE TRIGGER output_changed AFTER UPDATE OF text, digest, space ON outputs
  BEGIN UPDATE removals SET count = count + 1; END;
CREATE TRIGGER space_changed AFTER UPDATE OF name ON spaces
  BEGIN UPDATE removals SET count = count + 1; END;
CREATE TABLE forgetting (quote TEXT PRIMARY KEY) WITHOUT ROWID;
`;

// A tombstone of a memory that a person moved or edited: it keeps the conversation from bringing it back,
// and the person may move or edit it back.
const VERSION_11 = `
ALTER TABLE tombstones ADD COLUMN is_moved INTEGER NOT NULL DEFAULT 0;
`;

// The memories that a person has forgotten and that are not deleted yet: any process ends the work. A
// forgotten record asks for the records of its exchange, also in a conversation of thousands.
const VERSION_12 = `
CREATE TABLE to_forget (record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE);
DROP INDEX records_by_conversation;
CREATE INDEX records_by_conversation ON records(space, conversation, exchange);
`;

// The notes of a forgetting are numbered, and no number is given twice (forgetting.ts): a process deletes
// the notes that it has read, and none that another one has written meanwhile.
const VERSION_13 = `
DROP TABLE forgetting;
CREATE TABLE forgetting (n INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL);
`;

// The marks of a person on the rules of a space: retired, or always placed. A rule is named by a hash of its sentence.
const VERSION_14 = `
CREATE TABLE rule_marks (
  space INTEGER NOT NULL REFERENCES spaces(id),
  rule TEXT NOT NULL,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (space, rule)
) WITHOUT ROWID;
`;

const MIGRATIONS: readonly string[] = [
  VERSION_1,
  VERSION_2,
  VERSION_3,
  VERSION_4,
  VERSION_5,
  VERSION_6,
  VERSION_7,
  VERSION_8,
  VERSION_9,
  VERSION_10,
  VERSION_11,
  VERSION_12,
  VERSION_13,
  VERSION_14,
];

/** A file of a later svc is left alone: what it means is not known here. */
export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
}

/** Brings the file to this version. Two processes may try at once: the second finds it done. */
export function migrate(connection: Connection): void {
  if (versionOf(connection) === MIGRATIONS.length) return;
  connection.exec('BEGIN IMMEDIATE');
  try {
    const version = versionOf(connection);
    if (version > MIGRATIONS.length) throw new SchemaTooNewError('made by a later version of svc');
    for (const migration of MIGRATIONS.slice(version)) connection.exec(migration);
    connection.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    connection.exec('COMMIT');
  } catch (error) {
    connection.exec('ROLLBACK');
    throw error;
  }
}

function versionOf(connection: Connection): number {
  const row = connection.prepare('PRAGMA user_version').get();
  const version: unknown =
    typeof row === 'object' && row !== null && Reflect.get(row, 'user_version');
  return typeof version === 'number' ? version : 0;
}
