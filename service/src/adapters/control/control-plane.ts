import { firstReceiptIdAt } from '../../core/ids.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import type { KeyPage, Page, Lease, StandingLease } from '../../ports/control-store.ts';
import type { Rows, SqlValue, Transactions } from '../../ports/rows.ts';
import type {
  AnswerKey,
  AnswerState,
  KeptAnswer,
  KeptDays,
  ServiceStore,
  TenantStore,
} from '../../ports/service-store.ts';
import { applyWithEvent, findTenant, getSettings, listMasterKeys } from './changes.ts';
import {
  adminOf,
  callerOf,
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
  tenantOf,
} from './facts.ts';
import { ledgerCalls } from './ledger.ts';
import { closeHeads, listReceipts, listUsage, storeReceipts } from './receipts.ts';
import { ANSWERS, CONTROL, leaseStatements, LEDGER, RECEIPTS } from './statements.ts';

/**
 * The control plane of a service, which is everything but its memory: tenants, plans, admins, keys, providers,
 * settings, the vault, audit events, leases, stored answers, receipts and the ledger. SQLite and PostgreSQL share this
 * code. Each provides transactions and an SQL expression for its clock.
 */

export interface ControlEngine {
  /** Resolves once the tables exist in their current form. */
  readonly open: () => Promise<Transactions>;
  /** SQL expression for milliseconds since 1970 by the engine's clock. */
  readonly now: string;
}

/** Maximum number of changes that a node reads at once, once a second. If there are more, it drops all cached facts. */
const CHANGES_READ_MAX = 1000;
/** A page for all keys of a tenant: even a tenant whose plan sets no limit usually has only some hundred keys. */
const EVERY: Page = { limit: 10_000, after: undefined };
const DAY_MS = 24 * 3600 * 1000;
const ANSWER_AGE_MAX_MS = DAY_MS;
/** Age from which ledger entries are deleted. No provider caches a conversation for so long. */
const LEDGER_AGE_MAX_MS = 90 * DAY_MS;

export function serviceControl({ open }: ControlEngine) {
  const { list, noteRow } = statementsOn(open);
  return {
    findCaller: async (keyId, signal) => {
      // If two tenants have a key with the same id, neither key is accepted.
      const [caller, other] = await list(callerOf, [CONTROL.findCaller, keyId], signal);
      return other === undefined ? caller : undefined;
    },
    listTenants: ({ limit, after = '' }) => list(tenantOf, [CONTROL.listTenants, after, limit]),
    findTenant: async (tenantId) => (await open()).read((rows) => findTenant(rows, tenantId)),
    listPlans: ({ limit, after = '' }) => list(planOf, [CONTROL.listPlans, after, limit]),
    findAdmin: async (adminId, signal) => {
      const [admin, other] = await list(adminOf, [CONTROL.findAdmin, adminId], signal);
      return other === undefined ? admin : undefined;
    },
    listAdmins: (tenant, { limit, after = '' }) =>
      list(adminOf, [CONTROL.listAdmins, tenant ?? null, after, limit]),
    noteAdminUse: (adminId, at) => noteRow([CONTROL.noteAdminUse, adminId, at]),
    listMasterKeys: async () => (await open()).read(listMasterKeys),
    listSecrets: ({ limit, notUnder = null, after }) => {
      const behind = [after?.tenant ?? '', after?.secretId ?? ''];
      return list(secretOf, [CONTROL.listSecrets, notUnder, ...behind, limit]);
    },
    listSigningKeys: () => list(signingKeyOf, [CONTROL.signingKeys]),
    changesSince: async (after, signal) => {
      const values = [after ?? Number.MAX_SAFE_INTEGER, CHANGES_READ_MAX];
      const asked = { statement: CONTROL.listChanges, values };
      return changeListOf(after, await (await open()).look<ChangeRow>(asked, signal));
    },
    apply: async (change, note) =>
      (await open()).writeOnce((rows) => applyWithEvent(rows, SERVICE_TENANT, { change, note })),
    storeReceipts: async (receipts) => {
      if (receipts.length === 0) return;
      const transactions = await open();
      await transactions.write((rows) => storeReceipts(rows, receipts));
    },
    openHeads: async ({ node, limit }) => {
      const heads = await list(headOf, [RECEIPTS.openHeads, node, limit]);
      return heads.map(({ tenant, lastSeq }) => ({ tenant, node, lastSeq }));
    },
    closeHeads: async (heads) => {
      await (await open()).write((rows) => closeHeads(rows, heads));
    },
  } satisfies Partial<ServiceStore>;
}

