import { createHash, randomBytes } from 'node:crypto';
import { NO_LIMITS, SELF_HOSTED } from '../../core/plans.ts';
import { DEFAULT_TENANT } from '../../core/tenants.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/**
 * The service's own tables, beside those of the embedded store. The latter's `spaces`, `records`,
 * `passages` and index hold the searchable texts, so that one ranking serves both. The tables of the
 * control plane have the columns that they have in PostgreSQL. A file has exactly these tables: one
 * with others is refused, and an export and an import are the way from it.
 */

// AUTOINCREMENT: an item's id must not mean another record after a purge.
// The blob comes last: the columns before it are read without its pages.
// The name of a space begins with its tenant: see tenant-store.ts.
const MEMORY = `
CREATE TABLE space_states (
  space INTEGER PRIMARY KEY REFERENCES spaces(id),
  counter INTEGER NOT NULL DEFAULT 0,
  seq INTEGER NOT NULL DEFAULT 0,
  records INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE sources (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  space INTEGER NOT NULL REFERENCES spaces(id),
  session TEXT NOT NULL,
  client TEXT NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  records INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  UNIQUE (space, session, client)
);
CREATE TABLE objects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  ref TEXT NOT NULL,
  kind TEXT NOT NULL,
  text_digest TEXT,
  text_ref TEXT,
  source INTEGER NOT NULL REFERENCES sources(id),
  observed_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  position INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  branch TEXT,
  dialect TEXT,
  tool_name TEXT,
  redactions INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  size INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (space, digest),
  UNIQUE (space, ref)
);
CREATE INDEX objects_by_source ON objects(source);
CREATE INDEX objects_by_ref ON objects(ref);
CREATE INDEX objects_by_text_ref ON objects(text_ref) WHERE text_ref IS NOT NULL;
CREATE INDEX objects_by_time ON objects(space, observed_at);
CREATE TABLE object_texts (
  record INTEGER PRIMARY KEY REFERENCES records(id),
  object INTEGER NOT NULL REFERENCES objects(id),
  message INTEGER NOT NULL
);
CREATE INDEX object_texts_by_object ON object_texts(object);
CREATE TABLE purged (
  space INTEGER NOT NULL REFERENCES spaces(id),
  digest TEXT NOT NULL,
  ref TEXT NOT NULL,
  text_ref TEXT,
  at INTEGER NOT NULL,
  PRIMARY KEY (space, digest)
) WITHOUT ROWID;
CREATE INDEX purged_by_digest ON purged(digest);
CREATE INDEX purged_by_ref ON purged(ref);
CREATE INDEX purged_by_text_ref ON purged(text_ref) WHERE text_ref IS NOT NULL;
CREATE TABLE purges (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  space TEXT NOT NULL,
  scope TEXT NOT NULL,
  state TEXT NOT NULL,
  records INTEGER NOT NULL,
  items INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  generation_before TEXT NOT NULL,
  generation_after TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  erased_at INTEGER,
  upto INTEGER NOT NULL
);
`;

