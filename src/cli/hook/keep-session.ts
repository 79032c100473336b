import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LastLines, lastLines } from '../../adapters/files/lines.ts';
import type { HookClient } from '../../core/hooks/hook-clients.ts';
import type { HookEvent } from '../../core/hooks/hook-event.ts';
import { type LedgerMiss, LOCAL_TENANT } from '../../core/ledger/entries.ts';
import { captureAssistant, captureHuman } from '../../core/memory/captures.ts';
import type { MemoryRecord, SpeakerRole } from '../../core/memory/record.ts';
import { TranscriptReader } from '../../core/memory/transcripts.ts';
import type { OwnBlocks } from '../../core/recall/own-blocks.ts';
import type { HookStore } from '../compose-hook.ts';

/**
 * Stores the exchanges of a session as the proxy does: the typed text and the visible answer, masked, each once. If the
 * session also runs through the proxy, hook and proxy store equal texts, so the memory has each text only once.
 */

/** Bytes of a transcript that are read, from its end: some thousand exchanges. */
const TRANSCRIPT_BYTES_MAX = 24 * 1024 * 1024;
/** Deadline of waiting for the answer in the transcript, in ms: a client writes it shortly after the hook starts. */
const WRITTEN_MS = 300;
const POLL_MS = 20;
/** Deadline of reading the session's note in the ledger, in milliseconds. */
const LEDGER_MS = 200;

/**
 * Stores the exchanges since the last call for this session. Returns `late` while another process holds a lock on the
 * state, so that the caller may try again, and `unavailable` if the state cannot be read. After either of these, the
 * caller must assume that nothing was stored. `done` does not mean that something was stored: memory may be off for the
 * project, or the outbox may have refused the exchanges.
 */
export async function keepSession(
  client: HookClient,
  event: HookEvent,
  store: HookStore,
): Promise<'done' | LedgerMiss> {
  const kept = await keptOf(event, store);
  if (typeof kept === 'string') return kept;
  const { records, next } =
    client.transcript === undefined || event.transcript === ''
      ? await saidInEvent(client, event, { kept, store })
      : await saidInTranscript(client.transcript.client, event, { kept, store });
  if (records.length === 0 || event.folder === '') return 'done';
  const { space, branch, isMemoryOff } = await store.projects.find(event.folder);
  if (isMemoryOff === true) return 'done';
  const placed = records.map((record) => ({
    ...record,
    space,
    ...(branch !== undefined && { branch }),
  }));
  if (!store.outbox.keep(placed)) return 'done';
  // The note says how much is stored. It is written after the records, so it never claims more than is stored.
  return (await note(event, store, next)) ? 'done' : 'late';
}

/** Notes that a session is a fork that begins now: earlier texts of its transcript are stored already. */
export async function beginFork(event: HookEvent, store: HookStore): Promise<void> {
  const kept = await keptOf(event, store);
  if (typeof kept !== 'string' && kept.bytes === 0)
    await note(event, store, { ...kept, since: Date.now() });
}

interface Kept {
  /** The number of bytes of the transcript that were read. */
  readonly bytes: number;
  /** The number of exchanges so far. */
  readonly exchanges: number;
  /** Texts before this time, in milliseconds since 1970, belong to another session. */
  readonly since: number;
}

async function keptOf({ session }: HookEvent, { ledger }: HookStore): Promise<Kept | LedgerMiss> {
  const address = addressOf(session);
  const found = await ledger.find([address], LEDGER_MS);
  if (found.missing !== undefined) return found.missing;
  const [bytes = 0, exchanges = 0, since = 0] = (found.get(address)?.note ?? '')
    .split(' ')
    .map(Number);
  return { bytes, exchanges, since };
}

async function note({ session }: HookEvent, { ledger }: HookStore, kept: Kept): Promise<boolean> {
  const words = [kept.bytes, kept.exchanges, kept.since].join(' ');
  return ledger.commit([{ ...addressOf(session), note: words, at: Date.now() }]);
}

function addressOf(conversation: string) {
  return { kind: 'hook-note', tenant: LOCAL_TENANT, conversation, fingerprint: 'kept' } as const;
}

