import { isSpoken, isStorable } from '../../src/core/memory/record.ts';
import { cutPassages, passageTokens } from '../../src/core/recall/passages.ts';
import { readQuestion } from '../../src/core/recall/question.ts';
import { rankCandidates } from '../../src/core/recall/ranking.ts';
import { keepRelevant, rarityOf } from '../../src/core/recall/relevance.ts';
import { OUTPUT_PLACE, referenceOf } from '../../src/core/memory/reference.ts';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import { termsOf } from '../../src/core/recall/terms.ts';
import {
  type CaptureState,
  type ForgetFilter,
  type Holding,
  type HoldQuestion,
  type ListFilter,
  type Memory,
  type MemoryRecord,
  type RecallAnswer,
  type RecalledPassage,
  type RecallQuestion,
  type RecordKey,
  REFERENCES_MAX,
  type SpeakerRole,
  type SpokenRecord,
  type StoredRecord,
} from '../../src/ports/memory.ts';
import { MemoryError, type MemoryFailure } from '../../src/core/errors.ts';

/** A memory in memory, which keeps the contract and can be made to fail. */
export class FakeMemory implements Memory {
  readonly supports = { kind: 'fake', read: true, write: true } as const;
  readonly #records = new Map<string, SpokenRecord>();
  readonly #outputs = new Map<string, StoredRecord<'tool'>>();
  readonly #tombstones = new Set<string>();
  #isClosed = false;
  /** Every call fails so while it is set. */
  failure: MemoryFailure | undefined;
  /** Milliseconds before every answer. */
  delayMs = 0;
  /** Everything that capture was given, in order. */
  readonly captured: MemoryRecord<SpeakerRole>[] = [];
  readonly questions: RecallQuestion[] = [];

