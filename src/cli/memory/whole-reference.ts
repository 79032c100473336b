import { isShortReference } from '../../core/memory/reference.ts';
import type { Memory } from '../../ports/memory.ts';
import { CliError } from '../cli-error.ts';
import { oneLine } from '../terminal.ts';

/** The beginning of a reference is enough wherever a person or a model names a memory. */

const TEXT_CHARS = 60;

/** The reference that begins so; as it was given where none does. Throws CliError where several do. */
export async function wholeReference(
  memory: Pick<Memory, 'references' | 'retrieve'>,
  ref: string,
  signal: AbortSignal,
): Promise<string> {
  if (!isShortReference(ref)) return ref;
  const [first, ...others] = await memory.references(ref, signal);
  if (first === undefined) return ref;
  if (others.length === 0) return first;
  const texts = await Promise.all(
    [first, ...others].map(async (one) => {
      const text = (await memory.retrieve({ ref: one }, signal))?.text ?? '';
      return `  ${one}  ${oneLine(text, TEXT_CHARS)}`;
    }),
  );
  throw new CliError(
    ['Several references begin with this:', ...texts],
    'Give more characters of the reference.',
  );
}

/** As `wholeReference`, for each of them. */
export function wholeReferences(
  memory: Pick<Memory, 'references' | 'retrieve'>,
  refs: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  return Promise.all(refs.map((ref) => wholeReference(memory, ref, signal)));
}

/** `ref` as the person gave it. */
export function noSuchReference(ref: string): CliError {
  const isTooShort = /^m_.{0,3}$/.test(ref);
  const hint = isTooShort
    ? 'Give at least 4 characters after m_.'
    : 'Find it with: svc memory search WORDS';
  return new CliError('No memory has this reference.', hint);
}
