/** What keeps tenants apart; see list.mjs. */

const TENANT_STORE = 'src/adapters/service-store/tenant-store.ts';
const KEYS = 'src/adapters/service-store/keys.ts';
const SUITE = 'test/ports/service-store.test.ts';

export const TENANTS = [
  {
    name: 'a space is asked for without its tenant',
    file: TENANT_STORE,
    from: '    return this.#start + name;\n',
    to: '    return name;\n',
    test: SUITE,
  },
  {
    name: 'a key without spaces reaches those of all tenants',
    file: TENANT_STORE,
    from: "globs: (choice.globs ?? ['*']).map((glob) => this.whole(glob))",
    to: 'globs: choice.globs',
    test: SUITE,
  },
  {
    name: 'a purge is found by its id alone',
    file: TENANT_STORE,
    from: '      if (purge === undefined || !names.owns(purge.space)) return undefined;\n',
    to: '      if (purge === undefined) return undefined;\n',
    test: SUITE,
  },
  {
    name: 'keys of every tenant are listed',
    file: KEYS,
    from: "'SELECT * FROM service_keys WHERE tenant = ? ORDER BY",
    to: "'SELECT * FROM service_keys WHERE ? IS NOT NULL ORDER BY",
    test: SUITE,
  },
  {
    name: 'a key of another tenant is revoked',
    file: KEYS,
    from: '      WHERE tenant = ? AND id = ? AND revoked_at IS NULL`;',
    to: '      WHERE ? IS NOT NULL AND id = ? AND revoked_at IS NULL`;',
    test: SUITE,
  },
];
