import type { Statements } from './driver.ts';

/** The tables of `memory.db`. A file of another version is converted by `svc memory export` and `import`. */

/**
 * Number of passage ids that each space has. The id of a passage is the id of its space times this number, plus the
 * passage's number in the space. So a full-text query for one space is a range of ids: FTS5 seeks it, and it cannot
 * include another space.
 */
export const PASSAGES_PER_SPACE = 2 ** 32;
/** Bound on spaces. With 2^20 spaces of 2^32 passages all ids are below 2^53, so JavaScript's numbers are exact. */
export const SPACES_MAX = 2 ** 20;

/**
 * Number of positions that each exchange has. A passage has a position in its conversation: the number of the exchange
 * times this number, plus the place in the exchange. The passages of the question are in the first half, those of the
 * answer in the last quarter, and those of an unverified question in the third quarter. No record has more passages
 * than a quarter.
 */
export const POSITIONS_PER_EXCHANGE = 2 ** 17;
/**
 * Bound on the passages of an exchange that are read of each speaker (question, unverified question, answer): some
 * 3,000 words. A user pastes longer texts.
 */
export const PASSAGES_PER_RECORD = 64;
/** Bound on the newest passages with a term, of which `saidWith` selects the user's. */
export const SAID_WITH_LOOKED_MAX = 512;

// Texts are blobs, because svc must return exactly the stored text: SQLite's strings end at a NUL and lose half a
// surrogate pair. `source` is 'unverified', or NULL for a text that certainly is the user's or the assistant's own.
// `last_from`: see `lastFrom` in core/memory/record.ts.
//
// `records_by_conversation` contains the exchange, so that a query for one exchange does not read the whole
// conversation. With `records_by_space_time` recall finds the newest records of a space, from which it lists sessions.
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

// `passage_terms` has the terms of `passages` as its content. Without content (contentless FTS5) a delete that lacks
// the old terms would leave the words in the index. It stores no positions and no sizes: svc searches for no phrases,
// and does not use bm25(), which takes 5 us per row, ten times as long as listing a row. Instead the ranking reads the
// terms of the few best passages.
//
// The ascii tokenizer, with '_' as part of a token, splits `terms` only at the spaces between terms, which contain no
// other ASCII character at which it splits (core/recall/terms.ts).
//
// `signals` has the signals of the last prompts in each space (signals.ts).
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

// Outputs of tools (outputs.ts). They are not in the index, and are deleted after a while.
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

// `provenance` has the commit and the files that a record is about (provenance.ts). A row has some 200 bytes with one
// file, 400 with three and 1.4 kB with twelve.
//
// `marks` says whether a record is always or never recalled (`pin`), and when it was edited or imported. `rule_marks`
// has the user's marks of rules, 'retired' or 'pinned'; `rule` is a hash of the rule's sentence.
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

// `tombstones` prevent forgotten texts from being captured again. `is_moved` is 1 if the user has moved or edited the
// memory, and may move or edit it back.
//
// `removals` counts the deletions and changes of texts, which make earlier proofs invalid. Its random id tells the file
// apart from another one.
//
// `to_forget` has the records that the user has forgotten and that are not deleted yet. `forgetting` has the notes of
// that work (forgetting.ts). AUTOINCREMENT never reuses a number, so a process that deletes the notes up to a number
// cannot delete one that another process has written later.
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
const TABLES = {
  schema: `${RECORDS}${INDEX}${OUTPUTS}${ABOUT_RECORDS}${FORGETTING}PRAGMA user_version = ${VERSION};`,
  version: VERSION,
};

/** Thrown for a file of a later version of svc, which this version does not understand and leaves as it is. */
export class SchemaTooNewError extends Error {
  override readonly name = 'SchemaTooNewError';
}

/** Creates the tables if the file is new. `schema`: SQL that also sets `user_version` to `version`. */
export function createTables(
  rows: Pick<Statements, 'get' | 'exec' | 'transaction'>,
  { schema, version }: { readonly schema: string; readonly version: number } = TABLES,
): void {
  const hasTables = (): boolean => {
    const found = rows.get<{ readonly user_version: number }>('PRAGMA user_version')?.user_version;
    if (found !== 0 && found !== version) {
      throw new SchemaTooNewError('made by a later version of svc');
    }
    return found === version;
  };
  if (hasTables()) return;
  rows.transaction(() => {
    if (!hasTables()) rows.exec(schema);
  });
}
