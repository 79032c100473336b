import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { newId } from '../../core/ids.ts';
import { TABLES } from '../control/tables.ts';

/**
 * The service's tables in an SQLite file. The file also has the tables of the local proxy's store, with the searchable
 * texts, so that both products share the search. A file with other tables is refused: clients export their memories
 * from it, and import them into a new service.
 */

/**
 * Converts PostgreSQL's statement of a table to SQLite's. Numbers that the database assigns are AUTOINCREMENT, which
 * never reuses the number of a purged record: clients may still have the record's id. The other tables are WITHOUT
 * ROWID, except those with a column `body`.
 */
function ownTable(table: string): string {
  const own = table
    .replaceAll(/ COLLATE "C"| PARTITION BY .*$/g, '')
    .replaceAll(/\bbytea\b/g, 'BLOB');
  if (!own.startsWith('CREATE TABLE')) return own;
  const numbered = own.replace(NUMBER, 'INTEGER PRIMARY KEY AUTOINCREMENT');
  if (numbered !== own) return numbered.replace('PRIMARY KEY (', 'UNIQUE (');
  return /\bbody text\b/.test(own) ? own : `${own} WITHOUT ROWID`;
}

const NUMBER = "bigint NOT NULL DEFAULT nextval('ids')";

// In the local store's tables a space is named `tenant:space`, and has the same number as in `tenant_spaces`. The view
// `texts` shows the texts of these tables with the columns of PostgreSQL's table `texts`.
const OWN: readonly string[] = [
  ...TABLES.map(ownTable),
  `CREATE TABLE object_texts (
    record INTEGER PRIMARY KEY REFERENCES records(id),
    tenant_id TEXT NOT NULL,
    object INTEGER NOT NULL REFERENCES objects(id),
    message INTEGER NOT NULL
  )`,
  'CREATE INDEX object_texts_by_object ON object_texts(object)',
  `CREATE VIEW texts AS SELECT t.tenant_id, r.space AS space_id, r.id AS n, t.object AS record_id,
      t.message, r.digest, r.ref, r.role, r.conversation AS session, r.at, r.branch, r.source, r.last_from
    FROM records r JOIN object_texts t ON t.record = r.id`,
];

const META = 'CREATE TABLE service_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)';

/** A hash of these tables. A file that stores another value has other tables. */
const SCHEMA = createHash('sha256').update(OWN.join(';')).digest('hex').slice(0, 16);

/**
 * Thrown if the file is missing, or has the tables of another version. The message continues a sentence that begins
 * with the file.
 */
export class ServiceFileError extends Error {
  override readonly name = 'ServiceFileError';
}

/** Throws ServiceFileError for a file with other tables. Call it before anything is changed in the file. */
export function checkSchema(database: Database): void {
  const isMade = database.get("SELECT 1 FROM sqlite_master WHERE name = 'service_meta'");
  if (isMade === undefined || metaOf(database, 'schema') === SCHEMA) return;
  throw new ServiceFileError(
    "has the tables of another version of svc. Start that version, save each client's memories with svc memory export, and bring them with svc memory import into a new service",
  );
}

/** Creates the tables in a new file, with this `epoch`. */
export function makeTables(database: Database, epoch: string): void {
  database.transaction(() => {
    if (database.get("SELECT 1 FROM sqlite_master WHERE name = 'service_meta'") !== undefined)
      return;
    for (const part of [META, ...OWN]) database.exec(part);
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

/** Makes an epoch: 8 random characters with 41 bits, enough that no two databases of a user have the same by chance. */
export function newEpoch(): string {
  return newId('', randomBytes).slice(1, 9);
}
