import { TABLES } from '../../control/tables.ts';

/**
 * The tables that only PostgreSQL has, and the migrations. A released migration is never edited, because databases
 * contain its checksum. The SQL uses only features that poolers, managed databases and a sharded PostgreSQL support:
 * no extension, trigger, stored function, advisory lock, notification or foreign key.
 */

/**
 * Number of partitions of `passages`, the largest table. A partition may fit into memory even if the table does not.
 */
const PASSAGE_PARTS = 32;

// Receipts and audit events have a table for each day (see keepDays), and a default table for days without a table. A
// receipt's id begins with its time, so a day is a range of ids. A passage contains offsets in its text, and keyed
// hashes of its words.
const VERSION_1: readonly string[] = [
  `CREATE SEQUENCE ids`,
  ...TABLES,
  `INSERT INTO service_meta (name, value) VALUES ('changes', '0') ON CONFLICT (name) DO NOTHING`,
  `CREATE TABLE audit_rest PARTITION OF audit DEFAULT`,
  `CREATE TABLE receipts_rest PARTITION OF receipts DEFAULT`,
  `ALTER TABLE tenant_spaces
    ADD COLUMN passages bigint NOT NULL DEFAULT 0,
    ADD COLUMN terms bigint NOT NULL DEFAULT 0,
    ADD COLUMN next_passage bigint NOT NULL DEFAULT 1,
    ADD COLUMN next_text bigint NOT NULL DEFAULT 1,
    ADD COLUMN next_conversation bigint NOT NULL DEFAULT 1`,
  `CREATE TABLE conversations (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, space_id, id),
    UNIQUE (tenant_id, space_id, key)
  )`,
  `CREATE TABLE texts (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    n bigint NOT NULL,
    record_id bigint NOT NULL,
    message integer NOT NULL,
    digest text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    conversation_id bigint NOT NULL,
    at bigint NOT NULL,
    branch text,
    source text,
    last_from integer,
    PRIMARY KEY (tenant_id, space_id, n),
    UNIQUE (tenant_id, space_id, digest)
  )`,
  `CREATE INDEX texts_by_record ON texts (tenant_id, space_id, record_id)`,
  `CREATE INDEX texts_by_time ON texts (tenant_id, space_id, at, n)`,
  `CREATE TABLE passages (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    n bigint NOT NULL,
    text_n bigint NOT NULL,
    conversation_id bigint NOT NULL,
    position bigint NOT NULL,
    start_at integer NOT NULL,
    end_at integer NOT NULL,
    keys bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, space_id, n)
  ) PARTITION BY HASH (tenant_id)`,
  ...Array.from(
    { length: PASSAGE_PARTS },
    (_, part) =>
      `CREATE TABLE passages_${part} PARTITION OF passages
        FOR VALUES WITH (MODULUS ${PASSAGE_PARTS}, REMAINDER ${part})`,
  ),
  `CREATE INDEX passages_by_text ON passages (tenant_id, space_id, text_n)`,
  `CREATE INDEX passages_by_position
    ON passages (tenant_id, space_id, conversation_id, position, n)`,
  // With `fastupdate` PostgreSQL puts new passages into a list for each partition, and indexes them together once the
  // list has 512 kB. A search reads the list too. So a capture of 16 records takes 15 ms of the server's CPU time
  // instead of 35, and a search takes 0.7 ms longer.
  `CREATE INDEX passages_by_key ON passages USING gin (keys)
    WITH (fastupdate = on, gin_pending_list_limit = 512)`,
  // Counting the passages of a frequent word takes milliseconds, so the counts are stored.
  `CREATE TABLE word_counts (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    key bigint NOT NULL,
    found bigint NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (tenant_id, space_id, key)
  )`,
  `CREATE TABLE signals (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    number bigint NOT NULL,
    signal double precision NOT NULL,
    PRIMARY KEY (tenant_id, space_id, number)
  )`,
];

/** The migrations in order. All that a database lacks run in one transaction. */
export const MIGRATIONS: readonly (readonly string[])[] = [VERSION_1];

export const SCHEMA = {
  makeMeta: `CREATE TABLE IF NOT EXISTS service_meta (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
  )`,
  makeMigrations: `CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    checksum text NOT NULL,
    applied_at bigint NOT NULL
  )`,
  putMeta: `INSERT INTO service_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
  getMeta: `SELECT value FROM service_meta WHERE name = $1`,
  setMeta: `UPDATE service_meta SET value = $2 WHERE name = $1`,
  /** Leaves a gap in the numbers of changes, so that every node notices missing changes and drops its caches. */
  skipChanges: `UPDATE service_meta SET value = (value::bigint + 1000000)::text WHERE name = 'changes'`,
  /** Locks a row, so that one node at a time runs migrations, begins a move or stores an origin. */
  lockMeta: `SELECT value FROM service_meta WHERE name = 'epoch' FOR UPDATE`,
  hasMeta: `SELECT count(*) AS found FROM pg_class WHERE relname IN ('service_meta', 'migrations')`,
  meta: `SELECT name, value FROM service_meta`,
  applied: `SELECT number, checksum FROM migrations ORDER BY number`,
  apply: `INSERT INTO migrations (number, checksum, applied_at) VALUES ($1, $2, $3)`,
} as const;