  async recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    await this.#answerable(signal);
    this.questions.push(question);
    const passages = this.#passagesFor(question);
    const asked = readQuestion(question.humanText, question.assistantText, question.now);
    const words = asked.human.length > 1 ? asked.human : [...asked.human, ...asked.assistant];
    const terms = words.map((term) => {
      const frequency = passages.filter((one) => one.terms.includes(term)).length;
      return { term, weight: 1, frequency, rarity: rarityOf(term, frequency, passages.length) };
    });
    const candidates = passages.map(({ record, terms: own, id }) => {
      const { role, at } = record;
      const around = { previous: [], next: [], earlier: [], later: [] };
      return { id, record: id, role, at, terms: own, parts: [], ...around };
    });
    const corpus = { passages: passages.length, averageTerms: 10 };
    const found: RecalledPassage[] = [];
    let tokens = 0;
    const given = { ...asked, terms };
    for (const ranked of keepRelevant(rankCandidates(given, candidates, corpus), asked)) {
      const passage = passages[ranked.candidate.id];
      if (passage === undefined) continue;
      tokens += passageTokens(passage.text) + 12;
      if (tokens > question.tokensMax) break;
      const { ref, digest, space, role, at, client, source } = passage.record;
      const told = {
        ref,
        digest,
        space,
        role,
        text: passage.text,
        at,
        client,
        score: ranked.score,
      };
      found.push({ ...told, ...(source === undefined ? {} : { source }) });
    }
    return { passages: found };
  }

  async capture(records: readonly MemoryRecord[], signal: AbortSignal): Promise<CaptureState[]> {
    await this.#answerable(signal);
    this.captured.push(...records.filter(isSpoken));
    return records.map((record) =>
      isSpoken(record) ? this.#captureOne(record) : this.#keepOutput(record),
    );
  }

  async retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    await this.#answerable(signal);
    return [...this.#records.values(), ...this.#outputs.values()].find((record) =>
      'ref' in key
        ? record.ref === key.ref
        : record.digest === key.digest && record.space === key.space,
    );
  }

  async list(filter: ListFilter, signal: AbortSignal): Promise<SpokenRecord[]> {
    await this.#answerable(signal);
    const offset = filter.offset ?? 0;
    return this.#matching(filter)
      .toSorted((a, b) => b.at - a.at)
      .slice(offset, offset + filter.limit);
  }

  async references(start: string, signal: AbortSignal): Promise<string[]> {
    await this.#answerable(signal);
    const refs = [...this.#records.values(), ...this.#outputs.values()].map(({ ref }) => ref);
    const found = new Set(refs.filter((ref) => ref.startsWith(start)));
    return [...found].toSorted().slice(0, REFERENCES_MAX);
  }

  async forget(filter: ForgetFilter, signal: AbortSignal): Promise<number> {
    await this.#answerable(signal);
    const outputs = [...this.#outputs.values()].filter(({ ref, space }) => {
      if ('words' in filter) return false;
      const isNamed = !('refs' in filter) || filter.refs.includes(ref);
      return isNamed && (filter.space ?? space) === space;
    });
    const records = [...this.#matching(filter), ...outputs];
    for (const record of records) {
      this.#tombstones.add(keyOf(record));
      this.#records.delete(keyOf(record));
      this.#outputs.delete(keyOf(record));
    }
    return records.length;
  }

  async hold({ space, digests, nonce }: HoldQuestion, signal: AbortSignal): Promise<Holding[]> {
    await this.#answerable(signal);
    return digests.flatMap((digest) => {
      const key = keyOf({ digest, space });
      const kept = this.#outputs.get(key) ?? this.#records.get(key);
      const proof = kept === undefined ? undefined : textProof(nonce, kept.role, kept.text);
      return proof === undefined ? [] : [{ digest, proof }];
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #keepOutput(record: MemoryRecord): CaptureState {
    if (!isStorable(record)) return 'rejected';
    if (this.#tombstones.has(keyOf(record))) return 'forgotten';
    if (this.#outputs.has(keyOf(record))) return 'duplicate';
    const ref = referenceOf(record.digest);
    this.#outputs.set(keyOf(record), { ...record, ...OUTPUT_PLACE, ref });
    return 'stored';
  }

  async #answerable(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new MemoryError('timeout', 'aborted');
    if (this.#isClosed) throw new MemoryError('unavailable', 'closed');
    if (this.delayMs > 0) {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, this.delayMs);
        signal.addEventListener('abort', () => {
          clearTimeout(timer);
          reject(new MemoryError('timeout', 'aborted'));
        });
      });
    }
    if (this.failure !== undefined) throw new MemoryError(this.failure, 'made to fail');
  }

  #captureOne(record: MemoryRecord<SpeakerRole>): CaptureState {
    if (!isStorable(record)) return 'rejected';
    const key = keyOf(record);
    if (this.#tombstones.has(key)) return 'forgotten';
    const { isTimed, ...stored } = record;
    const held = this.#records.get(key);
    if (held === undefined) {
      this.#records.set(key, { ...stored, ref: referenceOf(record.digest) });
      return 'stored';
    }
    const { source, ...again } = held;
    const at = isTimed === true ? Math.max(held.at, record.at) : held.at;
    const isMarked = source !== undefined && record.source !== undefined;
    this.#records.set(key, { ...again, at, ...(isMarked ? { source } : {}) });
    return 'duplicate';
  }

  #matching(filter: Omit<ListFilter, 'limit'>): SpokenRecord[] {
    const words = filter.words === undefined ? undefined : termsOf(filter.words);
    return [...this.#records.values()].filter((record) => {
      const terms = new Set(termsOf(record.text));
      return (
        (filter.refs ?? [record.ref]).includes(record.ref) &&
        (filter.space ?? record.space) === record.space &&
        (filter.role ?? record.role) === record.role &&
        (filter.conversation ?? record.conversation) === record.conversation &&
        record.at >= (filter.since ?? -Infinity) &&
        record.at <= (filter.until ?? Infinity) &&
        (words === undefined || (words.length > 0 && words.every((word) => terms.has(word))))
      );
    });
  }

  #passagesFor(
    question: RecallQuestion,
  ): { id: number; record: SpokenRecord; text: string; terms: string[] }[] {
    return [...this.#records.values()]
      .filter(({ space, digest }) => {
        const isHere = space === question.space || space === 'global';
        return isHere && !question.excludeDigests.includes(digest);
      })
      .flatMap((record) =>
        cutPassages(record.text).map(({ start, end }) => ({
          record,
          text: record.text.slice(start, end),
          terms: termsOf(record.text.slice(start, end)),
        })),
      )
      .map((passage, id) => ({ ...passage, id }));
  }
}

function keyOf({ digest, space }: Pick<MemoryRecord, 'digest' | 'space'>): string {
  return `${digest} ${space}`;
}
