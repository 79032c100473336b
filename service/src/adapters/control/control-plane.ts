import { firstReceiptIdAt } from '../../core/ids.ts';
import type { KeyPage, Page, Lease, StandingLease } from '../../ports/control-store.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import type {
  AnswerKey,
  AnswerState,
  KeptAnswer,
  ServiceStore,
  TenantStore,
} from '../../ports/service-store.ts';
import { changeService, changeTenant, findTenant, getSettings, listMasterKeys } from './changes.ts';
import {
  adminOf,
  changeListOf,
  type ChangeRow,
  eventOf,
  headOf,
  keyOf,
  planOf,
  providerOf,
  receiptOf,
  type Row,
  secretOf,
  signingKeyOf,
  tenantFactsOf,
  tenantOf,
} from './facts.ts';
import { ledgerCalls } from './ledger.ts';
import { closeHeads, listReceipts, listUsage, storeReceipts } from './receipts.ts';
import { ANSWERS, CONTROL, leaseStatements, RECEIPTS } from './statements.ts';

/**
 * The control plane of a service, which is everything except its memory: callers, counts, running operations. It is
 * the same on every engine; an engine provides transactions and an expression for its clock.
 */

export interface ControlEngine {
  /** Resolves once the tables are as they must be. */
  readonly open: () => Promise<Transactions>;
  /** SQL for milliseconds since 1970 by the engine's clock. */
  readonly now: string;
}

/** Most changes that a node reads at once. It reads once a second, and drops all cached facts if it missed more. */
const CHANGES_READ_MAX = 1000;
/** A page with all rows: a tenant without a limit in its plan has some hundred keys. */
const EVERY: Page = { limit: 10_000, after: undefined };
const ANSWER_AGE_MAX_MS = 24 * 3600 * 1000;
/** Writes between two deletions of old rows, because deleting at every write would cost more than the write. */
const WRITES_PER_DROP = 64;

export function serviceControl({ open }: ControlEngine) {
  return {
    findCaller: async (keyId, signal) =>
      (await open()).read(async (rows) => {
        // An id must belong to one key: if two tenants had the same id, neither key is accepted.
        const [row, other] = await rows.all<Row>(CONTROL.findCaller, keyId);
        if (row === undefined || other !== undefined) return undefined;
        const {
          tenant_name: name,
          tenant_created_at: created_at,
          plan,
          status,
          limits,
          ...key
        } = row;
        const tenant = { tenant_id: key['tenant_id'], name, created_at, plan, status, limits };
        return { key: keyOf(key), tenant: tenantFactsOf(tenant) };
      }, signal),
    listTenants: async ({ limit, after = '' }) =>
      (await open()).read(async (rows) =>
        (await rows.all<Row>(CONTROL.listTenants, after, limit)).map(tenantOf),
      ),
    findTenant: async (tenantId) => (await open()).read((rows) => findTenant(rows, tenantId)),
    listPlans: async ({ limit, after = '' }) =>
      (await open()).read(async (rows) =>
        (await rows.all<Row>(CONTROL.listPlans, after, limit)).map(planOf),
      ),
    findAdmin: async (adminId, signal) =>
      (await open()).read(async (rows) => {
        const [row, other] = await rows.all<Row>(CONTROL.findAdmin, adminId);
        return row === undefined || other !== undefined ? undefined : adminOf(row);
      }, signal),
    listAdmins: async (tenant, { limit, after = '' }) =>
      (await open()).read(async (rows) =>
        (await rows.all<Row>(CONTROL.listAdmins, tenant ?? null, after, limit)).map(adminOf),
      ),
    noteAdminUse: async (adminId, at) => {
      await (await open()).note((rows) => rows.run(CONTROL.noteAdminUse, adminId, at));
    },
    listMasterKeys: async () => (await open()).read(listMasterKeys),
    listSecrets: async ({ limit, notUnder = null, after }) =>
      (await open()).read(async (rows) => {
        const values = [notUnder, after?.tenant ?? '', after?.secretId ?? '', limit];
        return (await rows.all<Row>(CONTROL.listSecrets, ...values)).map(secretOf);
      }),
    listSigningKeys: async () =>
      (await open()).read(async (rows) =>
        (await rows.all<Row>(CONTROL.signingKeys)).map(signingKeyOf),
      ),
    changesSince: async (after, signal) => {
      const values = [after ?? Number.MAX_SAFE_INTEGER, CHANGES_READ_MAX];
      const asked = { statement: CONTROL.listChanges, values };
      return changeListOf(after, await (await open()).look<ChangeRow>(asked, signal));
    },
    apply: async (change, note) =>
      (await open()).writeOnce((rows) => changeService(rows, change, note)),
    storeReceipts: async (receipts) => {
      if (receipts.length === 0) return;
      const transactions = await open();
      await transactions.write((rows) => storeReceipts(rows, receipts));
    },
    openHeads: async ({ node, limit }) =>
      (await open()).read(async (rows) => {
        const found = await rows.all<Row>(RECEIPTS.openHeads, node, limit);
        return found.map(headOf).map(({ tenant, lastSeq }) => ({ tenant, node, lastSeq }));
      }),
    closeHeads: async (heads) => {
      await (await open()).write((rows) => closeHeads(rows, heads));
    },
  } satisfies Partial<ServiceStore>;
}

