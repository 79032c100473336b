import {
  EXCLUDED_MAX,
  OLDER_SPACES_MAX,
  QUERY_CHARS_MAX,
  RECALL_ITEMS_MAX,
  RECALL_TOKENS_MAX,
  RECENT_CHARS_MAX,
  CANDIDATES_MAX,
} from '../../core/memory-api/limits.ts';
import { exchangeIn, sessionIn, wireAgent } from '../../core/memory-api/agent-recall.ts';
import type { RecallAnswer as WireAnswer, RecallRequest } from '../../core/memory-api/contract.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { GLOBAL_SPACE, isSpace } from '../../core/request/space.ts';
import {
  type CaptureState,
  type ForgetFilter,
  type Holding,
  type HoldQuestion,
  type ListFilter,
  type Memory,
  type MemoryRecord,
  type MemorySupport,
  type RecallAnswer,
  type RecallQuestion,
  type RecordKey,
  type SpokenRecord,
  type StoredRecord,
  REFERENCES_MAX,
} from '../../ports/memory.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import { CaptureSender } from './capture-sender.ts';
import type { ServiceGate } from './gate.ts';
import type { KeyIdentity } from './key-identity.ts';
import type { Operations } from './operations.ts';
import type { PlacedBlocks, PlacedRecords } from './placed-records.ts';
import { ServiceFault } from './service-fault.ts';
import { malformed, type ServiceLink } from './service-link.ts';
import { StoredRecords } from './stored-records.ts';
import { isoTime } from '../../core/memory/times.ts';
import { outgoingRecord, passageIn } from '../../core/memory-api/record-items.ts';

/**
 * The memory port over a memory service. The service is not trusted: its answers are read through
 * the contract's closed shapes and must echo the question. It proves nothing without its proofs,
 * which the code that leaves something out checks (proxy/possession.ts).
 */

/**
 * The local copy of the outputs left out of prompts: they can be read while the service is away.
 */
export interface Mirror
  extends PlacedBlocks, Pick<Memory, 'capture' | 'retrieve' | 'forget' | 'references'> {
  /** Takes all outputs of a space away, without a trace of their having been forgotten. */
  dropOutputs(space: string): Promise<void>;
  /** Spaces that have outputs in the local copy, used last first. */
  outputSpaces(limit: number): Promise<readonly string[]>;
  /** Puts them beside the store as files: they are about to be left out. Returns at once. */
  keepFiles(space: string, digests: readonly string[]): void;
}

export interface HostedMemoryParts {
  readonly link: ServiceLink;
  readonly operations: Operations;
  readonly gate: ServiceGate;
  readonly identity: KeyIdentity;
  readonly acknowledgements: Acknowledgements;
  readonly placed: PlacedRecords;
  readonly mirror?: Mirror;
  /** Milliseconds that a recall or a proof may take. */
  readonly recallMs: number;
}

/** The delay until a deletion elsewhere is seen in a space in which no client works. */
const LOOK_MS = 3_600_000;
/** One call each; who works in more projects at once has the others looked at when they are used. */
const LOOK_SPACES_MAX = 32;

const NOTHING_PLACED: ReadonlyMap<string, ReadonlySet<string>> = new Map();

const EVERYTHING_BUT_OUTPUTS = ['exchange', 'note', 'fact', 'summary'] as const;

export class HostedMemory implements Memory {
  readonly #parts: HostedMemoryParts;
  readonly #sender: CaptureSender;
  readonly #stored: StoredRecords;
  #lookedAt = -Infinity;

  constructor(parts: HostedMemoryParts) {
    this.#parts = parts;
    this.#sender = new CaptureSender(parts);
    this.#stored = new StoredRecords(parts.operations, parts.acknowledgements);
  }

  get supports(): MemorySupport {
    return this.#parts.identity.supports;
  }

