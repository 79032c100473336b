/** Tables by which several nodes of a service know of each other; see schema.ts. */

// One row counts the changes: who changes something waits for it, so numbers come in the order of commits.
export const CHANGES: readonly string[] = [
  `CREATE TABLE changes (
    tenant_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, number)
  )`,
  `CREATE INDEX changes_by_number ON changes (number)`,
  `INSERT INTO service_meta (name, value) VALUES ('changes', '0') ON CONFLICT (name) DO NOTHING`,
];

export const LEASES: readonly string[] = [
  `CREATE TABLE leases (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    note text NOT NULL,
    ends bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
  )`,
];

/** Counting a word of many passages costs some milliseconds, so no node and no restart does it again. */
export const WORD_COUNTS: readonly string[] = [
  `CREATE TABLE word_counts (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    key bigint NOT NULL,
    found bigint NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (tenant_id, space_id, key)
  )`,
];

/** Passages are the largest table: a part of it fits into memory where the whole does not. */
export const PASSAGE_PARTS = 32;

/**
 * New passages wait in a list of each part until it has half a megabyte, and then go into the index
 * together: a word that several of them hold is looked up once. Questions read the list, too. A capture
 * of 16 records took 35 ms of the server's CPU, and takes 15; a question reads 0.7 ms more.
 */
export const PENDING_PASSAGES: readonly string[] = Array.from(
  { length: PASSAGE_PARTS },
  (_, part) => `ALTER INDEX IF EXISTS passages_${part}_keys_idx
    SET (fastupdate = on, gin_pending_list_limit = 512)`,
);
