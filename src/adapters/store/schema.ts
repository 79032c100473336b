import type { Connection } from './driver.ts';

/** The tables of the memory. Other versions of the file are converted by `svc memory export` and `import`. */

/**
 * A passage's id has its space's id in the upper part and a number in the lower one. So a full-text query for one
 * space is a range of ids, which FTS5 seeks instead of filtering, and which cannot include another space.
 */
export const PASSAGES_PER_SPACE = 2 ** 32;
/** Bound on spaces: 2^20 spaces of 2^32 passages are below 2^53, so ids are exact as numbers. */
export const SPACES_MAX = 2 ** 20;

/**
 * Positions of an exchange in the order of a conversation. A record has fewer passages than a quarter of them. The
 * question has the first half, the answer the last quarter. An unverified question has the third quarter, because it
 * ranks like an answer.
 */
export const POSITIONS_PER_EXCHANGE = 2 ** 17;

// Texts are blobs: SQLite's strings would end at a NUL and lose half a surrogate pair, and svc must return exactly
// the stored text. `source` says where the text comes from; NULL for a user's or an assistant's own. `last_from`: see
// `lastFrom` in core/memory/record.ts.
//
// `records_by_conversation` contains the exchange, so that forgetting a record reads only its exchange and not the
// whole conversation. `records_by_space_time` finds a space's newest records, from which recall lists sessions.
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
  last_from INTEGER,
  UNIQUE (space, digest)
);
CREATE INDEX records_by_ref ON records(ref);
CREATE INDEX records_by_time ON records(at);
CREATE INDEX records_by_conversation ON records(space, conversation, exchange);
CREATE INDEX records_by_space_time ON records(space, at);
`;

// A contentless FTS5 table could not forget: a delete without the old terms leaves the words in the index. The index
// stores no positions and no sizes. bm25() would need them, at 5 us per row, ten times the cost of listing rows; and
// the ranking reads the terms of the few best rows anyway.
//
// The ascii tokenizer keeps the terms of core/recall/terms.ts as they are: it only splits at spaces.
//
// `signals`: the signals of a space's last prompts (signals.ts).
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

// Outputs of tools, stored beside the memories: never searched, and deleted after a while (outputs.ts).
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

// `provenance`: the commit and the files of a record (provenance.ts). An exchange grows by some 200 bytes with one
// file, 400 with three, 1.4 kB with twelve.
//
// `marks`: whether the user lets a record be recalled, and when it was edited or imported. Each recall reads the
// pinned records; hardly any record has a pin. `rule_marks`: the user's marks on the rules of a space, retired or
// always placed; a rule is named by a hash of its sentence.
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

// `tombstones` prevent forgotten texts from being captured again. `is_moved`: the user moved or edited the memory,
// and may move or edit it back.
//
// `removals`: counts deletions and changes of texts, so that an earlier proof no longer counts; the id tells two
// files apart.
//
// `to_forget`: memories that the user has forgotten and that are not deleted yet; any process finishes the work.
// `forgetting`: the notes of that work (forgetting.ts). A number is never reused: a process deletes only the notes
// that it has read, and none that another process has written meanwhile.
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

/** Leaves a file of a newer svc unchanged, because this version does not understand it. */
export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
}

/** Creates the tables. If two processes try at once, the second finds them. */
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
