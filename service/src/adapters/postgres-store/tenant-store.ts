import type { AuditEvent } from '../../core/audit.ts';
import type { KeyPage, Page } from '../../ports/control-store.ts';
import type {
  AnswerKey,
  AnswerState,
  KeptAnswer,
  ServiceAnswer,
  TenantStore,
} from '../../ports/service-store.ts';
import { eventOf } from '../service-store/audit-table.ts';
import { keyOf } from '../service-store/keys.ts';
import { answerLeaseName } from '../service-store/leases.ts';
import { providerOf } from '../service-store/providers.ts';
import { secretOf, type SecretRow } from '../service-store/vault-table.ts';
import { capture } from './captures.ts';
import type { Rows } from './rows.ts';
import { changeTenant, getSettings } from './control.ts';
import { Items } from './items.ts';
import { type KeyRow, keyRowOf } from './key-rows.ts';
import { leaseCalls, takeLease } from './leases.ts';
import { ledgerCalls } from './ledger.ts';
import type { TenantPlace } from './open-database.ts';
import { Purges } from './purges.ts';
import { tenantReceipts } from './receipts.ts';
import { Records } from './records.ts';
import { type HeardSignal, TenantSignals } from './signals.ts';
import { bareState, Spaces } from './spaces.ts';
import { keepCounts, type WordCount } from './word-counts.ts';
import { CONTROL } from './statements/control.ts';
import { LEASES } from './statements/leases.ts';
import { MEMORY } from './statements/memory.ts';

/** One tenant's part of the store: every statement that it runs names the tenant. */

/** A tenant without a plan's limit has some hundred keys. */
const EVERY: Page = { limit: 10_000, after: undefined };
const ANSWER_AGE_MAX_MS = 24 * 3600 * 1000;
/** Dropping old answers on every write would cost more than the write. */
const WRITES_PER_DROP = 64;

export function postgresTenantStore(place: TenantPlace): TenantStore {
  return {
    ...controlCalls(place),
    ...memoryCalls(place),
    ...listCalls(place),
    ...purgeCalls(place),
    ...answerCalls(place),
    ...tenantReceipts(place),
    ...ledgerCalls(place),
    ...leaseCalls(place),
  };
}

function memoryCalls({ tenant, database, spaceBytesMax }: TenantPlace) {
  const signals = new TenantSignals(tenant);
  return {
    async spaceState(space, signal) {
      const { connections } = await database();
      return connections.memory.read(
        async (rows) => bareState(await new Spaces(rows, tenant).state(space)),
        signal,
      );
    },
    async capture(batch, signal) {
      const { connections, keys, pending } = await database();
      const place = { tenant, keys: keys.of(tenant), bytesMax: spaceBytesMax };
      const { outcome, words } = await connections.memory.write(
        (rows) => capture(rows, place, batch),
        signal,
      );
      pending.note(connections, tenant, words);
      return outcome;
    },
    async recall(question, signal) {
      const { connections, keys } = await database();
      await signals.written();
      const heard: HeardSignal[] = [];
      const counted: WordCount[] = [];
      const answer = await connections.memory.read(async (rows): Promise<ServiceAnswer> => {
        heard.length = 0;
        counted.length = 0;
        const spaces = new Spaces(rows, tenant);
        const { text, deadlineAt } = question;
        const items = new Items(rows, { tenant, spaces, keys: keys.of(tenant) });
        const started =
          text === undefined ? undefined : items.begin({ ...question, text }, counted);
        const stating = spaces.state(question.space);
        const proving = new Records(rows, tenant, spaces).prove(question, stating);
        const [state, proven] = await Promise.all([stating, proving, started?.ready]);
        // The search is bounded, and takes some 20 ms: what cannot begin in time is left out.
        const isLate = started !== undefined && Date.now() > deadlineAt;
        const found =
          started === undefined || isLate
            ? { items: [], isTruncated: false }
            : await started.recall(signals.in(rows, heard));
        const isPartial = proven.isPartial || isLate;
        return { state: bareState(state), coverage: proven.coverage, ...found, isPartial };
      }, signal);
      signals.write(connections, heard);
      keepCounts(connections, tenant, counted);
      return answer;
    },
    async retrieve(question, signal) {
      const { connections } = await database();
      return connections.memory.read(
        (rows) => new Records(rows, tenant, new Spaces(rows, tenant)).retrieve(question),
        signal,
      );
    },
    async lookUp(asked, signal) {
      const { connections } = await database();
      return connections.memory.read(
        (rows) => new Records(rows, tenant, new Spaces(rows, tenant)).lookUp(asked),
        signal,
      );
    },
  } satisfies Partial<TenantStore>;
}

function listCalls({ tenant, database }: TenantPlace) {
  const inItems = async <T>(run: (items: Items) => Promise<T>, signal: AbortSignal): Promise<T> => {
    const { connections, keys } = await database();
    return connections.memory.read((rows) => {
      const spaces = new Spaces(rows, tenant);
      return run(new Items(rows, { tenant, spaces, keys: keys.of(tenant) }));
    }, signal);
  };
  return {
    listItems: (filter, signal) => inItems((items) => items.list(filter), signal),
    findItem: (asked, signal) => inItems((items) => items.digestOf(asked), signal),
    listSources: (filter, signal) => inItems((items) => items.sources(filter), signal),
  } satisfies Partial<TenantStore>;
}

