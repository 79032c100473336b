/** fill-receipts.mjs FILE COUNT: adds copies of a receipt to the store of a service that does not run. */
import { createRequire } from 'node:module';
import { idAt } from './receipt-ids.mjs';

addReceipts(process.argv[2], Number(process.argv[3]));

function addReceipts(file, count) {
  const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite');
  const database = new DatabaseSync(file);
  try {
    const row = database.prepare("SELECT * FROM receipts WHERE tenant = 'default' LIMIT 1").get();
    if (row === undefined) throw new Error('there is no receipt to copy');
    database.exec('BEGIN');
    const names = Object.keys(row);
    const places = names.map(() => '?').join(', ');
    const insert = database.prepare(
      `INSERT INTO receipts (${names.join(', ')}) VALUES (${places})`,
    );
    for (let at = 1; at <= count; at += 1) {
      const id = idAt(at);
      const body = row.body.replaceAll(row.id, id);
      insert.run(...names.map((name) => ({ ...row, id, body })[name]));
    }
    database.exec('COMMIT');
    database.exec('ANALYZE');
  } finally {
    database.close();
  }
}
