import { existsSync } from 'node:fs';
import { databaseFile } from '../../adapters/files/database-file.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { Memory, MemoryRecord } from '../../ports/memory.ts';
import { openLocalStore } from '../compose-store.ts';
import { captureHuman } from '../../core/memory/captures.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import { MemoryError } from '../../core/errors.ts';

/** Doctor's facts about the store on this machine. */
export interface StoreInspection extends StoreHealth {
  /** False when the file contradicts itself. */
  readonly isWhole: boolean;
  /** One recall in the space that was written last; absent in an empty store. */
  readonly recall?: RecallTime;
  readonly probe: MemoryProbe;
  /** Undefined when there is nothing to report; else what is wrong, for people. */
  readonly problem?: string;
}

export interface RecallTime {
  readonly ms: number;
  /** The computing time of svc itself, on all its threads; the rest was waiting for the machine. */
  readonly cpuMs: number;
}

/** Undefined where there is no store yet: looking must not make one. Throws MemoryError. */
export async function inspectStore(dataFolder: string): Promise<StoreInspection | undefined> {
  if (!existsSync(databaseFile(dataFolder))) return undefined;
  const reported: string[] = [];
  const store = openLocalStore(dataFolder, (line) => reported.push(line));
  try {
    const health = await store.health();
    const isWhole = await store.isWhole();
    const recall = await timeRecall(store.memory);
    const probe = await probeMemory(store.memory, Date.now());
    const [problem] = reported;
    return {
      ...health,
      isWhole,
      probe,
      ...(recall === undefined ? {} : { recall }),
      ...(problem === undefined ? {} : { problem }),
    };
  } finally {
    await store.close();
  }
}

/** A question as long as people's questions are. */
const QUESTION_CHARS_MAX = 200;
/** The first recall reads the index from the disk. The quickest is what a session meets on a calm machine. */
const RECALLS = 3;

async function timeRecall(memory: Memory): Promise<RecallTime | undefined> {
  const signal = AbortSignal.timeout(10_000);
  const [newest] = await memory.list({ limit: 1 }, signal);
  if (newest === undefined) return undefined;
  const humanText = newest.text.slice(0, QUESTION_CHARS_MAX);
  const question = { humanText, assistantText: '', excludeDigests: [], tokensMax: 512 };
  let quickest: RecallTime | undefined;
  for (let count = 0; count < RECALLS; count += 1) {
    const from = performance.now();
    const before = process.cpuUsage();
    // oxlint-disable-next-line no-await-in-loop -- Two recalls at once would wait for each other.
    await memory.recall({ ...question, space: newest.space, now: newest.at }, signal);
    const ms = performance.now() - from;
    const { user, system } = process.cpuUsage(before);
    if (ms < (quickest?.ms ?? Infinity)) quickest = { ms, cpuMs: (user + system) / 1000 };
  }
  return quickest;
}

/**
 * Writes one harmless sentence into a memory, reads it back, finds it again, and forgets it: in a
 * space of its own, that no project is in.
 */
type MemoryProbe =
  | { readonly state: 'ok'; readonly ms: number }
  | {
      readonly state: 'failed';
      readonly step: 'write' | 'read back' | 'recall' | 'forget';
      readonly message: string;
    };

/** Deadline of one step; a slower memory is of no use to a request. */
const STEP_MS = 10_000;

/** `now` is in milliseconds since 1970: two probes at one time are one. */
async function probeMemory(memory: Memory, now: number): Promise<MemoryProbe> {
  const record = recordAt(now);
  let step: Exclude<MemoryProbe, { state: 'ok' }>['step'] = 'write';
  const from = performance.now();
  try {
    const [state] = await memory.capture([record], deadline());
    if (state !== 'stored') return failed(step, `it answered ${state ?? 'nothing'}`);
    step = 'read back';
    const { digest, space } = record;
    const held = await memory.retrieve({ digest, space }, deadline());
    if (held?.text !== record.text) return failed(step, 'the text that came back is different');
    step = 'recall';
    const question = { humanText: record.text, assistantText: '', excludeDigests: [] };
    const answer = await memory.recall({ ...question, space, tokensMax: 512, now }, deadline());
    if (!answer.passages.some((one) => one.digest === digest)) {
      return failed(step, 'it was not found again');
    }
    step = 'forget';
    const forgotten = await memory.forget({ refs: [held.ref], space }, deadline());
    if (forgotten !== 1) return failed(step, 'it was not forgotten');
    return { state: 'ok', ms: performance.now() - from };
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error;
    return failed(step, error.message);
  }
}

function failed(step: Exclude<MemoryProbe, { state: 'ok' }>['step'], message: string): MemoryProbe {
  return { state: 'failed', step, message };
}

function recordAt(now: number): MemoryRecord {
  const text = `The doctor of svc wrote this sentence at ${new Date(now).toISOString()} to read it back.`;
  const captured = captureHuman(text);
  if (captured === undefined) throw new Error('The sentence of the probe is not worth keeping.');
  return {
    ...captured,
    space: PROBE_SPACE,
    conversation: `probe_${now}`,
    fingerprint: `probe_${now}`,
    exchange: 0,
    client: 'svc',
    at: now,
  };
}

function deadline(): AbortSignal {
  return AbortSignal.timeout(STEP_MS);
}
