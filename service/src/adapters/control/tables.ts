import { NO_LIMITS, SELF_HOSTED } from '../../core/plans.ts';
import { USAGE_COUNTS } from '../../core/receipt-rows.ts';
import { DEFAULT_TENANT } from '../../core/tenants.ts';

/**
 * The tables that SQLite and PostgreSQL share, written for PostgreSQL. Each database has further tables for the words
 * of memories. The SQL uses only features that connection poolers, managed databases and a sharded PostgreSQL support.
 * Every primary and unique key of a tenant's table begins with its tenant.
 */

// COLLATE "C" compares names and digests byte by byte: a language's order would differ between machines. No row
// contains a plain key or secret: see service/src/core/envelope.ts. An operator is an admin with an empty tenant_id. A
// provider's secrets are rows with the provider as owner. A receipt's id begins with its time, so the primary key gives
// the order of every list of receipts. Of these tables only `objects` contains whole texts of memories; blocks in
// `tenant_ledger` quote them. The blob of `objects` comes last, so that the columns before it are read without its
// pages. One row of `service_meta` counts the changes: every change waits for it, so the numbers have the order of the
// commits.
export const TABLES: readonly string[] = [
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
  `CREATE TABLE tenant_spaces (
    tenant_id text COLLATE "C" NOT NULL,
    id integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    counter bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    records bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
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
  `CREATE TABLE objects (
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
  `CREATE INDEX objects_by_text_ref ON objects (tenant_id, space_id, text_ref)
    WHERE text_ref IS NOT NULL`,
  `CREATE INDEX objects_by_source ON objects (tenant_id, space_id, source_id)`,
  `CREATE INDEX objects_by_time ON objects (tenant_id, space_id, observed_at)`,
  `CREATE TABLE changes (
    tenant_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, number)
  )`,
  `CREATE INDEX changes_by_number ON changes (number)`,
  `CREATE TABLE leases (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    note text NOT NULL,
    ends bigint NOT NULL,
    PRIMARY KEY (tenant_id, name)
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
  `CREATE INDEX answers_by_time ON answers (at)`,
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
  `CREATE INDEX tenant_ledger_by_time ON tenant_ledger (at)`,
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
    ${USAGE_COUNTS.map((name) => `${name} bigint NOT NULL`).join(',\n    ')},
    PRIMARY KEY (tenant_id, day, key_id, provider_id, model)
  )`,
  `INSERT INTO plans VALUES ('${SELF_HOSTED}', '${JSON.stringify(NO_LIMITS)}', 0)`,
  `INSERT INTO tenants (tenant_id, name, plan, status, created_at)
    VALUES ('${DEFAULT_TENANT}', '${DEFAULT_TENANT}', '${SELF_HOSTED}', 'active', 0)`,
];

/**
 * A table's columns, except one that the database numbers by itself. `key`: the columns of a primary or unique key that
 * does not contain that column, joined by `, `.
 */
export interface TableShape {
  readonly key: string;
  readonly columns: readonly string[];
}

/** Reads the shape of a table from its statement. Throws TypeError if there is no such table. */
export function shapeOf(name: string): TableShape {
  const table = TABLES.find((one) => one.startsWith(`CREATE TABLE ${name} (`)) ?? '';
  const found = [...table.matchAll(/^ +(\w+) (?:text|bigint|integer|bytea)\b(.*)/gm)];
  const [first] = found;
  if (first === undefined) throw new TypeError('That is no table of svc.');
  const columns = found.filter((one) => !isNumber(one)).map(([, column = '']) => column);
  const number = found.find(isNumber)?.[1] ?? '';
  const keys = [...table.matchAll(/(?:PRIMARY KEY|UNIQUE) \((.+)\)/g)].map(([, key = '']) => key);
  const key = keys.find((one) => !one.split(', ').includes(number)) ?? first[1] ?? '';
  return { key, columns };
}

function isNumber([, , more = '']: readonly string[]): boolean {
  return more.includes('nextval');
}
