import type { Answer } from '../core/answer.ts';
import { captureAssistant, type CapturedText, captureHuman, closedText } from '../core/captures.ts';
import type { Exchange } from '../core/exchanges.ts';
import type { Placement } from '../core/injections.ts';
import type { ProxySettings } from '../core/settings.ts';
import type { MemoryRecord } from '../ports/memory.ts';
import type { ProxyParts } from './parts.ts';
import type { Reading } from './read-request.ts';

// Exchanges known to be kept, by the conversation so far. 10,000 are months of work; forgetting one
// only means that the store is asked again and answers "duplicate".
const KEPT_MAX = 10_000;

/** Turns finished exchanges into records and puts them into the outbox, each once. */
export class CaptureKeeper {
  readonly #parts: Pick<ProxyParts, 'clock' | 'outbox'>;
  readonly #kept = new Set<string>();

  constructor(parts: Pick<ProxyParts, 'clock' | 'outbox'>) {
    this.#parts = parts;
  }

  /**
   * Finished exchanges that stand in the request but were never seen happening: a session that began
   * before svc did. A few per request, oldest first; unchanged history costs nothing after that.
   * `placements`: the recalled blocks that the request carries; what an answer repeats of them is
   * not kept.
   */
  keepHistory(
    reading: Reading,
    settings: Pick<ProxySettings, 'elisionCaptureLimit'>,
    placements: readonly Placement[],
  ): void {
    if (reading.identity.kind !== 'main') return;
    let room = settings.elisionCaptureLimit;
    for (const [index, exchange] of reading.exchanges.slice(0, -1).entries()) {
      if (room === 0) return;
      const id = exchangeId(reading, exchange);
      if (id === undefined || this.#kept.has(id)) continue;
      room -= 1;
      // What the person cut short was not the answer: only their own words are kept.
      const answer = exchange.isOpen || exchange.wasInterrupted ? '' : exchange.assistantText;
      this.#keep(reading, index, [
        captureHuman(exchange.humanText),
        captureAssistant(answer, heardBy(exchange, placements)),
      ]);
      this.#remember(id);
    }
  }

  /** Called with a whole answer before the client has its last byte. */
  keepAnswer(reading: Reading, answer: Answer, placements: readonly Placement[]): void {
    if (reading.identity.kind !== 'main') return;
    const index = reading.exchanges.length - 1;
    const exchange = reading.exchanges[index];
    if (exchange === undefined || !answer.isComplete || answer.isFailed) return;
    if (answer.isCutShort) {
      this.#keep(reading, index, [captureHuman(exchange.humanText)]);
      return;
    }
    const human = captureHuman(exchange.humanText);
    if (answer.callsTools) {
      // The exchange goes on; what the person asked is kept with its first round.
      if (exchange.assistantText === '' && !exchange.hasToolState)
        this.#keep(reading, index, [human]);
      return;
    }
    const heard = heardBy(exchange, placements);
    this.#keep(reading, index, [human, captureAssistant(closedText(exchange, answer), heard)]);
    const id = exchangeId(reading, exchange);
    if (id !== undefined) this.#remember(id);
  }

  keepHuman(reading: Reading): void {
    if (reading.identity.kind !== 'main') return;
    const index = reading.exchanges.length - 1;
    const exchange = reading.exchanges[index];
    if (exchange !== undefined) this.#keep(reading, index, [captureHuman(exchange.humanText)]);
  }

  #keep(reading: Reading, index: number, texts: readonly (CapturedText | undefined)[]): void {
    const exchange = reading.exchanges[index];
    const fingerprint = exchange === undefined ? undefined : exchangeId(reading, exchange);
    if (fingerprint === undefined) return;
    const at = this.#parts.clock.now();
    const records = texts.flatMap((text): MemoryRecord[] =>
      text === undefined
        ? []
        : [
            {
              ...text,
              space: reading.place.space,
              conversation: reading.place.conversation,
              client: reading.identity.client,
              at,
              fingerprint,
              exchange: index,
              ...(reading.branch === undefined ? {} : { branch: reading.branch }),
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

function heardBy({ humanText }: Exchange, placements: readonly Placement[]) {
  return { blocks: placements.map(({ block }) => block), question: humanText };
}

/** The conversation up to the exchange's human item; undefined for what precedes the first one. */
function exchangeId(reading: Reading, exchange: Exchange): string | undefined {
  return exchange.human === undefined ? undefined : reading.view.items[exchange.human]?.fingerprint;
}
