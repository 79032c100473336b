/** What keeps several nodes of a service honest; see list.mjs. */

const CONFIRMED = 'src/service/confirmed.ts';
const CONFIRMED_TEST = 'test/service/confirmed.test.ts';

export const NODES = [
  {
    name: 'a change drops nothing that is remembered',
    file: CONFIRMED,
    from: 'if (this.#options.concerns(fact, name, value)) this.#known.delete(name);',
    to: 'if (this.#options.concerns(fact, name, value)) break;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a caller is good for ever while the changes cannot be read',
    file: CONFIRMED,
    from: 'if (isFollowed && clock.monotonic() - changes.readAt <= GOOD_MS) return known.value;',
    to: 'if (isFollowed) return known.value;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a caller from before the first read of changes is believed',
    file: CONFIRMED,
    from: 'const isFollowed = known !== undefined && changes.readAt >= known.at;',
    to: 'const isFollowed = known !== undefined;',
    test: CONFIRMED_TEST,
  },
  {
    name: 'an answer that was under way while its fact changed is kept',
    file: CONFIRMED,
    from: 'else if (before === this.#changes) this.#known.set',
    to: 'else this.#known.set',
    test: CONFIRMED_TEST,
  },
  {
    name: 'a change is not in the list of changes',
    file: 'src/adapters/service-store/control.ts',
    from: 'if (fact !== undefined) this.changes.add(fact);',
    to: 'if (fact === null) this.changes.add(fact);',
    test: 'test/ports/service-store.test.ts',
  },
  {
    name: 'a gap in the list of changes is passed over',
    file: 'src/adapters/service-store/changes.ts',
    from: 'changes: last - after === changes.length ? changes : undefined',
    to: 'changes',
    test: 'test/ports/service-store.test.ts',
  },
  {
    name: 'a lease that stands is taken from its holder',
    file: 'src/adapters/postgres-store/statements/leases.ts',
    from: 'WHERE leases.ends <= ${NOW} OR leases.holder = excluded.holder`',
    to: 'WHERE true`',
    test: 'test/adapters/postgres-nodes.test.ts',
  },
  {
    name: 'a lease that stands in a file is taken from its holder',
    file: 'src/adapters/service-store/leases.ts',
    from: '         WHERE leases.holder = excluded.holder`,',
    to: '         WHERE leases.holder IS NOT NULL`,',
    test: 'test/ports/service-store.test.ts',
  },
  {
    name: 'a lease of a process that died stands for ever',
    file: 'src/adapters/service-store/leases.ts',
    from: "this.#database.run('DELETE FROM leases WHERE ends <= ?', now);",
    to: "this.#database.run('DELETE FROM leases WHERE ends <= ?', 0);",
    test: 'test/ports/service-store.test.ts',
  },
  {
    name: 'an answer is looked for before its call has the lease',
    file: 'src/adapters/postgres-store/tenant-store.ts',
    from: "if (hash !== undefined) return { state: 'running', requestHash: hash };",
    to: '',
    test: 'test/adapters/postgres-nodes.test.ts',
  },
  {
    name: '"no entry" is believed while other nodes write',
    file: 'src/adapters/journals/ledger.ts',
    from: '    if (this.isShared) return;\n',
    to: '',
    test: 'test/adapters/shared-ledger.test.ts',
  },
  {
    name: 'an entry that another node may change is remembered',
    file: 'src/adapters/journals/ledger.ts',
    from: 'if (this.isShared && (address === undefined || !isWrittenOnce(address))) return;',
    to: 'if (this.isShared && address === undefined) return;',
    test: 'test/adapters/shared-ledger.test.ts',
  },
  {
    name: 'a request is forwarded before its entries are in the table',
    file: 'src/adapters/journals/ledger.ts',
    from: 'if ((await within(COMMIT_MS, stored)) !== true) return false;',
    to: 'if ((await within(COMMIT_MS, stored)) === null) return false;',
    test: 'test/adapters/shared-ledger.test.ts',
  },
  {
    name: 'a purge on another node leaves what this one remembers',
    file: 'src/adapters/journals/ledger.ts',
    from: 'this.#forgets += 1;',
    to: 'this.#forgets += 0;',
    test: 'test/adapters/shared-ledger.test.ts',
  },
  {
    name: 'batches that another node records at an item that was looked up are not seen',
    file: 'src/proxy/batch-lookup.ts',
    from: 'if (this.#ledger.isShared) return 0;',
    to: '',
    test: 'test/proxy/batch-lookup.test.ts',
  },
];
