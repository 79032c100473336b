import { randomBytes } from 'node:crypto';
import { ServedCatalog } from '../../../src/adapters/catalog/served-catalog.ts';
import { createUpstream } from '../../../src/adapters/network/undici-upstream.ts';
import { CliError } from '../../../src/cli/cli-error.ts';
import { newRequestId, reportTo, systemClock } from '../../../src/cli/compose-common.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import type { Environment } from '../../../src/core/settings/config-values.ts';
import { VERSION } from '../../../src/core/version.ts';
import type { ReceiptJournal } from '../adapters/journals/receipt-journal.ts';
import { serviceMasterKeys } from '../adapters/vault/master-keys.ts';
import { RECALL_MS } from '../core/account-settings.ts';
import { DRAIN_MS, egressOf, publicUrlOf, type ServiceSettings } from '../core/settings.ts';
import type { ServiceStore, ServiceStoreHealth } from '../ports/service-store.ts';
import { ChangeWatch } from '../server/change-watch.ts';
import { Metrics, startMetrics } from '../server/metrics.ts';
import { type JoinedNode, joinNodes, limiterOf, type NodeFacts } from '../server/leases.ts';
import type { CallRow, ServiceLimits } from '../server/parts.ts';
import { startJobs } from '../server/jobs.ts';
import { MemoryService, type TlsMaterial } from '../server/server.ts';
import type { Vault } from '../server/vault.ts';
import { withVault } from '../server/signer.ts';
import { openLimiter, openReceipts } from './compose-parts.ts';
import { openModels } from './compose-models.ts';
import { openServingStore } from './compose-store.ts';

/** Starts a service: opens its store, its limiter and its other parts, and then its listener. */

export interface StartServiceOptions {
  readonly settings: ServiceSettings;
  readonly folder: string;
  readonly pepper: Uint8Array;
  readonly tls: TlsMaterial | undefined;
  readonly environment: Environment;
  readonly terminal: Terminal;
  readonly onCall: (row: CallRow) => void;
}

export interface RunningService {
  readonly host: string;
  /** The port. If the settings say 0, the system has chosen it. */
  readonly port: number;
  /** The port of the metrics; undefined if they are off. */
  readonly metricsPort: number | undefined;
  /** The counts of the store at the start. */
  readonly held: ServiceStoreHealth;
  renew(tls: TlsMaterial): void;
  stop(): Promise<void>;
}

