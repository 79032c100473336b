import type { Answer } from '../core/answer.ts';
import { captureAssistant, type CapturedText, captureHuman, closedText } from '../core/captures.ts';
import { currentExchange, type Exchange, exchangeBefore } from '../core/exchanges.ts';
import type { Placement } from '../core/injections.ts';
import type { MemoryRecord } from '../ports/memory.ts';
import type { ProxyParts } from './parts.ts';
import type { Reading } from './read-request.ts';

// Exchanges known to be kept, by the conversation up to their first item. 10,000 are months of work;
// forgetting one only means that the store is asked again and answers "duplicate".
const KEPT_MAX = 10_000;

const NOWHERE = { start: 0, number: 0 };

/** Turns finished exchanges into records and puts them into the outbox, each once. */
export class CaptureKeeper {
  readonly #parts: Pick<ProxyParts, 'clock' | 'outbox'>;
  readonly #kept = new Set<string>();

  constructor(parts: Pick<ProxyParts, 'clock' | 'outbox'>) {
    this.#parts = parts;
  }

  /**
   * The newest finished exchange that stands in the request but was never seen happening: its session
   * began before svc did. False when there is none left; unchanged history costs nothing after that.
   * `placements`: the recalled blocks that the request carried; what an answer repeats of them is
   * not kept.
   */
  keepHistory(reading: Reading, placements: readonly Placement[]): boolean {
    const { items } = reading.view;
    let end = items.at(-1)?.soFar.exchange.start ?? 0;
    // The fingerprint before the newest exchange stands for all of the history at once.
    const history = items[end - 1]?.fingerprint;
    if (reading.identity.kind !== 'main' || history === undefined) return false;
    if (this.#kept.has(history)) return false;
    while (end > 0) {
      const { start, number } = items[end - 1]?.soFar.exchange ?? NOWHERE;
      const id = items[start]?.fingerprint ?? '';
      if (!this.#kept.has(id)) {
        const exchange = exchangeBefore(items, end);
        if (exchange !== undefined) {
          this.#keepFinished(reading, { exchange, number }, placements);
        }
        this.#remember(id);
        return true;
      }
      end = start;
    }
    this.#remember(history);
    return false;
  }

  #keepFinished(reading: Reading, place: ExchangePlace, placements: readonly Placement[]): void {
    const { exchange } = place;
    // What the person cut short was not the answer: only their own words are kept.
    const answer = exchange.isOpen || exchange.wasInterrupted ? '' : exchange.assistantText;
    this.#keep(reading, place, [
      captureHuman(exchange.humanText),
      captureAssistant(answer, heardBy(exchange, placements)),
    ]);
  }

  /** Called with a whole answer before the client has its last byte. */
  keepAnswer(reading: Reading, answer: Answer, placements: readonly Placement[]): void {
    if (!answer.isComplete || answer.isFailed) return;
    // The exchange goes on; what the person asked was kept with its first round.
    const goesOn = answer.callsTools && !answer.isCutShort;
    const isLaterRound = reading.view.items.at(-1)?.soFar.exchange.isAnswered === true;
    const place = goesOn && isLaterRound ? undefined : placeOf(reading);
    if (place === undefined) return;
    const { exchange } = place;
    const human = captureHuman(exchange.humanText);
    if (goesOn) {
      this.#keep(reading, place, [human]);
      return;
    }
    const text = answer.isCutShort ? '' : closedText(exchange, answer);
    const heard = heardBy(exchange, placements);
    this.#keep(reading, place, [human, captureAssistant(text, heard)]);
    // Also after one that was cut short: the history does not show that it is not whole.
    this.#remember(reading.view.items[exchange.start]?.fingerprint ?? '');
  }

  /** What the person asked, of an answer that they stopped. */
  keepHuman(reading: Reading): void {
    const place = placeOf(reading);
    if (place !== undefined) {
      this.#keep(reading, place, [captureHuman(place.exchange.humanText)]);
    }
  }

  #keep(
    reading: Reading,
    { exchange, number }: ExchangePlace,
    texts: readonly (CapturedText | undefined)[],
  ): void {
    const fingerprint = fingerprintOf(reading, exchange);
    if (fingerprint === undefined) return;
    const at = this.#parts.clock.now();
    const { branch, place, identity } = reading;
    const records = texts.flatMap((text): MemoryRecord[] =>
      text === undefined
        ? []
        : [
            {
              ...text,
              space: place.space,
              conversation: place.conversation,
              client: identity.client,
              at,
              fingerprint,
              exchange: number,
              ...(branch === undefined ? {} : { branch }),
            },
          ],
    );
    if (records.length > 0) this.#parts.outbox.keep(records);
  }

  #remember(id: string): void {
    this.#kept.add(id);
    if (this.#kept.size <= KEPT_MAX) return;
    const oldest = this.#kept.values().next();
    if (oldest.value !== undefined) this.#kept.delete(oldest.value);
  }
}

interface ExchangePlace {
  readonly exchange: Exchange;
  /** Counts from 0 in its conversation. */
  readonly number: number;
}

/** The newest exchange of a request that memory may keep. */
function placeOf({ identity, view }: Reading): ExchangePlace | undefined {
  if (identity.kind !== 'main') return undefined;
  const exchange = currentExchange(view.items);
  const number = view.items.at(-1)?.soFar.exchange.number;
  return exchange === undefined || number === undefined ? undefined : { exchange, number };
}

function heardBy({ humanText }: Exchange, placements: readonly Placement[]) {
  return { blocks: placements.map(({ block }) => block), question: humanText };
}

/** The conversation up to the exchange's human item; undefined for what precedes the first one. */
function fingerprintOf(reading: Reading, exchange: Exchange): string | undefined {
  return exchange.human === undefined ? undefined : reading.view.items[exchange.human]?.fingerprint;
}
