import type { RememberedExchange } from '../../core/recall/exchange-ranking.ts';
import { Vocabulary } from '../../core/recall/vocabulary.ts';
import type { RecalledProvenance, SpeakerRole } from '../../ports/memory.ts';
import { filesFrom } from './provenance.ts';
import type { ExchangeParts, ExchangePlace, RecallSource, SpokenText } from './recall-source.ts';
import type { Steps } from './steps.ts';

/** Reads whole exchanges: their terms for ranking, their texts for quoting. */

export interface Exchange extends RememberedExchange {
  /** The conversation's id and the number of the exchange in it. */
  readonly conversation: number;
  readonly number: number;
  /** Ids of its records. */
  readonly records: readonly number[];
  /** Equal for exchanges of the same words. */
  readonly words: string;
}

export interface ExchangeTexts {
  readonly asked: string;
  readonly answered: string;
  /** It is not verified that a person said `asked`. */
  readonly isUnverified: boolean;
  /** The reference of the answer, or of the request where no answer is held. */
  readonly ref: string;
  /** The references of all its records. */
  readonly records: readonly string[];
  readonly space: string;
  readonly client: string;
  readonly at: number;
  /** Where it comes from, as far as that is known. */
  readonly provenance: RecalledProvenance | undefined;
}

/** Exchanges that are remembered: some 4 kB each. A project's prompts find the same ones again. */
const REMEMBERED_MAX = 512;

export class ExchangeReader {
  readonly #source: RecallSource;
  #generation: string | undefined;
  /** By conversation and number; only those that have their answer, since nothing is added to them. */
  readonly #known = new Map<string, Exchange>();
  #vocabulary = new Vocabulary();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /** Numbers the words of the exchanges that were read last. */
  get vocabulary(): Vocabulary {
    return this.#vocabulary;
  }

  /** The exchanges of these passages, at most `most` of them, in the passages' order. */
  *ofPassages(ids: readonly number[], most: number): Steps<Exchange[]> {
    this.#dropStale();
    const places = yield* this.#source.exchangesOf(ids, most);
    const unknown = places.filter((place) => !this.#known.has(keyOf(place)));
    const read = new Map<string, Exchange>();
    if (unknown.length > 0) {
      for (const row of yield* this.#source.readExchanges(unknown)) {
        const one = exchangeOf(row, this.#vocabulary);
        read.set(keyOf(row), one);
        if (one.asked.length > 0 && one.answered.length > 0) this.#known.set(keyOf(row), one);
      }
    }
    return places.flatMap((place) => this.#known.get(keyOf(place)) ?? read.get(keyOf(place)) ?? []);
  }

  #dropStale(): void {
    const generation = this.#source.generation();
    const isFull = this.#known.size > REMEMBERED_MAX;
    if (generation !== undefined && generation === this.#generation && !isFull) return;
    this.#generation = generation;
    this.#known.clear();
    this.#vocabulary = new Vocabulary();
  }

  /** By the exchange's place in `exchanges`; one whose records are gone has no texts. */
  *texts(exchanges: readonly Pick<Exchange, 'records'>[]): Steps<(ExchangeTexts | undefined)[]> {
    const ids = exchanges.flatMap(({ records }) => records);
    const rows = yield* this.#source.readRecords(ids);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return exchanges.map(({ records }) => textsOf(records.flatMap((id) => byId.get(id) ?? [])));
  }
}

function keyOf({ conversation, exchange }: Omit<ExchangePlace, 'record'>): string {
  return `${conversation} ${exchange}`;
}

function exchangeOf(
  { conversation, exchange, at, branch, parts }: ExchangeParts,
  vocabulary: Vocabulary,
): Exchange {
  const asked: number[] = [];
  const answered: number[] = [];
  const records = new Set<number>();
  let answerChars = 0;
  /** Where each passage of the answer begins among its words, and its size. */
  const passages: { readonly from: number; readonly chars: number }[] = [];
  for (const { speaker, record, chars, terms } of parts) {
    records.add(record);
    if (speaker === 'answer') {
      answerChars += chars;
      passages.push({ from: answered.length, chars });
    }
    // An unverified request weighs no more than an answer, and concludes nothing.
    const list = speaker === 'person' ? asked : answered;
    for (const term of terms) list.push(vocabulary.numberOf(term));
  }
  return {
    conversation,
    number: exchange,
    at,
    branch: branch ?? '',
    asked: Uint32Array.from(asked),
    answered: Uint32Array.from(answered),
    answerChars,
    isUnverified: parts.some(({ speaker }) => speaker === 'unverified'),
    concludedFrom: conclusionIn(passages),
    records: [...records],
    words: [asked.length, hashOf(asked), answered.length, hashOf(answered)].join(' '),
  };
}

/** The last passages of an answer: what it concludes. */
const CONCLUSION_CHARS = 1000;

function conclusionIn(
  passages: readonly { readonly from: number; readonly chars: number }[],
): number {
  let chars = 0;
  for (const passage of passages.toReversed()) {
    chars += passage.chars;
    if (chars >= CONCLUSION_CHARS) return passage.from;
  }
  return 0;
}

/** FNV-1a over numbers. */
function hashOf(numbers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x01000193);
  return hash >>> 0;
}

function textsOf(rows: readonly SpokenText[]): ExchangeTexts | undefined {
  const request = rows.find(({ role }) => role === 'user');
  const answer = rows.find(({ role }) => role === 'assistant');
  const main = answer ?? request;
  if (main === undefined) return undefined;
  const { ref, space, client, at } = main;
  return {
    asked: saidBy('user', rows),
    answered: saidBy('assistant', rows),
    isUnverified: rows.some(({ source }) => source === 'unverified'),
    ref,
    records: rows.map((row) => row.ref),
    space,
    client,
    at,
    provenance: provenanceOf(rows),
  };
}

function provenanceOf(rows: readonly SpokenText[]): RecalledProvenance | undefined {
  for (const { root, files } of rows) {
    if (root !== null && files !== null) return { root, files: filesFrom(files) };
  }
  return undefined;
}

/** Imported memories may have several texts of one role in an exchange. */
function saidBy(role: SpeakerRole, rows: readonly SpokenText[]): string {
  return rows
    .filter((row) => row.role === role)
    .map(({ text }) => text)
    .join('\n\n');
}