/** Starts the service. Throws MemoryError, CliError or FileError, or Node's own error if it cannot listen. */
export async function startService(options: StartServiceOptions): Promise<RunningService> {
  const { settings, folder, pepper, tls, terminal, environment, onCall } = options;
  const { spaceBytesMax, drainMs = DRAIN_MS, recallMs = RECALL_MS } = settings;
  const masterKeys = serviceMasterKeys(folder, environment);
  const report = (line: string): void => terminal.warn(line);
  const place = { folder, environment, settings };
  // Closes the opened parts. Each part may use the parts opened before it, so the last one is closed first.
  const closing: (() => Promise<unknown>)[] = [];
  const closeAll = async (): Promise<void> => {
    // oxlint-disable-next-line no-await-in-loop
    for (const close of closing.toReversed()) await close();
  };
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= closeAll());
  try {
    const limits = await openLimiter(place, report);
    closing.push(() => limits.close());
    const store = await openServingStore(place, { spaceBytesMax, report });
    closing.push(() => store.close());
    const held = await store.health();
    const sealing = withVault({ store, pepper, masterKeys, clock: systemClock, randomBytes });
    await refuseWrongMasterKey(sealing.vault);
    const { requestsPerMinute = null } = settings;
    const node = await joinAsNode({ store, limiterPlace: limits.place, requestsPerMinute });
    closing.push(() => node.leave());
    const receipts = await openReceipts({ folder, store, signer: sealing.signer, report });
    closing.push(() => receipts.close());
    const metrics = metricsOf(receipts);
    const changes = new ChangeWatch({ store, clock: systemClock });
    const opened = openModels({
      folder,
      store,
      changes,
      egress: egressOf(settings),
      recallMs,
      report,
    });
    closing.push(() => opened.close());
    const catalog = openCatalog(place);
    closing.push(() => catalog.close());
    const jobs = await startBeside(store, changes, metrics, settings);
    closing.push(() => jobs.stop());
    const service = new MemoryService({
      store,
      changes,
      pepper,
      masterKeys,
      listCatalog: () => catalog.providers(),
      limiter: limiterOf(node, limits.limiter),
      receipts,
      models: opened.models,
      clock: systemClock,
      newRequestId,
      randomBytes,
      report: reportTo(terminal),
      onCall: (row) => {
        metrics.count(row);
        onCall(row);
      },
      version: VERSION,
      settings: limitsOf(settings),
      host: settings.host,
      port: settings.port,
      tls,
    });
    const address = await service.listen();
    closing.push(() => service.stop(drainMs));
    const { metricsPort } = jobs;
    return { ...address, metricsPort, held, renew: (material) => service.renew(material), stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

function openCatalog(place: { readonly folder: string; readonly environment: Environment }) {
  return new ServedCatalog({ ...place, now: () => systemClock.now(), open: createUpstream });
}

function limitsOf(settings: ServiceSettings): ServiceLimits {
  return {
    requestsPerMinute: settings.requestsPerMinute ?? null,
    isBehindProxy: settings.behindProxy === true,
    egress: egressOf(settings),
    publicUrl: publicUrlOf(settings),
  };
}

/** Throws CliError for a wrong master key. Without this check the first request that needs a secret would fail. */
async function refuseWrongMasterKey(vault: Vault): Promise<void> {
  const problem = await vault.problem();
  if (problem === undefined) return;
  const hint = 'Restore the key to the place that "vault" in service.json names, and start again.';
  throw new CliError(problem, hint);
}

/** Takes the lease of this node. Throws CliError if there are limits and another node counts them in another place. */
async function joinAsNode(facts: Omit<NodeFacts, 'randomBytes'>): Promise<JoinedNode> {
  const node = await joinNodes({ ...facts, randomBytes });
  if (node.otherPlace === undefined) return node;
  await node.leave();
  throw new CliError(
    `Another node of this service counts limits in ${node.otherPlace}, this one in ${facts.limiterPlace ?? 'its own process'}.`,
    'Set SVC_REDIS_URL to the same address on all nodes. A loopback address means a different Redis on each machine.',
  );
}

export function metricsOf(receipts: ReceiptJournal): Metrics {
  return new Metrics([
    {
      name: 'svc_receipts_waiting',
      help: 'Receipts that are open or not stored yet.',
      read: () => receipts.waiting,
    },
    {
      name: 'svc_receipts_journal_ready',
      help: '1 while a receipt can be opened.',
      read: () => (receipts.problem() === undefined ? 1 : 0),
    },
    {
      name: 'svc_resident_memory_bytes',
      help: 'Memory of the process.',
      read: () => process.memoryUsage.rss(),
    },
  ]);
}

/** Starts metrics, jobs and the watch of changes. Rejects with Node's own error if the metrics cannot listen. */
async function startBeside(
  store: ServiceStore,
  changes: ChangeWatch,
  metrics: Metrics,
  settings: ServiceSettings,
) {
  const server =
    settings.metrics === undefined ? undefined : await startMetrics(metrics, settings.metrics);
  const { auditDays } = settings;
  const stopJobs = startJobs({ store, clock: systemClock, randomBytes, auditDays });
  changes.start();
  return {
    metricsPort: server?.port,
    stop: async (): Promise<void> => {
      await Promise.all([changes.stop(), server?.stop(), stopJobs()]);
    },
  };
}