// No row holds a key or a secret in the clear: see service/src/core/envelope.ts. An operator is an admin
// without a tenant. Secrets of a provider are rows that name it as their owner. The id of a receipt begins
// with its time, so the primary key is the order of every list. A receipt takes 2 kB, which is too much
// for a table that is its own index. `changes` is for processes that keep facts in memory.
const CONTROL = `
CREATE TABLE plans (
  name TEXT PRIMARY KEY,
  limits TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tenants (
  tenant_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  plan TEXT NOT NULL REFERENCES plans(name),
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE service_keys (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  retired TEXT,
  scopes TEXT NOT NULL,
  spaces TEXT,
  allowed_models TEXT,
  tokens_per_day INTEGER,
  tokens_per_month INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER,
  rotated_at INTEGER,
  PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX service_keys_by_id ON service_keys(id);
CREATE TABLE admins (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER,
  PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX admins_by_id ON admins(id);
CREATE TABLE audit_heads (
  tenant_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL,
  hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit (
  tenant_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  PRIMARY KEY (tenant_id, number)
) WITHOUT ROWID;
CREATE TABLE master_keys (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  wrapped BLOB NOT NULL,
  ciphertext BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) WITHOUT ROWID;
CREATE TABLE secrets (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  owner TEXT NOT NULL,
  purpose TEXT NOT NULL,
  version INTEGER NOT NULL,
  kek TEXT NOT NULL REFERENCES master_keys(id),
  wrapped BLOB NOT NULL,
  ciphertext BLOB NOT NULL,
  fingerprint TEXT NOT NULL,
  saved_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX secrets_by_kek ON secrets(kek);
CREATE TABLE signing_keys (
  kid TEXT PRIMARY KEY,
  x TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) WITHOUT ROWID;
CREATE TABLE providers (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, name)
) WITHOUT ROWID;
CREATE TABLE account_settings (
  tenant_id TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  settings TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE receipts (
  tenant_id TEXT NOT NULL,
  id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  model TEXT NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant_id, id)
);
CREATE INDEX receipts_by_key ON receipts(tenant_id, key_id, id);
CREATE INDEX receipts_by_provider ON receipts(tenant_id, provider_id, id);
CREATE INDEX receipts_by_model ON receipts(tenant_id, model, id);
CREATE INDEX receipts_by_status ON receipts(tenant_id, status, id);
CREATE TABLE receipt_heads (
  tenant_id TEXT NOT NULL,
  node TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  body TEXT,
  PRIMARY KEY (tenant_id, node)
) WITHOUT ROWID;
CREATE INDEX open_receipt_heads ON receipt_heads(node, tenant_id) WHERE body IS NULL;
CREATE TABLE usage_days (
  tenant_id TEXT NOT NULL,
  day TEXT NOT NULL,
  key_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  original_input INTEGER NOT NULL,
  forwarded_input INTEGER NOT NULL,
  recalled INTEGER NOT NULL,
  elided INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  output INTEGER NOT NULL,
  spent INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, key_id, provider_id, model)
) WITHOUT ROWID;
CREATE TABLE tenant_ledger (
  tenant_id TEXT NOT NULL,
  key TEXT NOT NULL,
  block TEXT NOT NULL,
  form TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key)
) WITHOUT ROWID;
CREATE INDEX tenant_ledger_by_time ON tenant_ledger(at);
CREATE TABLE changes (
  tenant_id TEXT NOT NULL,
  number INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  id TEXT NOT NULL
);
CREATE TABLE leases (
  tenant_id TEXT NOT NULL,
  name TEXT NOT NULL,
  holder TEXT NOT NULL,
  note TEXT NOT NULL,
  ends INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) WITHOUT ROWID;
CREATE TABLE answers (
  tenant_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  body TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key_id, idempotency_key)
);
CREATE INDEX answers_by_time ON answers(tenant_id, at);
INSERT INTO plans VALUES ('${SELF_HOSTED}', '${JSON.stringify(NO_LIMITS)}', 0);
INSERT INTO tenants VALUES ('${DEFAULT_TENANT}', '${DEFAULT_TENANT}', '${SELF_HOSTED}', 'active', 0);
`;

const META = 'CREATE TABLE service_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)';

/** Names these tables: a file with another one has other tables. */
const SCHEMA = createHash('sha256')
  .update(MEMORY + CONTROL)
  .digest('hex')
  .slice(0, 16);

/** The file has the tables of another version. */
export class OtherSchemaError extends Error {
  override readonly name = 'OtherSchemaError';
}

/** Throws OtherSchemaError. Call it before anything is changed in the file. */
export function checkSchema(database: Database): void {
  const isMade = database.get("SELECT 1 FROM sqlite_master WHERE name = 'service_meta'");
  if (isMade === undefined || metaOf(database, 'schema') === SCHEMA) return;
  throw new OtherSchemaError(
    "has the tables of another version of svc. Start that version, save each client's memories with svc memory export, and bring them into a new service with svc memory import",
  );
}

/** Makes the tables in a new file. `epoch` is taken for it. */
export function makeTables(database: Database, epoch: string): void {
  database.transaction(() => {
    if (database.get("SELECT 1 FROM sqlite_master WHERE name = 'service_meta'") !== undefined)
      return;
    for (const part of [META, MEMORY, CONTROL]) database.exec(part);
    setMeta(database, 'schema', SCHEMA);
    setMeta(database, 'epoch', epoch);
    setMeta(database, 'changes', '0');
  });
}

export function epochOf(database: Database): string {
  return metaOf(database, 'epoch') ?? '';
}

export function setMeta(
  database: Database,
  name: 'schema' | 'epoch' | 'changes',
  value: string,
): void {
  database.run(
    `INSERT INTO service_meta (name, value) VALUES (?, ?)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    name,
    value,
  );
}

function metaOf(database: Database, name: string): string | undefined {
  return database.get<{ value: string }>('SELECT value FROM service_meta WHERE name = ?', name)
    ?.value;
}

/** 8 characters, 47 bits: no two databases of one service share an epoch by chance. */
export function newEpoch(): string {
  const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz';
  // 252 is 7 times 36: what is over would make the first letters likelier.
  const bytes = [...randomBytes(64)].filter((byte) => byte < 252).slice(0, 8);
  return bytes.map((byte) => alphabet[byte % 36]).join('');
}
