import { createHash } from 'node:crypto';
import { lastLines } from '../../adapters/files/last-lines.ts';
import type { HookClient } from '../../core/hooks/hook-clients.ts';
import type { HookEvent } from '../../core/hooks/hook-event.ts';
import { LOCAL_TENANT } from '../../core/ledger/entries.ts';
import { captureAssistant, captureHuman } from '../../core/memory/captures.ts';
import type { MemoryRecord, SpeakerRole } from '../../core/memory/record.ts';
import { TranscriptReader } from '../../core/memory/transcripts.ts';
import type { OwnBlocks } from '../../core/recall/own-blocks.ts';
import type { HookStore } from '../compose-hook.ts';

/**
 * Keeps what a session has said, as the proxy does: the typed text and the visible answer of each exchange, masked, once.
 * A session that also ran through the proxy gives the same words, which are the same memory.
 */

/** Some thousand exchanges. Of a longer session the end is read. */
const TRANSCRIPT_BYTES_MAX = 24 * 1024 * 1024;
/** An exchange that was open the last time may be whole now, and the one before may have been interrupted. */
const AGAIN = 2;
/** Then they wait in the outbox. */
const STORE_MS = 500;
const LEDGER_MS = 200;

export async function keepSession(
  client: HookClient,
  event: HookEvent,
  store: HookStore,
): Promise<void> {
  const address = {
    kind: 'hook-note',
    tenant: LOCAL_TENANT,
    conversation: event.session,
    fingerprint: 'kept',
  } as const;
  const found = await store.ledger.find([address], LEDGER_MS);
  const kept = Number(found.get(address)?.note ?? '0');
  const own = await store.ownBlocks(event.session);
  const { records, count } =
    client.transcript === undefined || event.transcript === ''
      ? recordsOfEvent(client, event, { kept, own })
      : recordsOfTranscript(client.transcript.client, event, { kept, own });
  if (records.length === 0 || event.folder === '') return;
  const { space, branch, isMemoryOff } = await store.projects.find(event.folder);
  if (isMemoryOff === true) return;
  const placed = records.map((record) => ({
    ...record,
    space,
    ...(branch !== undefined && { branch }),
  }));
  if (!store.outbox.keep(placed)) return;
  await store.ledger.record([{ ...address, note: String(count), at: Date.now() }]);
  await store.outbox.flush(STORE_MS);
}

interface Known {
  /** Exchanges that were kept before. */
  readonly kept: number;
  readonly own: OwnBlocks;
}

interface Said {
  readonly records: readonly MemoryRecord<SpeakerRole>[];
  /** Exchanges of the session so far. */
  readonly count: number;
}

function recordsOfTranscript(
  client: NonNullable<HookClient['transcript']>['client'],
  { transcript, session, answer, kind }: HookEvent,
  { kept, own }: Known,
): Said {
  const { lines, isWhole } = lastLines(transcript, TRANSCRIPT_BYTES_MAX);
  const reader = new TranscriptReader(client, own);
  for (const line of lines) reader.push(line);
  if (kind === 'stop') reader.end(answer, Date.now());
  const all = reader.finish(session);
  const count = Math.max(0, ...all.map(({ exchange }) => exchange + 1));
  const from = Math.min(kept, count) - AGAIN;
  const fresh = all.filter(({ exchange }) => exchange >= from);
  // The end of a session does not say how many exchanges were before it.
  const moved = isWhole ? 0 : kept;
  return {
    records: fresh.map((record) => ({ ...record, exchange: record.exchange + moved })),
    count: isWhole ? count : kept + 1,
  };
}

/** For a client whose event brings the exchange itself. */
function recordsOfEvent(
  { client }: HookClient,
  { session, prompt, answer }: HookEvent,
  { kept, own }: Known,
): Said {
  const heard = { ...own, question: prompt };
  const texts = [captureHuman(prompt, heard), captureAssistant(answer, heard)];
  const opening = JSON.stringify([session, kept, prompt]);
  const fingerprint = createHash('sha256').update(opening).digest('base64url');
  const shared = { space: '', conversation: session, client, at: Date.now(), fingerprint };
  const records = texts.flatMap((text) =>
    text === undefined ? [] : [{ ...text, ...shared, exchange: kept, isTimed: true as const }],
  );
  return { records, count: kept + 1 };
}
