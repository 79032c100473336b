import { applyEdits, modify, parse, type ParseError } from 'jsonc-parser';

/** Edits a JSON text and keeps its comments and order. The layout around an edit may change. */

/** Parses JSON with comments and trailing commas; undefined if it is invalid. */
export function parseJsonText(text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  return errors.length === 0 ? value : undefined;
}

/** Says why a parser of plain JSON refuses the text; undefined if it accepts it. */
export function jsonFault(text: string): 'relaxed' | 'invalid' | undefined {
  try {
    JSON.parse(text.replace(/^\uFEFF/, ''));
    return undefined;
  } catch {
    return parseJsonText(text) === undefined ? 'invalid' : 'relaxed';
  }
}

/** Sets `value` at `path` in the text; undefined removes it. A number is an index in a list, and -1 appends. */
export function withJsonValue(
  text: string,
  path: readonly (string | number)[],
  value: unknown,
): string {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ';
  const formattingOptions = {
    insertSpaces: !indent.includes('\t'),
    tabSize: indent.includes('\t') ? 1 : indent.length,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  };
  return applyEdits(text, modify(text, [...path], value, { formattingOptions }));
}
