import type { MemoryDesk } from '../../ports/memory-desk.ts';
import type { LocalStore } from '../../ports/local-store.ts';
import type { Memory } from '../../ports/memory.ts';
import type { ProvenanceStore } from '../../ports/provenance.ts';
import { JournalLedger } from '../journals/ledger.ts';
import { JournalOutbox, OUTBOX_NAME } from '../journals/outbox.ts';
import { BatchedRequestLog } from '../journals/request-log.ts';
import { EmbeddedMemory } from './embedded-memory.ts';
import { OutputMirror } from './output-mirror.ts';
import { databaseFile } from '../files/database-file.ts';
import { KeyFilling } from './key-filling.ts';
import { QuietTime } from './quiet-time.ts';
import { makeSharedState, StateReader } from './shared-state.ts';
import { SteadyClient } from './steady-client.ts';
import { waitingRecords } from './waiting-records.ts';

/**
 * Everything svc remembers on this machine, in one folder: memories, ledger, outbox, request log.
 * Several processes may have it open at once.
 */

/** Captures that take longer at shutdown stay in the outbox's journal. */
const CLOSE_FLUSH_MS = 2000;

/** The first takes 30 ms, a fourth would be no quicker than the third. */
const WARMING_TIMES = 3;

export interface EmbeddedStoreOptions {
  /** Made with mode 0700 if need be. */
  readonly folder: string;
  /** One line for people; never a text of a record. */
  report(line: string): void;
}

export interface EmbeddedStore extends LocalStore {
  readonly memory: EmbeddedMemory;
  readonly ledger: JournalLedger;
  readonly outbox: JournalOutbox;
  readonly requestLog: BatchedRequestLog;
  readonly provenance: ProvenanceStore;
  readonly desk: MemoryDesk;
  /** To be told of the requests in hand: writes wait for the time between them. */
  readonly quiet: Pick<QuietTime, 'busy'>;
  /**
   * Makes the first recall as quick as later ones; calls of requests run between its parts. Never
   * rejects: a failing memory reports it to the calls that need it.
   */
  warm(): Promise<void>;
}

/** Returns at once: the file is opened in a worker, and calls wait until it is. */
export function openEmbeddedStore(options: EmbeddedStoreOptions): EmbeddedStore {
  const { folder } = options;
  const report = options.report.bind(options);
  const shared = makeSharedState();
  const state = new StateReader(shared, databaseFile(folder));
  const client = new SteadyClient({
    folder,
    report,
    extra: shared,
    onReplaced: () => {
      outbox.forgetSettled();
      mirror.forgetLooked();
    },
  });
  const mirror = new OutputMirror({
    folder,
    report,
    textOf: async (key) => (await client.call('retrieve', key))?.text,
    heldOf: (refs) => client.call('heldOutputs', refs),
  });
  const memory = new EmbeddedMemory({
    client,
    mirror,
    state,
    waiting: async (filter) => {
      // The captures of a dead process are stored first: they must not come back after the
      // forgetting.
      await outbox.flush(CLOSE_FLUSH_MS);
      return waitingRecords({ folder, name: OUTBOX_NAME }, filter);
    },
  });
  const quiet = new QuietTime();
  const target: Pick<Memory, 'capture'> = {
    capture: (records, signal) => quiet.run(() => memory.capture(records, signal)),
  };
  const outbox = new JournalOutbox({ folder, target, report });
  const keyFilling = new KeyFilling(state, () => client.call('filterKeys', undefined));
  const ledger = new JournalLedger({
    folder,
    report,
    store: {
      findEntries: (keys) => client.call('findEntries', keys),
      recordEntries: (rows) => quiet.run(() => client.call('recordEntries', rows)),
      mayHold: (keys) => keyFilling.mayHold(keys),
    },
  });
  const requestLog = requestLogOver(client, quiet);
  const close = async (): Promise<void> => {
    await Promise.all([outbox.flush(CLOSE_FLUSH_MS), requestLog.flush()]);
    outbox.close();
    await ledger.close();
    await memory.close();
  };
  return {
    memory,
    ledger,
    outbox,
    requestLog,
    provenance: {
      keep: async (notes) => void (await client.call('keepProvenance', notes)),
      list: (filter) => client.call('listProvenance', filter),
    },
    desk: deskOver(client),
    quiet,
    health: () => client.call('health', undefined),
    warm: () => warm(client).catch(() => undefined),
    isWhole: () => client.call('isWhole', undefined),
    close,
  };
}

function requestLogOver(client: SteadyClient, quiet: QuietTime): BatchedRequestLog {
  return new BatchedRequestLog({
    addRequests: (rows) => quiet.run(() => client.call('addRequests', rows)),
    listRequests: (filter) => client.call('listRequests', filter),
    findRequests: (filter) => client.call('findRequests', filter),
    conversationRequests: (filter) => client.call('conversationRequests', filter),
    sumRequests: (filter) => client.call('sumRequests', filter),
  });
}

function deskOver(client: SteadyClient): MemoryDesk {
  return {
    shelves: () => client.call('shelves', undefined),
    days: (space) => client.call('days', space),
    browse: (filter) => client.call('browse', filter),
    look: (question) => client.call('look', question),
    beginnings: (conversations) => client.call('beginnings', conversations),
    sightings: (refs) => client.call('sightings', refs),
    pin: (change) => client.call('pin', change),
    edit: (change) => client.call('edit', change),
    mark: (records) => client.call('mark', records),
    restore: (records) => client.call('restore', records),
  };
}

async function warm(client: SteadyClient): Promise<void> {
  for (let times = 0; times < WARMING_TIMES; times += 1) await client.call('warm', undefined);
}
