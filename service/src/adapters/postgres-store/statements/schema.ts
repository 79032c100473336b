import { NO_LIMITS, SELF_HOSTED } from '../../../core/plans.ts';
import { DEFAULT_TENANT } from '../../../core/tenants.ts';

/**
 * The tables in PostgreSQL, and how an older database becomes a newer one. A migration that was
 * released is never edited: its checksum is in the database. Nothing here is used that poolers,
 * managed offers or a sharded PostgreSQL lack: no extension, trigger, function, advisory lock,
 * notification or foreign key. Every primary and unique key of a tenant's table begins with its
 * tenant.
 */

/** Passages are the largest table: a part of it fits into memory where the whole does not. */
const PASSAGE_PARTS = 32;

// Names and digests compare byte by byte: the order of a language would differ from machine to
// machine. Only `records` holds texts; passages hold places in them, and keyed hashes of the words.
const VERSION_1: readonly string[] = [
  `CREATE SEQUENCE ids`,
  `CREATE TABLE plans (
    name text COLLATE "C" PRIMARY KEY,
    limits text NOT NULL,
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE tenants (
    tenant_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    plan text COLLATE "C" NOT NULL,
    status text NOT NULL,
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE service_keys (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    hash text NOT NULL,
    retired text,
    scopes text NOT NULL,
    spaces text,
    allowed_models text,
    tokens_per_day bigint,
    tokens_per_month bigint,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    used_at bigint,
    rotated_at bigint,
    PRIMARY KEY (tenant_id, id)
  )`,
  `CREATE INDEX service_keys_by_id ON service_keys (id)`,
  `CREATE TABLE admins (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    hash text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    used_at bigint,
    PRIMARY KEY (tenant_id, id)
  )`,
  `CREATE INDEX admins_by_id ON admins (id)`,
  `CREATE TABLE audit_heads (
    tenant_id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    hash text NOT NULL
  )`,
  `CREATE TABLE audit (
    tenant_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    event text NOT NULL,
    PRIMARY KEY (tenant_id, number, at)
  ) PARTITION BY RANGE (at)`,
  `CREATE TABLE audit_rest PARTITION OF audit DEFAULT`,
  `CREATE TABLE providers (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    facts text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
  )`,
  `CREATE TABLE master_keys (
    id text COLLATE "C" PRIMARY KEY,
    state text NOT NULL,
    wrapped bytea NOT NULL,
    ciphertext bytea NOT NULL,
    created_at bigint NOT NULL,
    retired_at bigint
  )`,
  `CREATE TABLE secrets (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    purpose text NOT NULL,
    version bigint NOT NULL,
    kek text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL,
    ciphertext bytea NOT NULL,
    fingerprint text NOT NULL,
    saved_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, id)
  )`,
  `CREATE INDEX secrets_by_kek ON secrets (kek)`,
  `CREATE TABLE signing_keys (
    kid text COLLATE "C" PRIMARY KEY,
    x text NOT NULL,
    created_at bigint NOT NULL,
    retired_at bigint
  )`,
  `CREATE TABLE spaces (
    tenant_id text COLLATE "C" NOT NULL,
    id integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    counter bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    records bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    terms bigint NOT NULL DEFAULT 0,
    next_passage bigint NOT NULL DEFAULT 1,
    next_text bigint NOT NULL DEFAULT 1,
    next_conversation bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
  )`,
  `CREATE TABLE sources (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    id bigint NOT NULL DEFAULT nextval('ids'),
    session text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    first_seen bigint NOT NULL,
    last_seen bigint NOT NULL,
    records bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (tenant_id, space_id, id),
    UNIQUE (tenant_id, space_id, session, client)
  )`,
  `CREATE TABLE records (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    id bigint NOT NULL DEFAULT nextval('ids'),
    digest text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    text_digest text COLLATE "C",
    text_ref text COLLATE "C",
    source_id bigint NOT NULL,
    observed_at bigint NOT NULL,
    created_at bigint NOT NULL,
    position bigint NOT NULL,
    fingerprint text NOT NULL,
    branch text,
    dialect text,
    tool_name text,
    redactions integer NOT NULL,
    seq bigint NOT NULL,
    size integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (tenant_id, space_id, id),
    UNIQUE (tenant_id, space_id, digest),
    UNIQUE (tenant_id, space_id, ref)
  )`,
  `CREATE INDEX records_by_text_ref ON records (tenant_id, space_id, text_ref)
    WHERE text_ref IS NOT NULL`,
  `CREATE INDEX records_by_source ON records (tenant_id, space_id, source_id)`,
  `CREATE INDEX records_by_time ON records (tenant_id, space_id, observed_at)`,
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
  // New passages wait in a list of each part until it has half a megabyte, and then go into the index
  // together: a word that several of them hold is looked up once. Questions read the list, too. A capture
  // of 16 records took 35 ms of the server's CPU, and takes 15; a question reads 0.7 ms more.
  `CREATE INDEX passages_by_key ON passages USING gin (keys)
    WITH (fastupdate = on, gin_pending_list_limit = 512)`,
  // Counting a word of many passages costs some milliseconds, so no node and no restart does it again.
  `CREATE TABLE word_counts (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    key bigint NOT NULL,
    found bigint NOT NULL,
    passages bigint NOT NULL,
    PRIMARY KEY (tenant_id, space_id, key)
  )`,
  // One row counts the changes: who changes something waits for it, so numbers come in the order of commits.
  `CREATE TABLE changes (
    tenant_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, number)
  )`,
  `CREATE INDEX changes_by_number ON changes (number)`,
  `INSERT INTO service_meta (name, value) VALUES ('changes', '0') ON CONFLICT (name) DO NOTHING`,
  `CREATE TABLE leases (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    note text NOT NULL,
    ends bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
  )`,
  `CREATE TABLE signals (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    number bigint NOT NULL,
    signal double precision NOT NULL,
    PRIMARY KEY (tenant_id, space_id, number)
  )`,
  `CREATE TABLE purged (
    tenant_id text COLLATE "C" NOT NULL,
    space_id integer NOT NULL,
    digest text COLLATE "C" NOT NULL,
    ref text COLLATE "C" NOT NULL,
    text_ref text COLLATE "C",
    at bigint NOT NULL,
    PRIMARY KEY (tenant_id, space_id, digest)
  )`,
  `CREATE INDEX purged_by_ref ON purged (tenant_id, space_id, ref)`,
  `CREATE INDEX purged_by_text_ref ON purged (tenant_id, space_id, text_ref)
    WHERE text_ref IS NOT NULL`,
  `CREATE TABLE purges (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    number bigint NOT NULL DEFAULT nextval('ids'),
    space_id integer NOT NULL,
    scope text NOT NULL,
    state text NOT NULL,
    records bigint NOT NULL,
    items bigint NOT NULL,
    bytes bigint NOT NULL,
    generation_before text NOT NULL,
    generation_after text NOT NULL,
    requested_by text NOT NULL,
    requested_at bigint NOT NULL,
    erased_at bigint,
    upto bigint NOT NULL,
    PRIMARY KEY (tenant_id, id)
  )`,
  `CREATE INDEX purges_unfinished ON purges (tenant_id, id) WHERE state = 'tombstoned'`,
  `CREATE TABLE answers (
    tenant_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    request_hash text NOT NULL,
    body text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant_id, key_id, idempotency_key)
  )`,
  `CREATE INDEX answers_by_time ON answers (tenant_id, at)`,
  `CREATE TABLE account_settings (
    tenant_id text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    settings text NOT NULL
  )`,
  `CREATE TABLE tenant_ledger (
    tenant_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    block text NOT NULL,
    form text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant_id, key)
  )`,
  `CREATE INDEX tenant_ledger_by_time ON tenant_ledger (tenant_id, at)`,
  `INSERT INTO plans VALUES ('${SELF_HOSTED}', '${JSON.stringify(NO_LIMITS)}', 0)`,
  `INSERT INTO tenants (tenant_id, name, plan, status, created_at)
    VALUES ('${DEFAULT_TENANT}', '${DEFAULT_TENANT}', '${SELF_HOSTED}', 'active', 0)`,
];

