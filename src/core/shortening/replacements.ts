/** Replaces the outputs that leave a request by their stubs. */
import type { Edit } from '../plan/item-edits.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import type { ToolOutput } from './outputs.ts';
import { stubOf, writeNote } from './stubs.ts';

/** The stub that replaces an output. */
export interface Replacement {
  readonly output: ToolOutput;
  readonly text: string;
  /** The text in escaped form, as inside the quotes of a JSON string. */
  readonly bytes: Uint8Array;
  /** Estimated tokens that the request is shorter by. */
  readonly saved: number;
}

/** The ways to read a left-out text again that the first stub names. */
export interface NoteStyle {
  /** Where the left-out texts are files; undefined where none are. */
  readonly outputFolder: string | undefined;
  /** Where a service answers for a reference; undefined on a person's own machine. */
  readonly objectsUrl?: string | undefined;
}

/** Tokens that leaving this output out saves in every request. */
export function savedTokens(output: ToolOutput): number {
  return Math.max(0, output.tokens - stubOf(output).tokens);
}

/** In the order of the body. The first stub also explains stubs to the model. */
export function replacementsOf(
  elided: readonly ToolOutput[],
  { outputFolder, objectsUrl }: NoteStyle,
): readonly Replacement[] {
  const inOrder = elided.toSorted((one, other) => one.content.start - other.content.start);
  return inOrder.map((output, at) => {
    const stub = stubOf(output);
    if (at > 0) return { output, text: stub.text, bytes: stub.bytes, saved: savedTokens(output) };
    const text = `${stub.text}${writeNote(outputFolder, objectsUrl)}`;
    const bytes = Buffer.from(JSON.stringify(text).slice(1, -1));
    return { output, text, bytes, saved: Math.max(0, output.tokens - estimateTextTokens(text)) };
  });
}

/** The bytes of each output's text, and no others, become those of its stub. */
export function elisionEdits(replacements: readonly Replacement[]): readonly Edit[] {
  return replacements.map(({ output: { content }, bytes }) => {
    return { start: content.start, end: content.end, bytes };
  });
}
