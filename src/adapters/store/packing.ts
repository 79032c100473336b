import { estimateTextTokens } from '../../core/bytes/tokens.ts';
import { onlyAsks } from '../../core/recall/sentences.ts';
import type { Ranked } from '../../core/recall/ranked.ts';
import { orderParts } from '../../core/recall/ranking.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { RecallSource } from './recall-source.ts';
import type { Steps } from './steps.ts';
import type { Unit } from './units.ts';

/**
 * Reads the texts of ranked passages and packs the best into a budget. A passage that only asks
 * comes with its answer, or not at all.
 */

/** Passages whose texts are read together; 512 tokens hold about 14. */
const PACKED_AT_ONCE = 16;
/** Its dash and line end; the block decides in the end what fits. */
const PASSAGE_OVERHEAD_TOKENS = 2;
/** Nothing that says something fits into what is left. */
const FULL_SHARE = 0.97;

export interface ScoredPassage {
  readonly id: number;
  readonly score: number;
  /** The passage that answers it; undefined where nothing does. */
  readonly answer: number | undefined;
}

type Text = Omit<RecalledPassage, 'score'>;

/** The passages of what was ranked, best first. */
export function partsOf(ranked: readonly Ranked<Unit>[]): ScoredPassage[] {
  return orderParts(ranked).flatMap(({ candidate, part, score }) => {
    const id = candidate.passages[part];
    const answer = candidate.passages[part + 1] ?? candidate.answer;
    return id === undefined ? [] : [{ id, score, answer }];
  });
}

export function* pack(
  source: Pick<RecallSource, 'texts'>,
  parts: readonly ScoredPassage[],
  tokensMax: number,
): Steps<RecalledPassage[]> {
  const packed = new Map<number, RecalledPassage>();
  let tokens = 0;
  for (let at = 0; at < parts.length; at += PACKED_AT_ONCE) {
    const some = parts.slice(at, at + PACKED_AT_ONCE);
    const texts = new Map(yield* source.texts(some.map(({ id }) => id)));
    // Few passages only ask: the others need no answer.
    const answers = some.flatMap(({ id, answer }) =>
      answer === undefined || texts.has(answer) || !needsAnswer(texts.get(id)) ? [] : [answer],
    );
    const answered = answers.length === 0 ? [] : yield* source.texts(answers);
    for (const [id, text] of answered) texts.set(id, text);
    for (const part of some) {
      const fresh = togetherWith(part, texts).filter(
        ({ id, text }) => !packed.has(id) && !isIn([...packed.values()], text),
      );
      const more = fresh.reduce((sum, { text }) => sum + tokensOf(text.text), 0);
      // A shorter one further down may still fit.
      if (fresh.length === 0 || tokens + more > tokensMax) continue;
      tokens += more;
      for (const { id, text } of fresh) packed.set(id, { ...text, score: part.score });
    }
    if (tokens > FULL_SHARE * tokensMax) break;
  }
  return [...packed.values()];
}

/** The passage, with its answer if it is only a question; empty if the question has no answer. */
function togetherWith(
  { id, answer }: ScoredPassage,
  texts: ReadonlyMap<number, Text>,
): { readonly id: number; readonly text: Text }[] {
  const text = texts.get(id);
  if (text === undefined) return [];
  if (!needsAnswer(text)) return [{ id, text }];
  const answered = answer === undefined ? undefined : texts.get(answer);
  if (answer === undefined || answered === undefined) return [];
  // Between people each says something of their own.
  if (answered.role === 'user') return [{ id, text }];
  return [
    { id, text },
    { id: answer, text: answered },
  ];
}

function needsAnswer(text: Text | undefined): boolean {
  return text?.role === 'user' && onlyAsks(text.text);
}

/** Several spaces of a project may hold the same. */
export function isIn(
  told: readonly RecalledPassage[],
  { digest, text }: Pick<RecalledPassage, 'digest' | 'text'>,
): boolean {
  return told.some((one) => one.digest === digest && one.text === text);
}

export function tokensOf(text: string): number {
  return estimateTextTokens(text) + PASSAGE_OVERHEAD_TOKENS;
}