export function tenantControl(engine: ControlEngine, tenant: string) {
  const { open } = engine;
  const { list, find, noteRow } = statementsOn(open);
  return {
    ...answerCalls(engine, tenant),
    ...ledgerCalls(engine.open, tenant),
    listKeys: ({ limit, after = '', isLive = false }: KeyPage = EVERY) =>
      list(keyOf, [CONTROL.listKeys, tenant, after, limit, isLive ? 1 : 0]),
    getKey: (keyId) => find(keyOf, [CONTROL.getKey, tenant, keyId]),
    noteKeyUse: (keyId, at) => noteRow([CONTROL.noteKeyUse, tenant, keyId, at]),
    listAudit: ({ limit, after }) => {
      const before = Number(after ?? Number.MAX_SAFE_INTEGER);
      return list(eventOf, [CONTROL.listAudit, tenant, before, limit]);
    },
    listProviders: () => list(providerOf, [CONTROL.listProviders, tenant]),
    getSettings: async () => (await open()).read((rows) => getSettings(rows, tenant)),
    findSecret: (secretId) => find(secretOf, [CONTROL.findSecret, tenant, secretId]),
    apply: async (change, note) =>
      (await open()).writeOnce((rows) => applyWithEvent(rows, tenant, { change, note })),
    findReceipt: (receiptId, signal) => find(receiptOf, [RECEIPTS.find, tenant, receiptId], signal),
    listReceipts: async (filter, signal) =>
      (await open()).read((rows) => listReceipts(rows, tenant, filter), signal),
    listHeads: ({ limit, after = '' }) => list(headOf, [RECEIPTS.listHeads, tenant, after, limit]),
    listUsage: async (filter) => (await open()).read((rows) => listUsage(rows, tenant, filter)),
    tokensSpent: async ({ from, to, keyId = null }, signal) => {
      const asked = [RECEIPTS.tokensSpent, tenant, from, to, keyId] as const;
      return (await find(({ spent }) => Number(spent), asked, signal)) ?? 0;
    },
    dropReceipts: async ({ before, limit }) =>
      (await open()).job((rows) =>
        rows.run(RECEIPTS.drop, tenant, firstReceiptIdAt(before), limit),
      ),
  } satisfies Partial<TenantStore>;
}

/**
 * Deletes expired leases, old answers and old ledger entries of all tenants, and audit events before `auditFrom`, if it
 * is given. With `isUnsure` it deletes nothing.
 */
export async function dropStale(
  { open, now }: ControlEngine,
  kept: Pick<KeptDays, 'now' | 'isUnsure' | 'auditFrom'>,
): Promise<void> {
  if (kept.isUnsure === true) return;
  const transactions = await open();
  await transactions.job(async (rows) => {
    await rows.run(leaseStatements(now).dropLeases);
    await rows.run(ANSWERS.drop, kept.now - ANSWER_AGE_MAX_MS);
    await rows.run(LEDGER.drop, kept.now - LEDGER_AGE_MAX_MS);
    if (kept.auditFrom !== undefined) await rows.run(CONTROL.dropAudit, kept.auditFrom);
  });
}

type Statement = readonly [statement: string, ...values: SqlValue[]];

/**
 * Makes functions that run one statement each. `list` converts all rows of a query, `find` the first row. `noteRow`
 * changes a row, and a power cut may lose the change.
 */
function statementsOn(open: ControlEngine['open']) {
  const list = async <Fact>(of: (row: Row) => Fact, asked: Statement, signal?: AbortSignal) => {
    const [statement, ...values] = asked;
    return (await (await open()).look<Row>({ statement, values }, signal)).map(of);
  };
  const find = async <Fact>(of: (row: Row) => Fact, asked: Statement, signal?: AbortSignal) =>
    (await list(of, asked, signal))[0];
  const noteRow = async (asked: Statement): Promise<void> => {
    await (await open()).note((rows) => rows.run(...asked));
  };
  return { list, find, noteRow };
}

/** Makes the methods for leases, and for the stored answers of calls with an Idempotency-Key. */
function answerCalls({ open, now }: ControlEngine, tenant: string) {
  const LEASES = leaseStatements(now);
  const { noteRow } = statementsOn(open);

  /** Takes a lease and returns undefined, or returns the note of its present holder. */
  const take = async (
    rows: Rows,
    { name, holder, note, ms }: Lease,
  ): Promise<string | undefined> => {
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
    endLease: ({ name, holder }) => noteRow([LEASES.endLease, tenant, name, holder]),
    listLeases: async (start) =>
      (await open()).read((rows) => rows.all<StandingLease>(LEASES.listLeases, tenant, start)),
    findAnswer: async (asked, signal) => (await open()).read((rows) => find(rows, asked), signal),
    beginAnswer: async (asked, { holder, requestHash, ms }) => {
      const name = leaseName(asked);
      return (await open()).note(async (rows): Promise<AnswerState> => {
        // Take the lease before looking for an answer, so that only one of several equal calls does the work.
        const hash = await take(rows, { name, holder, note: requestHash, ms });
        if (hash !== undefined) return { state: 'running', requestHash: hash };
        const answer = await find(rows, asked);
        if (answer === undefined) return { state: 'begun' };
        await rows.run(LEASES.endLease, tenant, name, holder);
        return { state: 'kept', answer };
      });
    },
    leaveAnswer: (asked, holder) => noteRow([LEASES.endLease, tenant, leaseName(asked), holder]),
    /**
     * Stores an answer. If a power cut loses it, a repeated call runs again: a capture finds its records to be
     * duplicates, and a purge erases what its scope still matches.
     */
    keepAnswer: async (asked, { requestHash, body, at }) => {
      const { keyId, idempotencyKey } = asked;
      const transactions = await open();
      await transactions.note(async (rows) => {
        await rows.run(ANSWERS.keep, tenant, keyId, idempotencyKey, requestHash, body, at);
        await rows.run(LEASES.endAnswer, tenant, leaseName(asked));
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