export function tenantControl(engine: ControlEngine, tenant: string) {
  const { open } = engine;
  return {
    ...answerCalls(engine, tenant),
    ...ledgerCalls(engine.open, tenant),
    listKeys: async ({ limit, after = '', isLive = false }: KeyPage = EVERY) =>
      (await open()).read(async (rows) => {
        const values = [tenant, after, limit, isLive ? 1 : 0];
        return (await rows.all<Row>(CONTROL.listKeys, ...values)).map(keyOf);
      }),
    getKey: async (keyId) =>
      (await open()).read(async (rows) => {
        const row = await rows.get<Row>(CONTROL.getKey, tenant, keyId);
        return row === undefined ? undefined : keyOf(row);
      }),
    noteKeyUse: async (keyId, at) => {
      await (await open()).note((rows) => rows.run(CONTROL.noteKeyUse, tenant, keyId, at));
    },
    listAudit: async ({ limit, after }) =>
      (await open()).read(async (rows) => {
        const before = Number(after ?? Number.MAX_SAFE_INTEGER);
        const found = await rows.all<{ event: string }>(CONTROL.listAudit, tenant, before, limit);
        return found.map(({ event }) => eventOf(event));
      }),
    listProviders: async () =>
      (await open()).read(async (rows) =>
        (await rows.all<{ facts: string }>(CONTROL.listProviders, tenant)).map(({ facts }) =>
          providerOf(facts),
        ),
      ),
    getSettings: async () => (await open()).read((rows) => getSettings(rows, tenant)),
    findSecret: async (secretId) =>
      (await open()).read(async (rows) => {
        const row = await rows.get<Row>(CONTROL.findSecret, tenant, secretId);
        return row === undefined ? undefined : secretOf(row);
      }),
    apply: async (change, note) =>
      (await open()).writeOnce((rows) => changeTenant(rows, tenant, { change, note })),
    findReceipt: async (receiptId, signal) =>
      (await open()).read(async (rows) => {
        const row = await rows.get<Row>(RECEIPTS.find, tenant, receiptId);
        return row === undefined ? undefined : receiptOf(row);
      }, signal),
    listReceipts: async (filter, signal) =>
      (await open()).read((rows) => listReceipts(rows, tenant, filter), signal),
    listHeads: async ({ limit, after = '' }) =>
      (await open()).read(async (rows) =>
        (await rows.all<Row>(RECEIPTS.listHeads, tenant, after, limit)).map(headOf),
      ),
    listUsage: async (filter) => (await open()).read((rows) => listUsage(rows, tenant, filter)),
    tokensSpent: async ({ from, to, keyId = null }, signal) =>
      (await open()).read(async (rows) => {
        const values = [tenant, from, to, keyId];
        return (await rows.get<{ spent: number }>(RECEIPTS.tokensSpent, ...values))?.spent ?? 0;
      }, signal),
    dropReceipts: async ({ before, limit }) =>
      (await open()).job((rows) =>
        rows.run(RECEIPTS.drop, tenant, firstReceiptIdAt(before), limit),
      ),
  } satisfies Partial<TenantStore>;
}

