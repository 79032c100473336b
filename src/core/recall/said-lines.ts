/**
 * Lines that the model has before it already: those of the prompt, and those that the block has so
 * far. To repeat one costs tokens, and a place that another exchange needs.
 */
export class SaidLines {
  readonly #prompt: string;
  readonly #lines: string[] = [];

  constructor(prompt: string) {
    this.#prompt = shapeOf(prompt);
  }

  /** Numbers of the prompt count alike: a request that is made for each ticket says the same each time. */
  has(line: string): boolean {
    const shape = shapeOf(line);
    if (shape === '' || holds(this.#prompt, shape)) return true;
    return this.#lines.some((said) => isSameLine(said, line));
  }

  add(lines: string): void {
    this.#lines.push(...lines.split('\n'));
  }
}

/** Whether both are one sentence, of which one may be cut. */
export function isSameLine(one: string, other: string): boolean {
  const [a, b] = [wordsOf(one), wordsOf(other)];
  if (a === b) return true;
  const isCut = one.includes('…') || other.includes('…');
  return isCut && (holdsFirst(a, b) || holdsFirst(b, a));
}

/** Fewer characters of a cut line may begin many lines. */
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

/** Without the reference of a cut line, marks and case. */
function wordsOf(text: string): string {
  return text
    .replace(/…(?: \(m_[a-z2-7]+\))?$/, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .join(' ');
}
