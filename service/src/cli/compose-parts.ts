import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock } from '../../../src/cli/compose-common.ts';
import type { Environment } from '../../../src/core/settings/config-values.ts';
import { isOwnMachine } from '../../../src/core/settings/own-machine.ts';
import { VERSION } from '../../../src/core/version.ts';
import {
  ReceiptJournal,
  type Recovered,
  recoverReceipts,
} from '../adapters/journals/receipt-journal.ts';
import { ProcessLimiter } from '../adapters/limiter/process-limiter.ts';
import { readPepper } from '../adapters/service-store/service-files.ts';
import { serviceMasterKeys } from '../adapters/vault/master-keys.ts';
import type { Limiter } from '../ports/limiter.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { type Signer, withVault } from '../server/signer.ts';
import { openServingStore, redisUrlOf, type ServicePlace } from './compose-store.ts';

export { waitingReceipts } from '../adapters/journals/receipt-journal.ts';

export interface ReceiptNeeds {
  readonly folder: string;
  readonly store: ServiceStore;
  readonly signer: Signer;
  readonly report: (line: string) => void;
}

/**
 * Stores the receipts that earlier processes left, and opens a journal for this process. The caller holds the folder's
 * lock.
 */
export async function openReceipts(needs: ReceiptNeeds): Promise<ReceiptJournal> {
  const options = optionsOf(needs);
  try {
    await recoverReceipts(options);
  } catch {
    needs.report(
      'Receipts of an earlier run are waiting. To store them, run: svc-service receipts recover',
    );
  }
  return new ReceiptJournal(options);
}

/** Stores the receipts that earlier processes left. Throws MemoryError if a service uses the folder. */
export async function recoverIn(folder: string, environment: Environment): Promise<Recovered> {
  const pepper = await readPepper(folder);
  const store = await openServingStore({ folder, environment });
  try {
    await store.health();
    const masterKeys = serviceMasterKeys(folder, environment);
    const needs = { store, pepper, masterKeys, clock: systemClock, randomBytes };
    const { signer } = withVault(needs);
    return await recoverReceipts(optionsOf({ folder, store, signer, report: () => undefined }));
  } finally {
    await store.close();
  }
}

function optionsOf({ folder, store, signer, report }: ReceiptNeeds) {
  return {
    folder,
    store,
    report,
    node: `node_${randomBytes(12).toString('hex')}`,
    version: VERSION,
    sign: (canonical: readonly string[]) => signer.signTexts(canonical),
    now: () => systemClock.now(),
  };
}

const REDIS_PORT = 6379;

interface OpenedLimiter {
  readonly limiter: Limiter;
  /** The place where limits are counted, without a password: see `placeOf`. Undefined means in this process. */
  readonly place: string | undefined;
  close(): Promise<void>;
}

/** Opens the limiter: in Redis if an address is given, else in this process. */
export async function openLimiter(
  place: ServicePlace,
  report: (line: string) => void,
): Promise<OpenedLimiter> {
  const url = await redisUrlOf(place);
  if (url === undefined) {
    const limiter = new ProcessLimiter(systemClock);
    return { limiter, place: undefined, close: async () => undefined };
  }
  // Load the client of Redis only if it is used, because its code has 190 kB.
  const { RedisLimiter } = await import('../adapters/limiter/redis-limiter.ts');
  const limiter = new RedisLimiter({ url, report });
  return { limiter, place: placeOf(url), close: () => limiter.close() };
}

/**
 * Names a Redis server and its database. The name of a server at a loopback address contains the machine's name,
 * because a loopback address means another server on each machine.
 */
function placeOf(text: string): string {
  const { hostname: host, port, pathname } = new URL(text);
  const where = isOwnMachine(host.replace(/^\[|\]$/g, '')) ? `${host} of ${hostname()}` : host;
  const database = pathname === '/' || pathname === '' ? '/0' : pathname;
  return `Redis at ${where}:${port === '' ? REDIS_PORT : port}${database}`;
}

/** Returns where limits are counted, and whether the limiter answers. */
export async function lookAtLimiter(place: ServicePlace) {
  const limits = await openLimiter(place, () => undefined);
  const isThere = await limits.limiter.ping().then(
    () => true,
    () => false,
  );
  await limits.close();
  return { where: limits.place === undefined ? 'its own process' : 'Redis', isThere };
}
