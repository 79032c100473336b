import { createHash } from 'node:crypto';
import { parseServiceKey } from '../../core/memory-api/service-key.ts';
import type { MemorySettings } from '../../core/settings/settings.ts';
import { CLOSE_FLUSH_MS, type StateOutbox } from '../state/outbox.ts';
import type { State } from '../state/state.ts';
import type { Trust } from '../network/pinned-connector.ts';
import { Acknowledgements, tablesIn, tablesInMemory } from './acknowledgements.ts';
import { ServiceGate } from './gate.ts';
import { HostedMemory, type Mirror } from './hosted-memory.ts';
import { KeyIdentity } from './key-identity.ts';
import { Operations } from './operations.ts';
import { PlacedRecords } from './placed-records.ts';
import { ServiceLink } from './service-link.ts';

/** Builds the client of a memory service, with an outbox on this machine. */

export type HostedSettings = Extract<MemorySettings, { readonly kind: 'hosted' }>;

export interface HostedMemoryOptions {
  readonly settings: HostedSettings;
  /**
   * Deadline of a recall or a proof in milliseconds. It is read for each call, because the configuration may change.
   */
  readonly recallMs: number;
  /**
   * svc's state on this machine, which has the acknowledgements and the captures; undefined for a command that ends
   * soon.
   */
  readonly state?: Pick<State, 'outboxFor' | 'file' | 'writer'>;
  readonly mirror?: Mirror;
  readonly trust?: Trust;
  /** Writes one line for the user, which never contains a record's text. */
  report(line: string): void;
}

export interface OpenHostedMemory {
  readonly memory: HostedMemory;
  readonly operations: Operations;
  /** Asks for the key's rights, now and at intervals; see KeyIdentity.watch. Never rejects. */
  watch(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the client and returns at once; nothing is sent before the first call. `onTenant` is called with the tenant
 * that the key belongs to, when the service says so.
 */
export function openHostedMemory(
  options: HostedMemoryOptions,
  onTenant: (tenant: string) => void = () => undefined,
): OpenHostedMemory {
  const { settings, state, mirror, trust } = options;
  const link = new ServiceLink({ ...settings, ...(trust === undefined ? {} : { trust }) });
  const gate = new ServiceGate(() => performance.now());
  const operations = new Operations(link, gate);
  const placed = new PlacedRecords({ operations, blocks: mirror });
  const acknowledgements = new Acknowledgements({
    tables: state === undefined ? tablesInMemory() : tablesIn(state),
    target: nameOf('held', settings),
    onSeen: (space, generation) => placed.seen(space, generation),
    onBehind: (space) =>
      options.report(
        `The memory service lost commits of the space ${space}, or its commit sequence is wrong. svc leaves nothing out of prompts until the sequence has caught up, or something is forgotten there.`,
      ),
    ...(mirror === undefined ? {} : { onMoved: (space) => mirror.dropOutputs(space) }),
  });
  const identity = new KeyIdentity({
    operations,
    gate,
    report: options.report.bind(options),
    onHeard: (signal) => memory.lookAround(signal),
    onTenant,
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

/** Opens the client for the proxy: captures wait in an outbox until the service has stored or refused them. */
export function openHostedMemoryWithOutbox(
  options: HostedMemoryOptions & Required<Pick<HostedMemoryOptions, 'state'>>,
): HostedMemoryWithOutbox {
  const { settings, state } = options;
  const onTenant = (tenant: string): void =>
    outbox.belongsTo(hashOf(`${settings.baseUrl}\n${tenant}`));
  const hosted = openHostedMemory(options, onTenant);
  const outbox: StateOutbox = state.outboxFor(nameOf('outbox', settings), hosted.memory);
  const close = async (): Promise<void> => {
    await outbox.flush(CLOSE_FLUSH_MS);
    outbox.close();
    await hosted.close();
  };
  return { ...hosted, outbox, close };
}

/**
 * Returns the name of the acknowledgements, or of the outbox. It differs for each service and key, because captures for
 * one must not go to another.
 */
function nameOf(what: string, { baseUrl, serviceKey }: HostedSettings): string {
  const key = parseServiceKey(serviceKey)?.publicId ?? serviceKey;
  return `hosted_${what}_${hashOf(`${baseUrl}\n${key}`)}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
