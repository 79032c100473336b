import { NO_LIMITS, SELF_HOSTED } from '../../core/plans.ts';
import { DEFAULT_TENANT } from '../../core/tenants.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { SchemaTooNewError } from '../../../../src/adapters/store/schema.ts';

/**
 * The service's own tables, beside those of the embedded store. The latter's `spaces`, `records`,
 * `passages` and index hold the searchable texts, so that one ranking serves both. Never edit a
 * released migration.
 */

// AUTOINCREMENT: an item's id must not mean another record after a purge.
// The blob comes last: the columns before it are read without its pages.
const VERSION_1 = `
CREATE TABLE service_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  scopes TEXT NOT NULL,
  spaces TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER
) WITHOUT ROWID;
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
CREATE INDEX records_by_space_and_time ON records(space, at);
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
CREATE TABLE answers (
  key TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  body TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (key, idempotency_key)
);
CREATE INDEX answers_by_time ON answers(at);
`;

// Everything so far belongs to the one tenant that there was. The name of a space begins with its
// tenant; the key of a kept answer does too: see tenant-store.ts.
const VERSION_2 = `
ALTER TABLE service_keys ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
CREATE INDEX service_keys_by_tenant ON service_keys(tenant, created_at);
UPDATE spaces SET name = 'default:' || name;
UPDATE purges SET space = 'default:' || space;
UPDATE answers SET key = 'default:' || key;
`;

// The shared tables have the same index since their version 5.
const VERSION_3 = 'DROP INDEX records_by_space_and_time;';

// The tenant that there was gets the plan without limits.
const VERSION_4 = `
ALTER TABLE service_keys ADD COLUMN retired TEXT;
ALTER TABLE service_keys ADD COLUMN rotated_at INTEGER;
ALTER TABLE service_keys ADD COLUMN allowed_models TEXT;
ALTER TABLE service_keys ADD COLUMN tokens_per_day INTEGER;
ALTER TABLE service_keys ADD COLUMN tokens_per_month INTEGER;
CREATE TABLE plans (
  name TEXT PRIMARY KEY,
  limits TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tenants (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  plan TEXT NOT NULL REFERENCES plans(name),
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE admins (
  id TEXT PRIMARY KEY,
  tenant TEXT REFERENCES tenants(id),
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER
) WITHOUT ROWID;
CREATE INDEX admins_by_tenant ON admins(tenant, created_at);
CREATE TABLE audit (
  tenant TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  hash TEXT NOT NULL,
  event TEXT NOT NULL,
  PRIMARY KEY (tenant, number)
) WITHOUT ROWID;
INSERT INTO plans VALUES ('${SELF_HOSTED}', '${JSON.stringify(NO_LIMITS)}', 0);
INSERT INTO tenants VALUES ('${DEFAULT_TENANT}', '${DEFAULT_TENANT}', '${SELF_HOSTED}', 'active', 0);
`;

// No row holds a text or a key in the clear: see service/src/core/envelope.ts.
const VERSION_5 = `
CREATE TABLE master_keys (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  wrapped BLOB NOT NULL,
  ciphertext BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) WITHOUT ROWID;
CREATE TABLE secrets (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  owner TEXT NOT NULL,
  purpose TEXT NOT NULL,
  version INTEGER NOT NULL,
  kek TEXT NOT NULL REFERENCES master_keys(id),
  wrapped BLOB NOT NULL,
  ciphertext BLOB NOT NULL,
  fingerprint TEXT NOT NULL,
  saved_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX secrets_by_kek ON secrets(kek);
CREATE TABLE signing_keys (
  kid TEXT PRIMARY KEY,
  x TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER
) WITHOUT ROWID;
`;

// Secrets of a provider are rows of their own, which name it as their owner.
const VERSION_6 = `
CREATE TABLE providers (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, name)
) WITHOUT ROWID;
`;

// The id of a receipt begins with its time, so the primary key is the order of every list. A receipt
// takes 2 kB, which is too much for a table that is its own index.
const VERSION_7 = `
CREATE TABLE receipts (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  key TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  status TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX receipts_by_key ON receipts(tenant, key, id);
CREATE INDEX receipts_by_provider ON receipts(tenant, provider, id);
CREATE INDEX receipts_by_model ON receipts(tenant, model, id);
CREATE INDEX receipts_by_status ON receipts(tenant, status, id);
CREATE TABLE receipt_heads (
  tenant TEXT NOT NULL,
  node TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  body TEXT,
  PRIMARY KEY (tenant, node)
) WITHOUT ROWID;
CREATE INDEX open_receipt_heads ON receipt_heads(node, tenant) WHERE body IS NULL;
CREATE TABLE usage_days (
  tenant TEXT NOT NULL,
  day TEXT NOT NULL,
  key TEXT NOT NULL,
  provider TEXT NOT NULL,
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
  PRIMARY KEY (tenant, day, key, provider, model)
) WITHOUT ROWID;
`;

const VERSION_8 = `
CREATE TABLE account_settings (
  tenant TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  settings TEXT NOT NULL
) WITHOUT ROWID;
`;

// Entries that shape what is forwarded: what was done to a conversation is done again.
const VERSION_9 = `
CREATE TABLE tenant_ledger (
  tenant TEXT NOT NULL,
  key TEXT NOT NULL,
  block TEXT NOT NULL,
  form TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX tenant_ledger_by_time ON tenant_ledger(at);
`;

// The changes, for the processes that keep facts in memory. AUTOINCREMENT: no number comes again.
const VERSION_10 = `
CREATE TABLE changes (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL
);
`;

// Work that one process may do at a time.
const VERSION_11 = `
CREATE TABLE leases (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  holder TEXT NOT NULL,
  note TEXT NOT NULL,
  ends INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
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
];

/** Brings the service's tables to this version. `epoch` is taken for a file that has none yet. */
export function migrateService(database: Database, epoch: string): void {
  database.exec(
    'CREATE TABLE IF NOT EXISTS service_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)',
  );
  if (metaOf(database, 'version') === String(MIGRATIONS.length)) return;
  database.transaction(() => {
    const version = Number(metaOf(database, 'version') ?? '0');
    if (version > MIGRATIONS.length) throw new SchemaTooNewError('made by a later version of svc');
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    setMeta(database, 'version', String(MIGRATIONS.length));
    if (metaOf(database, 'epoch') === undefined) setMeta(database, 'epoch', epoch);
  });
}

export function epochOf(database: Database): string {
  return metaOf(database, 'epoch') ?? '';
}

export function setMeta(database: Database, name: 'version' | 'epoch', value: string): void {
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