interface Known {
  readonly kept: Kept;
  readonly store: HookStore;
}

interface Said {
  readonly records: readonly MemoryRecord<SpeakerRole>[];
  readonly next: Kept;
}

async function saidInTranscript(
  client: Transcript,
  event: HookEvent,
  { kept, store }: Known,
): Promise<Said> {
  const { session } = event;
  const own = await store.ownBlocks(session, client === 'copilot');
  const read = (): Read => {
    const last = lastLines(event.transcript, TRANSCRIPT_BYTES_MAX);
    return { last, reader: readerOf(last, { client, own, bytes: kept.bytes }) };
  };
  const { last, reader, isMissing } = await writtenDown(event, read);
  // Besides the answer, the transcript lacks something before it, so leave all new texts to the next event.
  if (isMissing === true) return { records: [], next: kept };
  const placedAt = await store.placedAt(session, reader.prompts);
  const fresh = reader.finish({ name: session, placedAt }).filter(({ at }) => at >= kept.since);
  const numbers = fresh.map(({ exchange }) => exchange);
  // If only the end was read, the reader has counted its exchanges from 0. The first new one is number kept.exchanges.
  const moved = last.isWhole ? 0 : kept.exchanges - Math.min(...numbers);
  const exchanges = Math.max(kept.exchanges, ...numbers.map((number) => number + moved + 1));
  return {
    records: fresh.map((record) => ({ ...record, exchange: record.exchange + moved })),
    next: { ...kept, bytes: last.end, exchanges },
  };
}

type Transcript = NonNullable<HookClient['transcript']>['client'];

interface Read {
  readonly last: LastLines;
  readonly reader: TranscriptReader;
}

/**
 * Reads the lines. `bytes`: the place up to which an earlier hook stored the transcript, 0 if none has. Lines before
 * it count as read.
 */
function readerOf(
  { lines, start }: LastLines,
  { client, own, bytes }: { client: Transcript; own: OwnBlocks; bytes: number },
): TranscriptReader {
  const reader = new TranscriptReader(client, own);
  let at = start;
  for (const line of lines) {
    if (at === bytes) reader.readBefore();
    reader.push(line);
    at += Buffer.byteLength(line) + 1;
  }
  if (at === bytes) reader.readBefore();
  return reader;
}

/**
 * At the end of an answer, waits until the transcript contains the answer. After the deadline it adds the answer to
 * what it has read, if that has everything before the answer. `isMissing`: something before the answer is missing too.
 */
async function writtenDown(
  { kind, transcript, answer }: HookEvent,
  read: () => Read,
): Promise<Read & { readonly isMissing?: boolean }> {
  const end = performance.now() + WRITTEN_MS;
  for (;;) {
    const size = sizeOf(transcript);
    const found = read();
    if (kind !== 'stop' || found.reader.endsWith(answer)) return found;
    do await sleep(POLL_MS);
    while (performance.now() < end && sizeOf(transcript) === size);
    if (performance.now() < end) continue;
    if (answer.trim() === '') return found;
    return { ...found, isMissing: !found.reader.end(answer, Date.now()) };
  }
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** Returns the exchange that the event itself contains, for a client without a transcript that svc can read. */
async function saidInEvent(
  { client }: HookClient,
  { session, prompt, answer }: HookEvent,
  { kept, store }: Known,
): Promise<Said> {
  const own = await store.ownBlocks(session, true);
  const placedAt = await store.placedAt(session, [prompt]);
  const heard = { key: own.key, blocks: [...own.blocks, ...placedAt(prompt)], question: prompt };
  const texts = [captureHuman(prompt, heard), captureAssistant(answer, heard)];
  const { exchanges } = kept;
  const opening = JSON.stringify([session, exchanges, prompt]);
  const fingerprint = createHash('sha256').update(opening).digest('base64url');
  const shared = { space: '', conversation: session, client, at: Date.now(), fingerprint };
  const records = texts.flatMap((text) =>
    text === undefined ? [] : [{ ...text, ...shared, exchange: exchanges, isTimed: true as const }],
  );
  return { records, next: { ...kept, exchanges: exchanges + 1 } };
}