  async recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    const { identity } = this.#parts;
    // An invalid space holds nothing; the global one may answer all the same.
    const space = isSpace(question.space) ? question.space : GLOBAL_SPACE;
    const request = this.#requestFor(space, question);
    const sharing = { ...request, include_spaces: [GLOBAL_SPACE] };
    const isShared = space !== GLOBAL_SPACE && identity.mayShare;
    const answer = await this.#ask(isShared ? sharing : request, signal).catch((error: unknown) => {
      const isDenied = error instanceof ServiceFault && error.code === 'SPACE_DENIED';
      if (!isShared || !isDenied) throw error;
      // A key of one project: it has no part in what all projects share.
      identity.notShared();
      return this.#ask(request, signal);
    });
    const own = [space, ...(request.older_spaces ?? [])];
    const spaces = isShared && identity.mayShare ? [...own, GLOBAL_SPACE] : own;
    const held = new Set(question.excludeDigests);
    const passages = answer.items.flatMap((item) => {
      const passage = passageIn(item, spaces);
      // Other people's spaces were not asked for.
      if (passage === undefined) throw malformed();
      return passage.text.trim() === '' || held.has(passage.digest) ? [] : [passage];
    });
    const { exchanges, sessions } = answer;
    // An older service knows no exchanges, and answers an agent with passages.
    if (exchanges === undefined) return { passages };
    if (!exchanges.every((exchange) => spaces.includes(exchange.space))) throw malformed();
    return {
      passages,
      exchanges: exchanges.map(exchangeIn),
      sessions: sessions?.map(sessionIn) ?? [],
    };
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states = await this.#sender.send(records.map(outgoingRecord), signal);
    await this.#mirrorOutputs(records, states, signal);
    return states;
  }

  async retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    const { mirror } = this.#parts;
    let found: StoredRecord | 'purged' | undefined;
    try {
      found = await this.#stored.retrieve(key, signal);
    } catch (error) {
      const nearby = await mirror?.retrieve(key, signal);
      if (nearby === undefined) throw error;
      return nearby;
    }
    if (found === undefined) return mirror?.retrieve(key, signal);
    if (found !== 'purged') return found;
    // Forgotten on another machine: then here too.
    await mirror?.forget(forgetKey(key), signal);
    return undefined;
  }

  list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]> {
    return this.#stored.list(filter, signal);
  }

  async references(start: string, signal: AbortSignal): Promise<readonly string[]> {
    const nearby = (await this.#parts.mirror?.references(start, signal)) ?? [];
    const there = await this.#stored.references(start, signal);
    return [...new Set([...nearby, ...there])].toSorted().slice(0, REFERENCES_MAX);
  }

  async forget(filter: ForgetFilter, signal: AbortSignal): Promise<number> {
    const { mirror, placed } = this.#parts;
    const purges = await this.#stored.purgesFor(filter, signal);
    let forgotten: number;
    try {
      forgotten = await this.#stored.purge(purges, signal);
    } finally {
      // Also after a part of it: what is gone from the service is not found a second time.
      for (const space of new Set(purges.map(([name]) => name))) {
        // oxlint-disable-next-line no-await-in-loop -- One space, nearly always.
        await placed.emptyPurged(space, signal);
      }
    }
    // The filter applies on this machine too: to local output copies, and to memories from before
    // the service.
    const nearby = await mirror?.forget(filter, signal);
    return Math.max(forgotten, nearby ?? 0);
  }

  async hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    const { acknowledgements, identity } = this.#parts;
    if (!identity.proves) return [];
    const asked = new Map<string, HeldText>();
    for (const text of question.digests) {
      const acknowledged = acknowledgements.find(question.space, text);
      if (acknowledged !== undefined) {
        asked.set(acknowledged.digest, { text, bytes: acknowledged.bytes });
      }
    }
    const holdings: Holding[] = [];
    const candidates = [...asked.keys()];
    for (let at = 0; at < candidates.length; at += CANDIDATES_MAX) {
      const some = candidates.slice(at, at + CANDIDATES_MAX);
      // One after the other, under one deadline: more than 512 at once is a session of days.
      // oxlint-disable-next-line no-await-in-loop
      const held = await this.#holdSome({ ...question, candidates: some, asked }, signal);
      if (held === undefined) return [];
      holdings.push(...held);
    }
    this.#parts.mirror?.keepFiles(
      question.space,
      holdings.map(({ digest }) => digest),
    );
    return holdings;
  }

  /**
   * Asks for the state of the spaces whose records are in blocks, or whose outputs are in the local copy. In a
   * space without clients nothing else would reveal that something was forgotten there. Once an hour; never
   * rejects.
   */
  async lookAround(signal: AbortSignal): Promise<void> {
    const { mirror, operations, acknowledgements } = this.#parts;
    const now = performance.now();
    if (mirror === undefined || now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now;
    const [placed, outputs] = await Promise.all([
      mirror.placed().catch(() => NOTHING_PLACED),
      mirror.outputSpaces(LOOK_SPACES_MAX).catch(() => []),
    ]);
    const spaces = [...new Set([...placed.keys(), ...outputs])].filter(isSpace);
    for (const space of spaces.slice(0, LOOK_SPACES_MAX)) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- No request waits for these.
        const { space_state: state } = await operations.whoAmI(signal, space);
        if (state?.space !== space) continue;
        acknowledgements.stands(space, state.generation, state.commit_seq);
      } catch (error) {
        // A space that the key may not use does not affect the other spaces.
        if (!(error instanceof ServiceFault)) return;
      }
    }
  }

  distrust(milliseconds: number): void {
    this.#parts.gate.close('invalid', milliseconds);
  }

  async close(): Promise<void> {
    this.#parts.identity.close();
    this.#parts.placed.close();
    this.#parts.acknowledgements.close();
    await this.#parts.link.close();
  }

  /**
   * Copies the outputs that the service holds; forgets here the outputs that were forgotten there.
   */
  async #mirrorOutputs(
    records: readonly MemoryRecord[],
    states: readonly CaptureState[],
    signal: AbortSignal,
  ): Promise<void> {
    const { mirror } = this.#parts;
    const outputs = records.flatMap((record, at) =>
      record.role === 'tool' ? [{ record, state: states[at] }] : [],
    );
    const kept = outputs.filter(({ state }) => state === 'stored' || state === 'duplicate');
    if (kept.length > 0)
      await mirror?.capture(
        kept.map(({ record }) => record),
        signal,
      );
    for (const { record, state } of outputs) {
      // oxlint-disable-next-line no-await-in-loop -- Seldom more than one.
      if (state === 'forgotten') await mirror?.forget(forgetKey(record), signal);
    }
  }

  /** Undefined if the state of the space differs from the acknowledgements. */
  async #holdSome(
    { space, nonce, candidates, asked }: CoverageQuestion,
    signal: AbortSignal,
  ): Promise<readonly Holding[] | undefined> {
    const { operations, acknowledgements, recallMs } = this.#parts;
    const generation = acknowledgements.generationOf(space);
    const sequence = acknowledgements.sequenceOf(space);
    const request: RecallRequest = {
      space,
      max_tokens: 0,
      candidates,
      nonce: Buffer.from(nonce).toString('base64url'),
      ...(generation === undefined ? {} : { if_generation: generation }),
      ...(sequence === undefined ? {} : { min_commit_seq: sequence }),
    };
    const answer = await operations.recall(request, recallMs, signal);
    if (answer.nonce !== request.nonce) throw malformed();
    if (this.#stands(request, answer) !== 'same') return undefined;
    return answer.coverage.flatMap((entry) => {
      const held = asked.get(entry.digest);
      if (held === undefined) throw malformed();
      if (entry.state !== 'durable') {
        acknowledgements.drop(space, held.text);
        return [];
      }
      // A claim with other bytes or no proof is a false proof, and is judged as one.
      const isWhole = entry.bytes === held.bytes && entry.pop !== undefined;
      return [{ digest: held.text, proof: isWhole ? (entry.pop ?? '') : '' }];
    });
  }

  #requestFor(space: string, question: RecallQuestion): RecallRequest {
    const { acknowledgements } = this.#parts;
    const excluded = question.excludeDigests.flatMap(
      (text) => acknowledgements.find(space, text)?.digest ?? [],
    );
    const older = question.olderSpaces?.filter(isSpace).slice(0, OLDER_SPACES_MAX) ?? [];
    const recent = trimmed(question.assistantText, RECENT_CHARS_MAX);
    return {
      space,
      query: {
        text: trimmed(question.humanText, QUERY_CHARS_MAX),
        ...(recent === '' ? {} : { recent: [recent] }),
      },
      asked_at: isoTime(question.now),
      max_tokens: Math.min(question.tokensMax, RECALL_TOKENS_MAX),
      max_items: RECALL_ITEMS_MAX,
      kinds: EVERYTHING_BUT_OUTPUTS,
      ...(older.length === 0 ? {} : { older_spaces: older }),
      ...(question.agent === undefined ? {} : { agent: wireAgent(question.agent) }),
      ...(excluded.length === 0 ? {} : { exclude_digests: excluded.slice(-EXCLUDED_MAX) }),
    };
  }

  async #ask(request: RecallRequest, signal: AbortSignal): Promise<WireAnswer> {
    const { operations, recallMs } = this.#parts;
    const answer = await operations.recall(request, recallMs, signal);
    this.#stands(request, answer);
    return answer;
  }

  #stands(request: RecallRequest, { space, generation, commit_seq }: WireAnswer) {
    if (space !== request.space) throw malformed();
    return this.#parts.acknowledgements.stands(space, generation, commit_seq);
  }
}

function forgetKey(key: RecordKey): ForgetFilter {
  return 'ref' in key ? { refs: [key.ref] } : { refs: [referenceOf(key.digest)], space: key.space };
}

interface HeldText {
  /** The port's digest. */
  readonly text: string;
  readonly bytes: number;
}

interface CoverageQuestion extends HoldQuestion {
  readonly candidates: readonly string[];
  /** By the contract's digest. */
  readonly asked: ReadonlyMap<string, HeldText>;
}

/** Without half a character at the cut: that could not be sent. */
function trimmed(text: string, charsMax: number): string {
  return Buffer.from(text.slice(0, charsMax), 'utf8').toString('utf8').slice(0, charsMax);
}
