/**
 * Collects lines that the model already has: those of the prompt, and those that the block holds so far. Repeating
 * one wastes tokens and another exchange's place.
 */
export class SaidLines {
  /** The shape of the prompt's words (see shapeOf), with a space at both ends. */
  readonly #prompt: string;
  readonly #lines: Line[] = [];

  constructor(prompt: string) {
    this.#prompt = ` ${shapeOf(wordsOf(prompt))} `;
  }

  /**
   * Says whether the model has the line. Numbers of the prompt count as equal: a request that is repeated for each
   * ticket says the same each time.
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

/** Says whether two lines are the same sentence; one of them may be shortened. */
export function isSameLine(one: string, other: string): boolean {
  return isSame(lineOf(one), lineOf(other));
}

/** The words of a line, and whether an ellipsis shortens it. */
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

/** Least length of a shortened line by which it is recognised; a shorter beginning may be that of many lines. */
const CUT_CHARS_MIN = 12;

function holdsFirst(line: string, start: string): boolean {
  return start.length >= CUT_CHARS_MIN && line.startsWith(start);
}

/** Replaces each number by '#'. */
function shapeOf(words: string): string {
  return words.replaceAll(/\p{Nd}+/gu, '#');
}

/** Returns the line without the reference of a shortened title, without marks, in lower case. */
function wordsOf(text: string): string {
  return text
    .replace(/…(?: \(m_[a-z2-7]+\))?$/, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
