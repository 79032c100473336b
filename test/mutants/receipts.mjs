/** What makes receipts worth believing; see list.mjs. */

const JOURNAL = 'service/src/adapters/journals/receipt-journal.ts';
const JOURNAL_TEST = 'service/test/adapters/receipt-journal.test.ts';
const SUITE = 'service/test/ports/service-store.test.ts';
const TABLE = 'service/src/adapters/control/receipts.ts';
const STATEMENTS = 'service/src/adapters/control/statements.ts';
const AUDIT = 'service/test/core/receipt-audit.prop.test.ts';

export const RECEIPTS = [
  {
    name: 'a request goes on though its receipt is not on disk',
    file: JOURNAL,
    from: "      throw new JournalFullError('The journal of receipts cannot be written.', { cause: error });\n",
    to: '      void error;\n',
    test: JOURNAL_TEST,
  },
  {
    name: 'a full journal opens further receipts',
    file: JOURNAL,
    from: '    if (!this.#hasRoom()) {',
    to: '    if (this.#open.size > 1e6) {',
    test: JOURNAL_TEST,
  },
  {
    name: 'a service is ready while its journal has no room for the next receipt',
    file: JOURNAL,
    from: "return this.#hasRoom() ? undefined : 'The journal of receipts is full.';",
    to: "return this.#journal.bytes < this.#bytesMax ? undefined : 'The journal of receipts is full.';",
    test: JOURNAL_TEST,
  },
  {
    name: 'tenants share the numbers of a node',
    file: JOURNAL,
    from: 'this.#seqs.set(opening.tenant, seq);',
    to: "for (const name of ['acme', 'globex']) this.#seqs.set(name, seq);",
    test: JOURNAL_TEST,
  },
  {
    name: 'a request whose process died leaves nothing',
    file: JOURNAL,
    from: '  const found = readReceipts(files.flatMap(({ values }) => values));',
    to: '  const found = readReceipts(files.flatMap(({ values }) => values)).filter(\n    ({ closing }) => closing !== undefined,\n  );',
    test: JOURNAL_TEST,
  },
  {
    name: 'the lines of a dead process go before they are stored',
    file: JOURNAL,
    from: '  const { folder, store } = options;\n  const files = takeJournals({ folder, name });\n',
    to: '  const { folder, store } = options;\n  const files = takeJournals({ folder, name });\n  for (const file of files) file.remove();\n',
    test: JOURNAL_TEST,
  },
  {
    name: 'receipts are stored without a signature',
    file: 'service/src/adapters/journals/receipt-journal.ts',
    from: 'await sign(closed.map(({ receipt }) => receiptText(receipt)));',
    to: 'closed.map(({ receipt }) => receiptText(receipt));',
    test: JOURNAL_TEST,
  },
  {
    name: 'a receipt that is stored again counts again',
    file: TABLE,
    from: 'receipts.filter((row) => isNew.delete(`${row.tenant} ${row.receiptId}`));',
    to: 'receipts.filter((row) => isNew.delete(row.body) || row.seq > 0);',
    test: SUITE,
    only: 'receipt',
  },
  {
    name: 'receipts of every tenant are listed',
    file: STATEMENTS,
    from: '`SELECT id, body FROM receipts WHERE tenant_id = $1${conditions}',
    to: '`SELECT id, body FROM receipts WHERE $1 IS NOT NULL${conditions}',
    test: SUITE,
    only: 'a list has what fits',
  },
  {
    name: 'a closed head rises again',
    file: STATEMENTS,
    from: '      ELSE receipt_heads.last_seq END\n    WHERE receipt_heads.body IS NULL`,',
    to: '      ELSE receipt_heads.last_seq END`,',
    test: SUITE,
    only: 'a head rises',
  },
  {
    name: 'a receipt repeats a key that came as a model',
    file: 'service/src/core/receipts.ts',
    from: "maskSecrets(text).text === text ? text : '[masked]'",
    to: "maskSecrets(text).text === '' ? '[masked]' : text",
    test: 'service/test/core/receipts.prop.test.ts',
  },
  {
    name: 'a receipt repeats a key that came as the id of an answer',
    file: 'service/src/core/receipts.ts',
    from: 'maskSecrets(text).text === text ?',
    to: "text !== '' ?",
    test: 'service/test/core/receipts.prop.test.ts',
  },
  {
    name: 'a receipt that is not valid fills its number',
    file: 'service/src/core/receipt-audit.ts',
    from: '      this.#wrong.push({ id, outcome });\n      return;\n',
    to: '      this.#wrong.push({ id, outcome });\n',
    test: AUDIT,
  },
  {
    name: 'a number that is missing is not told',
    file: 'service/src/core/receipt-audit.ts',
    from: 'seq <= last; seq += 1',
    to: 'seq < 1; seq += 1',
    test: AUDIT,
  },
  {
    name: 'a provider is called before the receipt is open',
    file: 'service/src/server/models/key-handlers.ts',
    from: 'call.receipt = this.#parts.receipts.open(openingOf(call, facts));',
    to: 'void openingOf(call, facts);',
    test: 'service/test/server/model-kill.test.ts',
    only: 'on SQLite',
  },
  {
    name: 'a restore brings back a credential that was replaced',
    file: 'service/src/adapters/service-store/backup.ts',
    from: '      carryCredentials(to);\n',
    to: '',
    test: 'service/test/adapters/service-store.test.ts',
    only: 'restore',
  },
  {
    name: 'settings that somebody else changed are overwritten',
    file: 'service/src/adapters/control/changes.ts',
    from: "  if ((await getSettings(rows, tenant)).version !== ifVersion) return 'changed';\n",
    to: '',
    test: SUITE,
    only: 'settings have defaults',
  },
];