// A receipt's id begins with its time, so a range of ids is a day: see days.ts. A row of no day that was
// made goes to the rest.
const RECEIPTS: readonly string[] = [
  `CREATE TABLE receipts (
    tenant_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    provider_id text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (tenant_id, id)
  ) PARTITION BY RANGE (id)`,
  `CREATE TABLE receipts_rest PARTITION OF receipts DEFAULT`,
  `CREATE INDEX receipts_by_key ON receipts (tenant_id, key_id, id)`,
  `CREATE INDEX receipts_by_provider ON receipts (tenant_id, provider_id, id)`,
  `CREATE INDEX receipts_by_model ON receipts (tenant_id, model, id)`,
  `CREATE INDEX receipts_by_status ON receipts (tenant_id, status, id)`,
  `CREATE TABLE receipt_heads (
    tenant_id text COLLATE "C" NOT NULL,
    node text COLLATE "C" NOT NULL,
    last_seq bigint NOT NULL,
    body text,
    PRIMARY KEY (tenant_id, node)
  )`,
  `CREATE INDEX open_receipt_heads ON receipt_heads (node, tenant_id) WHERE body IS NULL`,
  `CREATE TABLE usage_days (
    tenant_id text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    provider_id text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    requests bigint NOT NULL,
    failed bigint NOT NULL,
    original_input bigint NOT NULL,
    forwarded_input bigint NOT NULL,
    recalled bigint NOT NULL,
    elided bigint NOT NULL,
    input bigint NOT NULL,
    cache_read bigint NOT NULL,
    output bigint NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, key_id, provider_id, model)
  )`,
];

/** One after the other; each in one transaction. */
export const MIGRATIONS: readonly (readonly string[])[] = [[...VERSION_1, ...RECEIPTS]];

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
  /** Further than any node can have read. */
  skipChanges: `UPDATE service_meta SET value = (value::bigint + 1000000)::text WHERE name = 'changes'`,
  /** One node applies migrations at a time: the others wait for this row. */
  lockMeta: `SELECT value FROM service_meta WHERE name = 'epoch' FOR UPDATE`,
  hasMeta: `SELECT count(*) AS found FROM pg_class WHERE relname IN ('service_meta', 'migrations')`,
  meta: `SELECT name, value FROM service_meta`,
  applied: `SELECT number, checksum FROM migrations ORDER BY number`,
  apply: `INSERT INTO migrations (number, checksum, applied_at) VALUES ($1, $2, $3)`,
} as const;
