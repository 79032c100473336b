import { applyEdits, modify, parse, type ParseError } from 'jsonc-parser';

/** Parses JSON with comments and trailing commas; undefined if it is invalid. */
export function parseJsonText(text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  return errors.length === 0 ? value : undefined;
}

/**
 * Says why JSON.parse() refuses the text: 'relaxed' means that it has comments or trailing commas, 'invalid' that it is
 * no JSON. Undefined if it is plain JSON.
 */
export function jsonFault(text: string): 'relaxed' | 'invalid' | undefined {
  try {
    JSON.parse(text.replace(/^\uFEFF/, ''));
    return undefined;
  } catch {
    return parseJsonText(text) === undefined ? 'invalid' : 'relaxed';
  }
}

/**
 * Returns the text with `value` at `path`; undefined removes the member. A number in `path` is an index in a list, and
 * -1 appends. Comments and the order of members stay; the layout around the edit may change.
 */
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
