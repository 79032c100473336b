import { createHash } from 'node:crypto';
import { parseServiceKey } from '../../core/memory-api/service-key.ts';
import type { MemorySettings } from '../../core/settings/settings.ts';
import type { StateOutbox } from '../state/outbox.ts';
import type { State } from '../state/state.ts';
import type { Trust } from '../network/pinned-connector.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { ServiceGate } from './gate.ts';
import { HostedMemory, type Mirror } from './hosted-memory.ts';
import { KeyIdentity } from './key-identity.ts';
import { Operations } from './operations.ts';
import { PlacedRecords } from './placed-records.ts';
import { ServiceLink } from './service-link.ts';

/** A memory service, joined from its parts, with the outbox that waits for it on this machine. */

/** Captures that take longer at shutdown stay in the outbox. */
const CLOSE_FLUSH_MS = 2000;

export type HostedSettings = Extract<MemorySettings, { readonly kind: 'hosted' }>;

export interface HostedMemoryOptions {
  readonly settings: HostedSettings;
  /** Milliseconds that a recall or a proof may take; read each time, because the configuration may change. */
  readonly recallMs: number;
  /** Where journals are; absent for a command that keeps nothing for later. */
  readonly folder?: string;
  readonly mirror?: Mirror;
  readonly trust?: Trust;
  /** One line for people; never a text of a record. */
  report(line: string): void;
}

export interface OpenHostedMemory {
  readonly memory: HostedMemory;
  readonly operations: Operations;
  /** Asks what the key may do, now and from time to time. Never rejects. */
  watch(): Promise<void>;
  close(): Promise<void>;
}

/** Returns at once; nothing is sent before the first call. */
export function openHostedMemory(options: HostedMemoryOptions): OpenHostedMemory {
  const { settings, folder, mirror, trust } = options;
  const link = new ServiceLink({ ...settings, ...(trust === undefined ? {} : { trust }) });
  const gate = new ServiceGate(() => performance.now());
  const operations = new Operations(link, gate);
  const placed = new PlacedRecords({ operations, blocks: mirror });
  const acknowledgements = new Acknowledgements({
    now: () => Date.now(),
    onSeen: (space, generation) => placed.seen(space, generation),
    onBehind: (space) =>
      options.report(
        `The memory service lost commits of the space ${space}, or its commit sequence is wrong. svc leaves nothing out of prompts until the sequence has caught up, or something is forgotten there.`,
      ),
    ...(mirror === undefined ? {} : { onMoved: (space) => mirror.dropOutputs(space) }),
    ...(folder === undefined ? {} : { journal: { folder, name: nameOf('held', settings) } }),
  });
  const identity = new KeyIdentity({
    operations,
    gate,
    report: options.report.bind(options),
    onHeard: (signal) => memory.lookAround(signal),
  });
  const memory: HostedMemory = new HostedMemory({
    link,
    operations,
    gate,
    identity,
    acknowledgements,
    placed,
    get recallMs() {
      return options.recallMs;
    },
    ...(mirror === undefined ? {} : { mirror }),
  });
  return {
    memory,
    operations,
    watch: () => {
      placed.watch();
      return identity.watch();
    },
    close: () => memory.close(),
  };
}

export interface HostedMemoryWithOutbox extends OpenHostedMemory {
  readonly outbox: StateOutbox;
}

/** As the proxy needs it: captures wait on disk until the service acknowledges them. */
export function openHostedMemoryWithOutbox(
  options: HostedMemoryOptions & {
    readonly folder: string;
    readonly state: Pick<State, 'outboxFor'>;
  },
): HostedMemoryWithOutbox {
  const hosted = openHostedMemory(options);
  const outbox = options.state.outboxFor(nameOf('outbox', options.settings), hosted.memory);
  const close = async (): Promise<void> => {
    await outbox.flush(CLOSE_FLUSH_MS);
    outbox.close();
    await hosted.close();
  };
  return { ...hosted, outbox, close };
}

// By service and key: what was captured for one team is not another team's to read.
function nameOf(what: string, { baseUrl, serviceKey }: HostedSettings): string {
  const key = parseServiceKey(serviceKey)?.publicId ?? serviceKey;
  const hash = createHash('sha256').update(`${baseUrl}\n${key}`).digest('hex').slice(0, 16);
  return `hosted_${what}_${hash}`;
}