/** Stores leases, and the answers of calls under a lease. */
function answerCalls({ open, now }: ControlEngine, tenant: string) {
  const LEASES = leaseStatements(now);
  let writes = 0;

  /** Takes a lease. Undefined: this holder has it now. Otherwise the note of its present holder. */
  const take = async (
    rows: Rows,
    { name, holder, note, ms }: Lease,
  ): Promise<string | undefined> => {
    writes += 1;
    if (writes % WRITES_PER_DROP === 1) await rows.run(LEASES.dropLeases, tenant);
    if ((await rows.run(LEASES.takeLease, tenant, name, holder, note, ms)) > 0) return undefined;
    const held = await rows.get<StandingLease>(LEASES.findLease, tenant, name);
    return held?.note ?? '';
  };
  const find = async (
    rows: Rows,
    { keyId, idempotencyKey }: AnswerKey,
  ): Promise<KeptAnswer | undefined> => {
    const values = [tenant, keyId, idempotencyKey, Date.now() - ANSWER_AGE_MAX_MS];
    const row = await rows.get<AnswerRow>(ANSWERS.find, ...values);
    return row === undefined
      ? undefined
      : { requestHash: row.request_hash, body: row.body, at: row.at };
  };
  return {
    takeLease: async (lease) => (await open()).note((rows) => take(rows, lease)),
    renewLease: async ({ name, holder, ms }) => {
      const values = [tenant, name, holder, ms];
      return (await (await open()).note((rows) => rows.run(LEASES.renewLease, ...values))) > 0;
    },
    endLease: async ({ name, holder }) => {
      await (await open()).note((rows) => rows.run(LEASES.endLease, tenant, name, holder));
    },
    listLeases: async (start) =>
      (await open()).read((rows) => rows.all<StandingLease>(LEASES.listLeases, tenant, start)),
    findAnswer: async (asked, signal) => (await open()).read((rows) => find(rows, asked), signal),
    beginAnswer: async (asked, { holder, requestHash, ms }) => {
      const name = leaseName(asked);
      return (await open()).note(async (rows): Promise<AnswerState> => {
        // Take the lease first, so that a holder who finds no answer is the only one working on it.
        const hash = await take(rows, { name, holder, note: requestHash, ms });
        if (hash !== undefined) return { state: 'running', requestHash: hash };
        const answer = await find(rows, asked);
        if (answer === undefined) return { state: 'begun' };
        await rows.run(LEASES.endLease, tenant, name, holder);
        return { state: 'kept', answer };
      });
    },
    leaveAnswer: async (asked, holder) => {
      const values = [tenant, leaseName(asked), holder];
      await (await open()).note((rows) => rows.run(LEASES.endLease, ...values));
    },
    /** A power cut may lose it; then the same call finds the stored records as duplicates. */
    keepAnswer: async (asked, { requestHash, body, at }) => {
      const { keyId, idempotencyKey } = asked;
      writes += 1;
      const drops = writes % WRITES_PER_DROP === 1;
      await (
        await open()
      ).note(async (rows) => {
        await rows.run(ANSWERS.keep, tenant, keyId, idempotencyKey, requestHash, body, at);
        await rows.run(LEASES.endAnswer, tenant, leaseName(asked));
        if (drops) await rows.run(ANSWERS.drop, tenant, at - ANSWER_AGE_MAX_MS);
      });
    },
  } satisfies Partial<TenantStore>;
}

interface AnswerRow {
  readonly request_hash: string;
  readonly body: string;
  readonly at: number;
}

function leaseName({ keyId, idempotencyKey }: AnswerKey): string {
  return `answer:${keyId}:${idempotencyKey}`;
}
