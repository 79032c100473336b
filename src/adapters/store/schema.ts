import type { Connection } from './driver.ts';

/** The tables of the memory. A file has exactly these: `svc memory export` and `import` are the way from others. */

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
// return exactly the stored text. `source` says where its words come from; NULL for a person's or an
// assistant's own.
//
// The index of a conversation has the exchange: a forgotten record asks for the records of its exchange,
// also in a conversation of thousands. The newest records of a space make the sessions of a brief.
const RECORDS = `
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
  source TEXT,
  UNIQUE (space, digest)
);
CREATE INDEX records_by_ref ON records(ref);
CREATE INDEX records_by_time ON records(at);
CREATE INDEX records_by_conversation ON records(space, conversation, exchange);
CREATE INDEX records_by_space_time ON records(space, at);
`;

// Contentless FTS5 could not forget: without the old terms a delete leaves the words in the index.
// The index keeps no positions and no sizes. bm25() needs 5 us a row to look them up, ten times the
// cost of the list of rows, and the ranking reads the terms of the few best anyway.
//
// The ascii tokenizer takes the terms of core/recall/terms.ts unchanged: it knows blanks, nothing
// else.
//
// `signals`: how much the last prompts of a space shared with its memory (signals.ts).
const INDEX = `
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
CREATE TABLE signals (
  space INTEGER NOT NULL REFERENCES spaces(id),
  number INTEGER NOT NULL,
  signal REAL NOT NULL,
  PRIMARY KEY (space, number)
) WITHOUT ROWID;
`;

// Texts of tools, kept beside the memories: never searched, and deleted after a while (outputs.ts).
const OUTPUTS = `
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

// `provenance`: the commit and the files that a record concerns (provenance.ts). An exchange grows by some
// 200 bytes with one file, 400 with three, 1.4 kB with twelve.
//
// `marks`: whether a person lets a record be recalled, when it was edited or imported. Each recall asks for the
// pinned records, and hardly any record has a pin. `rule_marks`: the marks of a person on the rules of a space,
// retired or always placed; a rule is named by a hash of its sentence.
const ABOUT_RECORDS = `
CREATE TABLE provenance (
  record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE,
  root TEXT NOT NULL,
  head TEXT NOT NULL,
  files TEXT NOT NULL
);
CREATE TABLE marks (
  record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE,
  pin TEXT,
  edited_at INTEGER,
  imported_at INTEGER
);
CREATE INDEX marks_by_pin ON marks(pin) WHERE pin IS NOT NULL;
CREATE TABLE rule_marks (
  space INTEGER NOT NULL REFERENCES spaces(id),
  rule TEXT NOT NULL,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (space, rule)
) WITHOUT ROWID;
`;

// `tombstones` keep what was forgotten from being captured again. `is_moved`: the person moved or edited the
// memory, and may move or edit it back.
//
// `removals`: each deletion or change of a text is counted, so that a proof that was given earlier is not
// believed after it; the id tells two files apart.
//
// `to_forget`: the memories that a person has forgotten and that are not deleted yet: any process ends the
// work. `forgetting`: the notes of that work (forgetting.ts). No number is given twice: a process deletes the
// notes that it has read, and none that another one has written meanwhile.
const FORGETTING = `
CREATE TABLE tombstones (
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  at INTEGER NOT NULL,
  is_moved INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (space, digest)
) WITHOUT ROWID;
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
CREATE TABLE to_forget (record INTEGER PRIMARY KEY REFERENCES records(id) ON DELETE CASCADE);
CREATE TABLE forgetting (n INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL);
`;

const VERSION = 1;
const SCHEMA = `${RECORDS}${INDEX}${OUTPUTS}${ABOUT_RECORDS}${FORGETTING}PRAGMA user_version = ${VERSION};`;

/** A file of a later svc is left alone: what it means is not known here. */
export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
}

/** Two processes may try at once: the second finds it done. */
export function createTables(connection: Connection): void {
  if (hasTables(connection)) return;
  connection.exec('BEGIN IMMEDIATE');
  try {
    if (!hasTables(connection)) connection.exec(SCHEMA);
    connection.exec('COMMIT');
  } catch (error) {
    connection.exec('ROLLBACK');
    throw error;
  }
}

function hasTables(connection: Connection): boolean {
  const row = connection.prepare('PRAGMA user_version').get();
  const version: unknown =
    typeof row === 'object' && row !== null && Reflect.get(row, 'user_version');
  if (version !== 0 && version !== VERSION)
    throw new SchemaTooNewError('made by a later version of svc');
  return version === VERSION;
}
