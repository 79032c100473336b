/** Replaces left-out tool outputs by stubs: one line each, which says what was left out (see stubs.ts). */
import type { Edit } from '../plan/item-edits.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import type { ToolOutput } from './outputs.ts';
import { stubOf, writeNote } from './stubs.ts';

export interface Replacement {
  readonly output: ToolOutput;
  readonly text: string;
  /** The escaped text for the inside of a JSON string. */
  readonly bytes: Uint8Array;
  /** Estimated tokens by which the request is shorter. */
  readonly saved: number;
}

/** Where the model can read left-out texts again, besides with svc's own commands. The first stub names it. */
export interface NoteStyle {
  /** The folder with the left-out texts as files; undefined if there is none. */
  readonly outputFolder: string | undefined;
  /** The URL, without the reference, at which a service returns texts; undefined on a user's own machine. */
  readonly objectsUrl?: string | undefined;
}

/** Returns the tokens that leaving out this output saves in every request. */
export function savedTokens(output: ToolOutput): number {
  return Math.max(0, output.tokens - stubOf(output).tokens);
}

/** Returns the stubs in the order of the body. The first one also tells the model how to read left-out texts. */
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

/** Returns the edits that replace the text of each output by its stub. */
export function elisionEdits(replacements: readonly Replacement[]): readonly Edit[] {
  return replacements.map(({ output: { content }, bytes }) => {
    return { start: content.start, end: content.end, bytes };
  });
}
