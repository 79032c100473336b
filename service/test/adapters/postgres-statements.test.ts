import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  ANSWERS,
  CONTROL,
  leaseStatements,
  LEDGER,
  receiptPage,
  RECEIPTS,
  usageSums,
} from '../../src/adapters/control/statements.ts';
import { MEMORY, searchItems } from '../../src/adapters/memory/statements.ts';
import { INDEX } from '../../src/adapters/postgres-store/statements/index.ts';
import { RECALL } from '../../src/adapters/postgres-store/statements/recall.ts';
import { DAYS, STATISTICS } from '../../src/adapters/postgres-store/statements/upkeep.ts';
import { adding, MOVE } from '../../src/adapters/postgres-store/statements/move.ts';
import { MOVED_TABLES, TABLES_BEHIND } from '../../src/adapters/service-store/move-source.ts';
import { POSTGRES_NOW, SERVER } from '../../src/adapters/postgres-store/statements/server.ts';
import { MIGRATIONS, SCHEMA } from '../../src/adapters/postgres-store/statements/schema.ts';

/**
 * Reads every statement that PostgreSQL is sent. Poolers, managed offers and a sharded PostgreSQL lack
 * parts of it, and a statement that forgets its tenant would answer with the rows of all.
 */

const FOLDERS = ['postgres-store', 'control', 'memory'].map((name) =>
  join(import.meta.dirname, '../../src/adapters', name),
);
const PREFIXED = { answer: ANSWERS, ledger: LEDGER, receipt: RECEIPTS };
const TABLES = MIGRATIONS.flat();
const STATEMENTS = Object.entries({
  ...SCHEMA,
  ...CONTROL,
  ...MEMORY,
  ...INDEX,
  'search items': searchItems(INDEX.held),
  ...RECALL,
  ...leaseStatements(POSTGRES_NOW),
  ...Object.fromEntries(
    Object.entries(PREFIXED).flatMap(([prefix, all]) =>
      Object.entries(all).map(([name, sql]) => [`${prefix} ${name}`, sql]),
    ),
  ),
  'receipt page': receiptPage(['behind', 'to', 'model'], 'DESC'),
  'usage sums': usageSums(['key', 'model'], true),
  ...SERVER,
  ...DAYS,
  ...MOVE,
  ...STATISTICS,
  ...Object.fromEntries(
    [...MOVED_TABLES, ...TABLES_BEHIND].map((table) => [`adding ${table}`, adding(table)]),
  ),
});

/** Statements of tenants' tables that name no tenant, with the reason. */
const WITHOUT_TENANT: Readonly<Record<string, string>> = {
  findCaller: 'the key says whose it is',
  isKeyId: 'an id is used once in the whole service',
  findAdmin: 'the token says whose it is',
  noteAdminUse: 'the token was found by its id',
  listAdmins: 'operators see the admins of all tenants; an admin asks with a tenant',
  revokeAdmin: 'operators revoke in all tenants; an admin asks with a tenant',
  listTenants: 'the operator sees all tenants',
  listSecrets: 'a new master key takes over the secrets of all tenants',
  masterKeys: 'counts the secrets under a master key',
  listChanges: 'a node forgets what was changed of any tenant',
  dropChanges: 'no node asks for changes so old',
  dropAudit: 'events of all tenants are kept equally long',
  dropLeases: 'a lease that has ended is of no use to any tenant',
  'answer drop': 'answers of all tenants are kept equally long',
  'ledger drop': 'entries of all tenants are kept equally long',
  'receipt openHeads': 'a node closes its heads of all tenants',
  unfinishedPurges: 'a start goes on with the purges of all tenants',
  isUsed: 'a move fills an empty database only',
  receipts: 'a move compares those of all tenants, each under its own',
  health: 'the operator sees how many there are',
};

const NOT_EVERYWHERE =
  /\b(?:EXTENSION|TRIGGER|FUNCTION|PROCEDURE|LISTEN|NOTIFY|UNLISTEN|pg_advisory\w*|pg_notify|SET SESSION|PREPARE|DEALLOCATE|EXECUTE|TEMP|TEMPORARY|DISCARD|CURSOR|to_tsvector|to_tsquery|ts_rank|REFERENCES|LANGUAGE)\b/i;

function tablesWithTenant(): Set<string> {
  const made = TABLES.flatMap((sql) => /^CREATE TABLE (\w+) \(\s*tenant_id/.exec(sql)?.[1] ?? []);
  return new Set(made);
}

/** The names behind FROM, JOIN, INTO and UPDATE. */
function tablesOf(sql: string): string[] {
  const named = /\b(?:FROM|JOIN|INTO|(?<!FOR |DO )UPDATE)\s+(?:ONLY\s+)?([a-z_]+)/gi;
  return [...sql.matchAll(named)].map(([, table = '']) => table.toLowerCase());
}

test('no statement needs what a pooler, a managed offer or a sharded database lacks', () => {
  const all = [...TABLES, ...STATEMENTS.map(([, sql]) => sql)];
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter((sql) => NOT_EVERYWHERE.test(sql))).toEqual([]);
});

test('every primary and unique key of a tenant’s table begins with its tenant', () => {
  const owned = tablesWithTenant();
  expect(owned.size).toBeGreaterThan(15);
  const wrong = TABLES.filter((sql) => {
    const table = /^CREATE TABLE (\w+)/.exec(sql)?.[1] ?? '';
    if (!owned.has(table)) return false;
    const keys = [...sql.matchAll(/(?:PRIMARY KEY|UNIQUE)(?: \((\w+))?/g)];
    const isFirst = keys.every(([, first]) => first === 'tenant_id' || first === undefined);
    // A key without a list of columns is that of one column: the tenant itself.
    const alone = keys.filter(([, first]) => first === undefined).length;
    const isOwn = alone === 0 || /tenant_id text COLLATE "C" PRIMARY KEY/.test(sql);
    return keys.length === 0 || !isFirst || !isOwn;
  });
  expect(wrong).toEqual([]);
  expect(
    TABLES.filter((sql) => /CREATE UNIQUE INDEX \w+ ON \w+ \((?!tenant_id)/.test(sql)),
  ).toEqual([]);
});

test('a statement names its tenant once for every table of tenants that it reads or writes', () => {
  const owned = tablesWithTenant();
  const wrong = STATEMENTS.filter(([, sql]) => {
    const touched = tablesOf(sql).filter((table) => owned.has(table)).length;
    // In a condition, or as the first value of new rows.
    const named = [...sql.matchAll(/\btenant_id = \$1\b|INTO \w+ \(tenant_id, /g)].length;
    return named < touched;
  }).map(([name]) => name);
  expect(wrong.toSorted()).toEqual(Object.keys(WITHOUT_TENANT).toSorted());
});

test('no statement stands anywhere else, and none is put together from values', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/^(?:statements|tables)/.test(name))
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const),
  );
  const sql = /\b(?:SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE|ALTER|DROP)\s/;
  const strays = files.flatMap(([name, text]) =>
    text
      .split('\n')
      .filter((line) => sql.test(line) && !line.trim().startsWith('*'))
      .map((line) => `${name}: ${line.trim()}`),
  );
  expect(strays).toEqual([]);
});
