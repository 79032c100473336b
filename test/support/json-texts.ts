import * as fc from 'fast-check';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';

/**
 * JSON as texts, not values: with the spacing, escapes, number forms and repeated keys that a parser
 * forgets and a proxy must not.
 */

export const space = fc.constantFrom('', '', '', ' ', '\n  ', '\t', '\r\n');

export const stringText = fc.oneof(
  fc.string({ unit: 'binary' }).map((value) => JSON.stringify(value)),
  fc
    .string({ unit: 'grapheme', minLength: 20, maxLength: 60 })
    .map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '""',
    '"\\\\"',
    '"\\""',
    '"\\\\\\""',
    '"{[,:]}"',
    '"\\u0041\\/\\ud83d"',
    '"中😀é"',
    `"${'x'.repeat(40)}\\"${'y'.repeat(30)}\\\\"`,
    `"${'\\\\'.repeat(25)}"`,
  ),
);

const scalarText = fc.constantFrom(
  '0',
  '-0',
  '1.0',
  '1e400',
  '9007199254740993',
  '-1E-7',
  'true',
  'null',
);

const keyText = fc.constantFrom(
  '"a"',
  '"b"',
  '"b"',
  '"content"',
  '"text"',
  '"cache_control"',
  '"c\\u006fntent"',
);

export const valueText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalarText,
    stringText,
    listText(tie('value')),
    objectText(fc.tuple(keyText, tie('value'))),
  ),
})).value;

/** A list with odd spacing around its elements. */
export function listText(element: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(fc.tuple(space, element, space), { maxLength: 4 }).map((elements) => {
    return `[${elements.map((it) => it.join('')).join(',')} ]`;
  });
}

/** An object of the given members, each a key and a value as JSON. */
export function objectText(member: fc.Arbitrary<[string, string]>): fc.Arbitrary<string> {
  return fc.tuple(space, fc.array(member, { maxLength: 4 })).map(([gap, members]) => {
    return `{${gap}${members.map(([key, value]) => `${key}${gap}:${gap}${value}`).join(`${gap},`)}${gap}}`;
  });
}

const partText = fc.oneof(
  stringText.map((text) => `{"type":"text", "text": ${text}}`),
  stringText.map(
    (text) => `{"type":"input_text","text":${text},"cache_control":{"type":"ephemeral"}}`,
  ),
  stringText.map((text) => `{"type":"tool_result","tool_use_id":"t","content":${text}}`),
  stringText.map((text) => `{"type":"text","text":1.0,"text":${text},"n":9007199254740993}`),
  valueText,
);

/** An element of the list: mostly a message, sometimes anything. */
export const itemText = fc.oneof(
  fc
    .tuple(space, fc.oneof(stringText, listText(partText), valueText), valueText)
    .map(
      ([gap, content, other]) =>
        `{"role":"user",${gap}"content"${gap}:${gap}${content}${gap},"other":${other}}`,
    ),
  valueText,
);

export interface BodyParts {
  readonly key: string;
  readonly before: string;
  readonly items: readonly string[];
  readonly after: string;
  readonly gap: string;
}

export function bodyParts(dialect: Dialect): fc.Arbitrary<BodyParts> {
  const key = dialectOf(dialect).listKey;
  const members = fc.array(valueText, { maxLength: 3 });
  return fc.record({
    key: fc.constantFrom(
      `"${key}"`,
      `"${key}"`,
      `"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}"`,
    ),
    before: members.map((values) => values.map((value, at) => `"m${at}":${value},`).join('')),
    items: fc.array(itemText, { maxLength: 5 }),
    after: members.map((values) => values.map((value, at) => `,"n${at}":${value}`).join('')),
    gap: space,
  });
}

export function bodyOf({ key, before, items, after, gap }: BodyParts): Buffer {
  const list = items.map((item) => `${gap}${item}${gap}`).join(',');
  return Buffer.from(
    `${gap}{${gap}${before}${gap}${key}${gap}:${gap}[${list}]${gap}${after}}${gap}`,
  );
}
