import type { MemoryDesk } from '../../ports/memory-desk.ts';
import type { LocalStore } from '../../ports/local-store.ts';
import type { ProvenanceStore } from '../../ports/provenance.ts';
import type { StateLedger } from '../state/ledger.ts';
import { type StateOutbox, STORE_TARGET } from '../state/outbox.ts';
import { type RequestReader, StateRequestLog } from '../state/request-log.ts';
import { openState, type State } from '../state/state.ts';
import { EmbeddedMemory } from './embedded-memory.ts';
import { OutputMirror } from './output-mirror.ts';
import { ProofState } from './proof-state.ts';
import { SteadyClient } from './steady-client.ts';

/**
 * Everything svc remembers on this machine, in one folder: memories, ledger, outbox, request log.
 * Several processes may have it open at once.
 */

/** Captures that take longer at shutdown stay in the outbox. */
const CLOSE_FLUSH_MS = 2000;

/** A forgetting that stands still for so long was interrupted. */
const LOOK_MS = 3000;

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
  readonly ledger: StateLedger;
  readonly outbox: StateOutbox;
  readonly requestLog: StateRequestLog;
  readonly state: Pick<State, 'outboxFor' | 'writer'>;
  readonly provenance: ProvenanceStore;
  readonly desk: MemoryDesk;
  /**
   * Makes the first recall as quick as later ones; calls of requests run between its parts. Never
   * rejects: a failing memory reports it to the calls that need it.
   */
  warm(): Promise<void>;
}

/** Returns at once: the files are opened later, `memory.db` by a worker; calls wait until it is. */
export function openEmbeddedStore(options: EmbeddedStoreOptions): EmbeddedStore {
  const { folder } = options;
  const report = options.report.bind(options);
  const proofs = new ProofState(folder);
  const client = new SteadyClient({
    folder,
    report,
    onReplaced: () => {
      state.ledger.forget();
      outbox.forgetSettled();
      mirror.forgetLooked();
    },
  });
  const state = openState({
    folder,
    report,
    checkpoint: () => void client.call('checkpointState', undefined).catch(() => undefined),
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
    proofs,
    report,
    settle: async () => {
      // Also what a dead process left: it must not come back after the forgetting.
      await outbox.flush(CLOSE_FLUSH_MS);
      state.open();
    },
  });
  const outbox = state.outboxFor(STORE_TARGET, memory);
  // The thread that answers requests makes the file, and then the store's thread may open it.
  setImmediate(() => {
    state.open();
    memory.begin().catch(() => undefined);
  });
  const looking = setInterval(() => void memory.endInterrupted().catch(() => undefined), LOOK_MS);
  looking.unref();
  const close = async (): Promise<void> => {
    clearInterval(looking);
    await outbox.flush(CLOSE_FLUSH_MS);
    outbox.close();
    await memory.close();
    await state.close();
  };
  return {
    memory,
    ledger: state.ledger,
    outbox,
    state,
    requestLog: new StateRequestLog(state.writer, requestReader(state, client)),
    provenance: {
      keep: async (notes) => void (await client.call('keepProvenance', notes)),
      list: (filter) => client.call('listProvenance', filter),
    },
    desk: deskOver(client, memory),
    health: () => client.call('health', undefined),
    warm: () => warm(client).catch(() => undefined),
    isWhole: () => client.call('isWhole', undefined),
    close,
  };
}

function requestReader(state: State, client: SteadyClient): RequestReader {
  const call: SteadyClient['call'] = (name, input, signal) => {
    state.open();
    return client.call(name, input, signal);
  };
  return {
    listRequests: (filter) => call('listRequests', filter),
    findRequests: (filter) => call('findRequests', filter),
    conversationRequests: (filter) => call('conversationRequests', filter),
    sumRequests: (filter) => call('sumRequests', filter),
    pruneState: () => call('pruneState', undefined),
  };
}

function deskOver(client: SteadyClient, memory: EmbeddedMemory): MemoryDesk {
  return {
    shelves: () => client.call('shelves', undefined),
    days: (space) => client.call('days', space),
    browse: (filter) => client.call('browse', filter),
    look: (question) => client.call('look', question),
    beginnings: (conversations) => client.call('beginnings', conversations),
    sightings: (refs) => client.call('sightings', refs),
    pin: (change) => client.call('pin', change),
    edit: async (change) => {
      const state = await client.call('edit', change);
      if (state === 'edited') await memory.endForgetting();
      return state;
    },
    restore: (records) => client.call('restore', records),
  };
}

async function warm(client: SteadyClient): Promise<void> {
  for (let times = 0; times < WARMING_TIMES; times += 1) await client.call('warm', undefined);
}
