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
  `INSERT INTO meta (name, value) VALUES ('changes', '0') ON CONFLICT (name) DO NOTHING`,
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
