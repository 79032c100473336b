import { EVERYDAY_WORDS } from '../recall/relevance.ts';
import { stem } from '../recall/stemming.ts';
import { termsOf } from '../recall/terms.ts';

/**
 * Recognises a sentence that changes a memory by one ordinary word: "the cache lives in memcached"
 * beside "the cache lives in redis". Every other word of it is known, so a share of known words takes
 * it for an echo. Other words for the same thing ("is kept in redis") are no correction.
 */

/** Words with which people say the same again, beside those of everyday work. */
const RETELLING_WORDS: ReadonlySet<string> = new Set(
  `actually additionally always answer available based basically belongs both briefly called chosen
  claimed comes configured confirmed consists contains correct currently defined depends details
  delivered exactly exists finally following found fully goes handles hence holds host hosted hosting hosts info
  informed known located main mainly maintains managed manages mostly named namely normally originally
  owned owner owns part previously provided reachable refers responsible respectively safely setup
  sits sent situated stays stands still stored stores summary supposed thing today together total typically
  usually via way works yet`
    .split(/\s+/)
    .map(stem),
);

/** "x over y" is not "y over x". */
const CONTRAST =
  /(\p{L}[\p{L}\p{N}_-]*)\s+(over|than|before|after|to|into)\s+(?=(\p{L}[\p{L}\p{N}_-]*))/giu;
const CLAUSE_END = /[,;:()—–]|\s(?:and|while|but|whereas|und|aber)\s/u;
const STATEMENT_END = /\n|(?<=[.!?])\s/u;
/** With one word in common two statements are about different things. */
const SHARED_MIN = 2;

/** The sentences of a request's memories, to compare an answer with. */
export class Statements {
  /** The terms of each sentence, in their order. */
  readonly #statements: readonly (readonly string[])[];
  readonly #known: ReadonlySet<string>;
  readonly #contrasts: ReadonlySet<string>;

  constructor(memories: readonly string[]) {
    const sentences = memories.flatMap((memory) => memory.split(STATEMENT_END));
    this.#statements = sentences.map((sentence) => termsOf(sentence));
    this.#known = new Set(this.#statements.flat());
    this.#contrasts = new Set(sentences.flatMap((sentence) => contrastsIn(sentence)));
  }

  /** `isIgnored`: words of the question, and those that only point at what was said. */
  areCorrectedBy(sentence: string, isIgnored: (term: string) => boolean): boolean {
    const turned = contrastsIn(sentence, true);
    if (turned.some((contrast) => this.#contrasts.has(contrast))) return true;
    return sentence
      .split(CLAUSE_END)
      .some((clause) => this.#isCorrection(termsOf(clause), isIgnored));
  }

  #isCorrection(clause: readonly string[], isIgnored: (term: string) => boolean): boolean {
    const terms = clause.filter((term) => this.#known.has(term) || !isIgnored(term));
    const said = new Set(terms);
    const shared = terms.filter((term) => this.#known.has(term));
    if (new Set(shared).size < SHARED_MIN || shared.length === terms.length) return false;
    const alike = this.#statements.filter(
      (statement) => new Set(statement.filter((term) => said.has(term))).size >= SHARED_MIN,
    );
    if (alike.length === 0) return false;
    let next = 0;
    return terms.some((term) => {
      if (this.#known.has(term)) next += 1;
      if (!this.#isNew(term)) return false;
      // The known words on both sides: those before it were counted, and the next one is beside them.
      const [before, after] = [shared[next - 1], shared[next]];
      return alike.some((statement) =>
        betweenIn(statement, before, after).some((replaced) => !said.has(replaced)),
      );
    });
  }

  #isNew(term: string): boolean {
    return !this.#known.has(term) && !RETELLING_WORDS.has(term) && !EVERYDAY_WORDS.has(term);
  }
}

/** The terms between two neighbours; beside the one, where only one is known. */
function betweenIn(
  statement: readonly string[],
  before: string | undefined,
  after: string | undefined,
): readonly string[] {
  const from = before === undefined ? -1 : statement.indexOf(before);
  const to = after === undefined ? -1 : statement.indexOf(after, from + 1);
  if (from !== -1 && to !== -1) return statement.slice(from + 1, to);
  if (from !== -1 && after === undefined) return statement.slice(from + 1, from + 2);
  if (to > 0 && before === undefined) return statement.slice(to - 1, to);
  return [];
}

/** `isTurned`: with the two sides in each other's place. */
function contrastsIn(sentence: string, isTurned = false): string[] {
  return Array.from(sentence.matchAll(CONTRAST), ([, left = '', word = '', right = '']) => {
    const sides = [left, right].map((side) => termsOf(side).join(' '));
    return [word.toLowerCase(), ...(isTurned ? sides.toReversed() : sides)].join('\n');
  });
}
