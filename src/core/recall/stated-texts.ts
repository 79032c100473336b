import type { RequestView } from '../conversation/view.ts';

/**
 * Most bytes that are searched for the client's instructions in each of two places: before the first answer, and behind
 * the messages.
 */
const STATED_BYTES_MAX = 256 * 1024;
/** Least characters of a text that is searched for in the instructions. A shorter one may occur by chance. */
const STATED_CHARS_MIN = 12;

/**
 * Returns a function that says whether a text stands where clients put instructions, such as CLAUDE.md, AGENTS.md and
 * memory files: before the request's first answer, or behind its messages. A full stop or an exclamation mark at the
 * text's end does not count.
 */
export function statedIn({ bytes, items, list }: RequestView): (text: string) => boolean {
  const first = items.find(({ role }) => role === 'assistant')?.start ?? list.end;
  const places = [
    bytes.subarray(0, Math.min(first, STATED_BYTES_MAX)),
    bytes.subarray(list.end, list.end + STATED_BYTES_MAX),
  ];
  return (text) => {
    const escaped = JSON.stringify(text.replace(/[.!]$/, '')).slice(1, -1);
    return escaped.length >= STATED_CHARS_MIN && places.some((place) => place.includes(escaped));
  };
}
