import { captureHuman } from '../../core/memory/captures.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import type { Memory, MemoryRecord } from '../../ports/memory.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Writes one harmless sentence into a memory, reads it back, finds it again, and forgets it: in a
 * space of its own, that no project is in.
 */
export type MemoryProbe =
  | { readonly state: 'ok'; readonly ms: number }
  | {
      readonly state: 'failed';
      readonly step: 'write' | 'read back' | 'recall' | 'forget';
      readonly message: string;
    };

/** Deadline of one step; a slower memory is of no use to a request. */
const STEP_MS = 10_000;

/** `now` is in milliseconds since 1970: two probes at one time are one. */
export async function probeMemory(memory: Memory, now: number): Promise<MemoryProbe> {
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
