import { expect, test } from 'vitest';
import { serviceCommandTree } from '../../../test/support/command-tree.ts';
import { consoleContract } from '../../../test/support/memory-api.ts';

/** What a person can do over HTTP can be done with a command, on this machine or with `--url`. */

/** Below `svc-service`. */
const COMMANDS: Readonly<Record<string, string>> = {
  listTenants: 'tenants list',
  createTenant: 'tenants create',
  updateTenant: 'tenants update',
  listPlans: 'plans list',
  createPlan: 'plans create',
  updatePlan: 'plans update',
  listAdmins: 'admins list',
  createAdmin: 'admins create',
  revokeAdmin: 'admins revoke',
  listKeys: 'keys list',
  createKey: 'keys create',
  rotateKey: 'keys rotate',
  revokeKey: 'keys revoke',
  listProviders: 'providers list',
  createProvider: 'providers add',
  getProvider: 'providers show',
  updateProvider: 'providers update',
  deleteProvider: 'providers remove',
  getSettings: 'settings show',
  updateSettings: 'settings set',
  getUsage: 'usage',
  listRequests: 'receipts list',
  listRequestHeads: 'receipts export',
  getRequest: 'receipts get',
  listMemoryItems: 'items list',
  deleteMemoryItem: 'items delete',
  listMemorySources: 'sources',
  listMemoryPurges: 'purges',
  createMemoryPurge: 'purge',
  getStatus: 'status',
  fetchModels: 'providers models',
  testProvider: 'providers test',
  compareCredential: 'providers fingerprint',
  listPresets: 'providers presets',
  listAudit: 'audit',
  getVault: 'vault status',
  retireMasterKey: 'vault retire',
  rotateVault: 'vault rotate',
  verifyVault: 'vault verify',
  addMasterKey: 'vault add',
  listSigningKeys: 'signing list',
  rotateSigningKey: 'signing rotate',
};

/** A program asks this for itself; one purge stands in the list. */
const WITHOUT: ReadonlySet<string> = new Set(['getSession', 'getMemoryPurge']);

const { paths } = consoleContract as {
  paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>;
};

test('each operation of the console has a command, with --url and --json', () => {
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith('/v1/svc/console/'))
    .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
  expect(operations.filter((name) => !WITHOUT.has(name)).toSorted()).toEqual(
    Object.keys(COMMANDS).toSorted(),
  );
  const known = new Map(serviceCommandTree().map((command) => [command.path, command.flags]));
  const wrong = Object.values(COMMANDS).filter((name) => {
    const flags = known.get(name)?.join(' ') ?? '';
    return !flags.includes('--url') || !flags.includes('--json');
  });
  expect(wrong).toEqual([]);
});
