/**
 * Collects lines that the model already has: those of the prompt, and those that the block holds so far. Repeating
 * one wastes tokens and another exchange's place.
 */
export class SaidLines {
  readonly #prompt: string;
  readonly #lines: string[] = [];

  constructor(prompt: string) {
    this.#prompt = shapeOf(prompt);
  }

  /**
   * Says whether the model has the line. Numbers of the prompt count as equal: a request that is repeated for each
   * ticket says the same each time.
   */
  has(line: string): boolean {
    const shape = shapeOf(line);
    if (shape === '' || holds(this.#prompt, shape)) return true;
    return this.#lines.some((said) => isSameLine(said, line));
  }

  add(lines: string): void {
    this.#lines.push(...lines.split('\n'));
  }
}

/** Says whether two lines are the same sentence; one of them may be shortened. */
export function isSameLine(one: string, other: string): boolean {
  const [a, b] = [wordsOf(one), wordsOf(other)];
  if (a === b) return true;
  const isCut = one.includes('…') || other.includes('…');
  return isCut && (holdsFirst(a, b) || holdsFirst(b, a));
}

/** Least length of a shortened line by which it is recognised; a shorter beginning may be that of many lines. */
const CUT_CHARS_MIN = 12;

function holdsFirst(line: string, start: string): boolean {
  return start.length >= CUT_CHARS_MIN && line.startsWith(start);
}

function holds(prompt: string, shape: string): boolean {
  return ` ${prompt} `.includes(` ${shape} `);
}

function shapeOf(text: string): string {
  return wordsOf(text).replaceAll(/\p{Nd}+/gu, '#');
}

/** Returns the line without the reference of a shortened title, without marks, in lower case. */
function wordsOf(text: string): string {
  return text
    .replace(/…(?: \(m_[a-z2-7]+\))?$/, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .join(' ');
}
