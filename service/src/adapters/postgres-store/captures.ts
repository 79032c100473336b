import type {
  CaptureBatch,
  CaptureOutcome,
  ObjectState,
  SpaceState,
} from '../../ports/service-store.ts';
import { passagesOf } from '../../../../src/adapters/store/passage-index.ts';
import {
  type BatchPassages,
  BatchWriter,
  type CapturePlace,
  type KnownRow,
  threadOf,
} from './batch-writer.ts';
import type { Rows } from './rows.ts';
import { bareState, Spaces, stateOf } from './spaces.ts';
import { MEMORY } from './statements/memory.ts';

/**
 * Takes a batch of records in. The row of the space is locked, so batches of one space come one after
 * the other, and their sequence is the order of their commits. A batch is two messages
 * and a commit, however many records it has.
 */

export interface Captured {
  readonly outcome: CaptureOutcome;
  /** Words that were added to the index. */
  readonly words: number;
}

export async function capture(
  rows: Rows,
  place: CapturePlace,
  batch: CaptureBatch,
): Promise<Captured> {
  const spaces = new Spaces(rows, place.tenant);
  // Its row is locked first, so no other transaction changes the rows that the statement behind it reads.
  const lock = () =>
    Promise.all([
      spaces.lock(batch.space),
      readKnown(rows, place.tenant, batch),
      readRoom(rows, place),
    ]);
  // It takes this process about as long to find the words as the server to answer.
  let [[space, held, room], passages] = await Promise.all([
    lock(),
    rows.meanwhile(() => passagesIn(batch)),
  ]);
  if (space === undefined) {
    const state = bareState(await spaces.state(batch.space));
    if (isStale(batch, state)) return nothing(state, undefined);
    await spaces.make(batch.space);
    // Another node may have made it a moment ago, and filled it.
    [space, held, room] = await lock();
    if (space === undefined)
      return nothing(
        state,
        batch.objects.map((): ObjectState => 'quota'),
      );
  }
  const state = stateOf(batch.space, space);
  if (isStale(batch, state)) return nothing(state, undefined);
  const writer = new BatchWriter(rows, place, space);
  const results = writer.take(batch, { passages, held, room });
  await Promise.all(writer.write(batch.now));
  const { records, words } = writer;
  const commitSeq = state.commitSeq + records;
  const after = { ...state, commitSeq, records: state.records + records };
  return { outcome: { state: after, results }, words };
}

function passagesIn({ objects }: CaptureBatch): BatchPassages {
  return objects.map(({ texts }) => texts.map(({ text, role }) => passagesOf(text, role)));
}

function nothing(state: SpaceState, results: CaptureOutcome['results']): Captured {
  return { outcome: { state, results }, words: 0 };
}

/** A purge came in between: the batch belongs to the generation before it. */
function isStale({ ifGeneration }: CaptureBatch, { generation }: SpaceState): boolean {
  return ifGeneration !== undefined && ifGeneration !== generation;
}

/** Batches of two spaces at once may exceed the plan by one batch: the row of each space is its own. */
async function readRoom(rows: Rows, { tenant, ignoresPlan }: CapturePlace): Promise<number> {
  if (ignoresPlan === true) return Infinity;
  const found = await rows.get<{ room: number | null }>(MEMORY.planRoom, tenant);
  return found?.room ?? Infinity;
}

function readKnown(
  rows: Rows,
  tenant: string,
  { space, objects }: CaptureBatch,
): Promise<KnownRow[]> {
  return rows.all<KnownRow>(
    MEMORY.known,
    tenant,
    space,
    objects.map(({ digest }) => digest),
    objects.map(({ ref }) => ref),
    objects.flatMap(({ textDigest }) => textDigest ?? []),
    objects.map(threadOf),
  );
}
