import { termsOf } from '../recall/terms.ts';

/**
 * Takes out of an answer what it only repeats from recalled memories. An echo that is stored comes
 * back twice next time, and after ten sessions the memory is full of itself.
 *
 * Linear in the answer; what a recalled block holds is bounded by its budget.
 */

// A sentence that holds a fourth of new words says more than it repeats.
const REPEATED_SHARE = 0.75;
// What is left must say something of its own: three words are "as you said".
const OWN_TERMS_MIN = 4;

/** Stems of the words with which people and models point at what was said before. */
const POINTING_WORDS: ReadonlySet<string> = new Set(
  `accord alreadi ask assist base convers earlier entri found histori know memori mention note previou
  previous record recal rememb said sai says session state stord store svc tell told user background`.split(
    /\s+/,
  ),
);

export interface Heard {
  /** The recalled blocks that the request carried, as they were written. */
  readonly blocks: readonly string[];
  /** What the person asked: repeating the question is no news either. */
  readonly question: string;
}

/** The text without its echoes; as it is when it has none, '' when nothing else is in it. */
export function withoutEchoes(text: string, { blocks, question }: Heard): string {
  const memories = blocks.flatMap(memoriesIn);
  if (memories.length === 0) return text;
  const asked = new Set(termsOf(question));
  const kept: string[] = [];
  const own = new Set<string>();
  let hasEcho = false;
  for (const sentence of sentencesOf(text)) {
    const terms = [...new Set(termsOf(sentence))].filter(
      (term) => !asked.has(term) && !POINTING_WORDS.has(term),
    );
    if (isEcho(terms, memories)) {
      hasEcho = true;
      continue;
    }
    kept.push(sentence);
    for (const term of terms) own.add(term);
  }
  if (!hasEcho) return text;
  return own.size < OWN_TERMS_MIN ? '' : kept.join('').trim();
}

function isEcho(terms: readonly string[], memories: readonly ReadonlySet<string>[]): boolean {
  if (terms.length === 0) return false;
  return memories.some((memory) => {
    const held = terms.filter((term) => memory.has(term)).length;
    return held >= REPEATED_SHARE * terms.length;
  });
}

/** The terms of each memory in a block: an entry begins with a dash, its later lines are indented. */
function memoriesIn(block: string): ReadonlySet<string>[] {
  return block
    .split('\n- ')
    .slice(1)
    .map((entry) => new Set(termsOf(entry)));
}

/** With what stands between them, so that joined they are the text. */
function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.!?]\s|[。！？\n])/u);
}
