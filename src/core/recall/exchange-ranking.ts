/**
 * Finds the earlier exchanges that help an agent with a prompt, best first, and how much the prompt
 * shares with them. The unit is the whole exchange: the needed fact is in an answer's conclusion,
 * while the prompt shares words with the request or the middle of the answer. Pure.
 */

export interface RememberedExchange {
  /** Terms of what the person asked and of what the assistant answered; either may be empty. */
  readonly asked: readonly string[];
  readonly answered: readonly string[];
  /** UTF-16 units of the answer. */
  readonly answerChars: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface ExchangeTerm {
  readonly term: string;
  /** Inverse frequency: what an exchange gains that holds the term once. */
  readonly value: number;
  /** Said by the person in this prompt; otherwise it stands around the prompt. */
  readonly isOwn: boolean;
}

export interface ExchangeQuestion {
  readonly terms: readonly ExchangeTerm[];
  readonly now: number;
  /** Exchanges in the memory, about. */
  readonly exchanges: number;
  /** Terms of an exchange and of a request, in the mean. */
  readonly averageTerms: number;
  readonly averageAsked: number;
}

export interface RankedExchange<Kind> {
  readonly exchange: Kind;
  readonly score: number;
}

/** BM25's usual constants: exchanges are long and uneven, unlike passages. */
const K1 = 1.2;
const B = 0.75;
/** A word of the request counts as said twice: the request says what the exchange was about. */
const ASKED_TIMES = 2;
/** A word of the previous answer or of the last prompts, beside 1 for the prompt's own words. */
const AROUND_WEIGHT = 0.35;
/** How much the score by own words and surroundings counts, beside the one by own words alone. */
const WIDE_SHARE = 2;
/** The newer of equally good ones: it is likelier to be still true. */
const NEW_SHARE = 0.3;
/** A short answer concludes nothing. */
const SHORT_ANSWER_CHARS = 150;
const SHORT_ANSWER_PENALTY = 0.3;
/** The signal is the mean of the best few: one lucky match is no subject. */
const SIGNAL_OF = 3;
const DAY_MS = 86_400_000;

export function rankExchanges<Kind extends RememberedExchange>(
  question: ExchangeQuestion,
  exchanges: readonly Kind[],
): { readonly ranked: readonly RankedExchange<Kind>[]; readonly signal: number } {
  const scores = exchanges.map((exchange) => scoresOf(question, exchange));
  const ownMost = Math.max(1e-9, ...scores.map(({ own }) => own));
  const wideMost = Math.max(1e-9, ...scores.map(({ wide }) => wide));
  const ranked = exchanges
    .map((exchange, place) => {
      const { own = 0, wide = 0 } = scores[place] ?? {};
      const days = Math.max(0, question.now - exchange.at) / DAY_MS;
      const score =
        own / ownMost +
        (WIDE_SHARE * wide) / wideMost +
        NEW_SHARE / (1 + days) -
        (exchange.answerChars < SHORT_ANSWER_CHARS ? SHORT_ANSWER_PENALTY : 0);
      return { exchange, score };
    })
    .toSorted((a, b) => b.score - a.score || b.exchange.at - a.exchange.at);
  const best = scores
    .map(({ own }) => own)
    .toSorted((a, b) => b - a)
    .slice(0, SIGNAL_OF);
  const sum = best.reduce((total, own) => total + own, 0);
  return { ranked, signal: sum / SIGNAL_OF / Math.log(2 + question.exchanges) };
}

/** `own`: by the prompt's words, in the exchange and once more in its request alone. */
function scoresOf(
  question: ExchangeQuestion,
  { asked, answered }: RememberedExchange,
): { readonly own: number; readonly wide: number } {
  const inAsked = countsOf(asked);
  const inAnswer = countsOf(answered);
  const length = ASKED_TIMES * asked.length + answered.length;
  const norm = normOf(length, question.averageTerms);
  const askedNorm = normOf(asked.length, question.averageAsked);
  let whole = 0;
  let request = 0;
  let around = 0;
  for (const { term, value, isOwn } of question.terms) {
    const said = inAsked.get(term) ?? 0;
    const count = ASKED_TIMES * said + (inAnswer.get(term) ?? 0);
    if (count === 0) continue;
    const gain = value * saturate(count, norm);
    if (!isOwn) {
      around += AROUND_WEIGHT * gain;
      continue;
    }
    whole += gain;
    request += value * saturate(said, askedNorm);
  }
  return { own: whole + request, wide: whole + around };
}

function normOf(length: number, average: number): number {
  return K1 * (1 - B + (B * length) / Math.max(1, average));
}

function saturate(count: number, norm: number): number {
  return (count * (K1 + 1)) / (count + norm);
}

function countsOf(terms: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}