function purgeCalls({ tenant, database }: TenantPlace) {
  return {
    async beginPurge(order) {
      const { connections } = await database();
      return connections.memory.write((rows) => new Purges(rows, tenant).begin(order));
    },
    async continuePurge(purgeId, now) {
      const { connections } = await database();
      return connections.memory.job((rows) => new Purges(rows, tenant).continue(purgeId, now));
    },
    async findPurge(purgeId, signal) {
      const { connections } = await database();
      return connections.memory.read((rows) => new Purges(rows, tenant).find(purgeId), signal);
    },
    async listPurges(filter, signal) {
      const { connections } = await database();
      return connections.memory.read((rows) => new Purges(rows, tenant).list(filter), signal);
    },
  } satisfies Partial<TenantStore>;
}

async function findAnswer(
  rows: Rows,
  tenant: string,
  { keyId, idempotencyKey }: AnswerKey,
): Promise<KeptAnswer | undefined> {
  const values = [tenant, keyId, idempotencyKey, Date.now() - ANSWER_AGE_MAX_MS];
  const row = await rows.get<AnswerRow>(MEMORY.findAnswer, ...values);
  if (row === undefined) return undefined;
  return { requestHash: row.request_hash, body: row.body, at: row.at };
}

interface AnswerRow {
  readonly request_hash: string;
  readonly body: string;
  readonly at: number;
}

function answerCalls({ tenant, database }: TenantPlace) {
  let writes = 0;
  return {
    async findAnswer(asked, signal) {
      const { connections } = await database();
      return connections.read((rows) => findAnswer(rows, tenant, asked), signal);
    },
    async beginAnswer(asked, { holder, requestHash, ms }): Promise<AnswerState> {
      const { connections } = await database();
      const name = answerLeaseName(asked);
      return connections.write(async (rows): Promise<AnswerState> => {
        // Takes the lease first: a holder that then finds no answer is the only one working on it.
        const hash = await takeLease(rows, tenant, { name, holder, note: requestHash, ms });
        if (hash !== undefined) return { state: 'running', requestHash: hash };
        const answer = await findAnswer(rows, tenant, asked);
        if (answer === undefined) return { state: 'begun' };
        await rows.run(LEASES.endLease, tenant, name, holder);
        return { state: 'kept', answer };
      });
    },
    async leaveAnswer(asked, holder) {
      const { connections } = await database();
      const values = [tenant, answerLeaseName(asked), holder];
      await connections.write((rows) => rows.run(LEASES.endLease, ...values));
    },
    async keepAnswer(asked, { requestHash, body, at }) {
      const { connections } = await database();
      const { keyId, idempotencyKey } = asked;
      writes += 1;
      const drops = writes % WRITES_PER_DROP === 1;
      await connections.write(async (rows) => {
        const values = [keyId, idempotencyKey, requestHash, body, at];
        await rows.run(MEMORY.keepAnswer, tenant, ...values);
        await rows.run(LEASES.endAnswer, tenant, answerLeaseName(asked));
        if (drops) await rows.run(MEMORY.dropAnswers, tenant, at - ANSWER_AGE_MAX_MS);
      });
    },
  } satisfies Partial<TenantStore>;
}

function controlCalls({ tenant, database }: TenantPlace) {
  return {
    async listKeys({ limit, after = '', isLive = false }: KeyPage = EVERY) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const found = await rows.all<KeyRow>(
          CONTROL.listKeys,
          tenant,
          after,
          limit,
          isLive ? 1 : 0,
        );
        return found.map((row) => keyOf(keyRowOf(row)));
      });
    },
    async getKey(keyId) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const row = await rows.get<KeyRow>(CONTROL.getKey, tenant, keyId);
        return row === undefined ? undefined : keyOf(keyRowOf(row));
      });
    },
    async noteKeyUse(keyId, at) {
      const { connections } = await database();
      await connections.write((rows) => rows.run(CONTROL.noteKeyUse, tenant, keyId, at));
    },
    async listAudit({ limit, after }): Promise<AuditEvent[]> {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const before = Number(after ?? Number.MAX_SAFE_INTEGER);
        const found = await rows.all<{ event: string }>(CONTROL.listAudit, tenant, before, limit);
        return found.map(({ event }) => eventOf(event));
      });
    },
    async listProviders() {
      const { connections } = await database();
      return connections.read(async (rows) =>
        (await rows.all<{ facts: string }>(CONTROL.listProviders, tenant)).map(({ facts }) =>
          providerOf(facts),
        ),
      );
    },
    async getSettings() {
      return (await database()).connections.read((rows) => getSettings(rows, tenant));
    },
    async findSecret(secretId) {
      const { connections } = await database();
      return connections.read(async (rows) => {
        const row = await rows.get<SecretRow>(CONTROL.findSecret, tenant, secretId);
        return row === undefined ? undefined : secretOf({ ...row, tenant });
      });
    },
    async apply(change, note) {
      const { connections } = await database();
      return connections.writeOnce((rows) => changeTenant(rows, tenant, { change, note }));
    },
  } satisfies Partial<TenantStore>;
}
