import { randomBytes } from 'node:crypto';
import type { ReceiptJournal } from '../adapters/journals/receipt-journal.ts';
import type { ServiceSettings } from '../core/settings.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import type { ChangeWatch } from '../server/change-watch.ts';
import { Metrics } from '../server/metrics.ts';
import { startMetrics } from '../server/metrics-server.ts';
import { PurgeJob } from '../server/purge-job.ts';
import { Retention } from '../server/retention.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';

/** The composition root of what runs beside the calls of a service: metrics, and what a plan lets expire. */

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

export interface JobParts {
  readonly store: ServiceStore;
  readonly changes: ChangeWatch;
  readonly metrics: Metrics;
  readonly settings: Pick<ServiceSettings, 'metrics' | 'auditDays'>;
}

/** Throws the server's own error where the address of the metrics cannot be had. */
export async function startJobs({ store, changes, metrics, settings }: JobParts) {
  const server =
    settings.metrics === undefined ? undefined : await startMetrics(metrics, settings.metrics);
  const parts = { store, clock: systemClock, randomBytes };
  const { auditDays } = settings;
  const jobs = [new Retention({ ...parts, auditDays }), new PurgeJob(parts)];
  for (const job of jobs) job.start();
  changes.start();
  return {
    /** Undefined where no metrics are asked for. */
    metricsPort: server?.port,
    stop: async (): Promise<void> => {
      await Promise.all([changes.stop(), server?.stop(), ...jobs.map((job) => job.stop())]);
    },
  };
}
