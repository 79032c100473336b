/**
 * Collects the lines that the model already has: those of the prompt, and those added to the block so far. A repeated
 * line would waste tokens and take the place of another exchange.
 */
export class SaidLines {
  /** The shape of the prompt's words (see shapeOf), with a space at both ends. */
  readonly #prompt: string;
  readonly #lines: Line[] = [];

  constructor(prompt: string) {
    this.#prompt = ` ${shapeOf(wordsOf(prompt))} `;
  }

  /**
   * Says whether the model has the line. For the prompt's lines all numbers count as equal, because a request that is
   * repeated for each ticket differs only in the ticket's number.
   */
  has(line: string): boolean {
    const asked = lineOf(line);
    const { words } = asked;
    if (words === '' || this.#prompt.includes(` ${shapeOf(words)} `)) return true;
    return this.#lines.some((said) => isSame(said, asked));
  }

  add(lines: string): void {
    this.#lines.push(...lines.split('\n').map(lineOf));
  }
}

/**
 * Says whether two lines have the same words. If a line has an ellipsis, it is enough that one of the lines begins with
 * the other, which has CUT_CHARS_MIN characters or more.
 */
export function isSameLine(one: string, other: string): boolean {
  return isSame(lineOf(one), lineOf(other));
}

/** The words of a line, see wordsOf(), and whether the line has an ellipsis. */
interface Line {
  readonly words: string;
  readonly isCut: boolean;
}

function lineOf(line: string): Line {
  return { words: wordsOf(line), isCut: line.includes('…') };
}

function isSame(one: Line, other: Line): boolean {
  if (one.words === other.words) return true;
  const isCut = one.isCut || other.isCut;
  return isCut && (holdsFirst(one.words, other.words) || holdsFirst(other.words, one.words));
}

/** Fewest characters by which the beginning of a line identifies the line: many lines begin with the same few. */
const CUT_CHARS_MIN = 12;

function holdsFirst(line: string, start: string): boolean {
  return start.length >= CUT_CHARS_MIN && line.startsWith(start);
}

/** Replaces each number by '#'. */
function shapeOf(words: string): string {
  return words.replaceAll(/\p{Nd}+/gu, '#');
}

/** Returns the words of a line in lower case, without signs. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
