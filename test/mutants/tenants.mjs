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
    from: '`SELECT * FROM service_keys WHERE tenant = ?1 AND (created_at, id) > (',
    to: '`SELECT * FROM service_keys WHERE ?1 IS NOT NULL AND (created_at, id) > (',
    test: SUITE,
  },
  {
    name: 'a key of another tenant is revoked',
    file: KEYS,
    from: '      WHERE tenant = ? AND id = ? AND revoked_at IS NULL`;',
    to: '      WHERE ? IS NOT NULL AND id = ? AND revoked_at IS NULL`;',
    test: SUITE,
  },
  {
    name: 'the secret before a rotation never gets stale',
    file: 'src/core/service/keys.ts',
    from: 'now < retired.until',
    to: 'now < Infinity',
    test: 'test/core/service/keys.prop.test.ts',
  },
  {
    name: 'a live key opens the console',
    file: 'src/service/authenticator.ts',
    from: "this.#read(credentials, 'svc_admin');",
    to: "this.#read(credentials, 'svc_live');",
    test: 'test/service/console.test.ts',
  },
  {
    name: 'a viewer may change things',
    file: 'src/service/console/console.ts',
    from: '  if (includesRole(actor.role, role)) return found;\n',
    to: '  if (role !== undefined) return found;\n',
    test: 'test/service/console.test.ts',
  },
  {
    name: 'an admin acts for a tenant that it names',
    file: 'src/service/console/console.ts',
    from: '  if (named === undefined || named === tenant) return tenant;\n',
    to: '  if (named !== undefined) return named;\n  return tenant;\n',
    test: 'test/service/console.test.ts',
  },
  {
    name: 'a change is kept without its event',
    file: 'src/adapters/service-store/control.ts',
    from: "      if (outcome === 'done') this.#chain(tenant, note);\n",
    to: '      if (tenant === note.event_id) this.#chain(tenant, note);\n',
    test: SUITE,
  },
  {
    name: 'a ciphertext opens in another place',
    file: 'src/core/service/envelope.ts',
    from: "  return contextOf(['svc-vault/1', tenant, secretId, owner, purpose, String(version)]);",
    to: "  void [tenant, secretId, owner, purpose, version];\n  return contextOf(['svc-vault/1']);",
    test: 'test/core/service/envelope.prop.test.ts',
  },
  {
    name: 'a wrapped key opens for another tenant',
    file: 'src/core/service/envelope.ts',
    from: "  return contextOf(['svc-vault-dek/1', kek, tenant, secretId]);",
    to: "  void [tenant, secretId];\n  return contextOf(['svc-vault-dek/1', kek]);",
    test: 'test/core/service/envelope.prop.test.ts',
  },
  {
    name: 'a secret is found in every tenant',
    file: 'src/adapters/service-store/vault-table.ts',
    from: "'SELECT * FROM secrets WHERE tenant = ? AND id = ?'",
    to: "'SELECT * FROM secrets WHERE ? IS NOT NULL AND id = ?'",
    test: SUITE,
  },
  {
    name: 'another master key than before starts the service',
    file: 'src/service/vault.ts',
    from: 'text === CANARY',
    to: "text !== 'x'",
    test: 'test/service/vault.test.ts',
  },
  {
    name: 'a signature of any algorithm is looked at',
    file: 'src/core/service/jws.ts',
    from: "  if (alg !== 'Ed25519' || typeof kid",
    to: "  if (alg === '' || typeof kid",
    test: 'test/core/service/jws.prop.test.ts',
  },
  {
    name: 'a limiter that fails lets the call pass',
    file: 'src/service/admission.ts',
    from: '    .catch(() => {\n      throw unavailable();\n    });',
    to: '    .catch(() => ({ refusedBy: undefined, waitMs: 0 }));',
    test: 'test/service/limits.test.ts',
  },
  {
    name: 'tenants share one count',
    file: 'src/core/service/limits.ts',
    from: '`memory:${tenant}`',
    to: "tenant === '' ? tenant : 'memory'",
    test: 'test/service/limits.test.ts',
  },
];
