import { existsSync } from 'node:fs';
import { databaseFile } from '../../adapters/files/database-file.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { Memory } from '../../ports/memory.ts';
import { openLocalStore } from '../compose-store.ts';
import { type MemoryProbe, probeMemory } from './memory-probe.ts';

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
