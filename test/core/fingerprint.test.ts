import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  chainFingerprint,
  digestItem,
  digestTextInput,
} from '../../src/core/conversation/fingerprint.ts';
import { itemText, space } from '../support/json-texts.ts';

function digest(text: string): string {
  const bytes = Buffer.from(`[${text}]`);
  return digestItem(bytes, { start: 1, end: bytes.length - 1 });
}

const mark = '"cache_control":{"type":"ephemeral","ttl":"1h"}';

describe('does not count', () => {
  const plain = '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}';
  test.each([
    [
      'on the last block',
      `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b",${mark}}]}`,
    ],
    [
      'in front of a block',
      `{"role":"user","content":[{${mark},"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
    ],
    [
      'inside a block',
      `{"role":"user","content":[{"type":"text",${mark},"text":"a"},{"type":"text","text":"b"}]}`,
    ],
    [
      'on the item',
      `{${mark},"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
    ],
    [
      'twice',
      `{"role":"user",${mark},"content":[{"type":"text","text":"a",${mark}},{"type":"text","text":"b"}],${mark}}`,
    ],
  ])('a cache mark %s', (_name, text) => {
    expect(digest(text)).toBe(digest(plain));
  });

  test('a cache mark inside a tool result', () => {
    const result = (block: string) =>
      digest(`{"role":"user","content":[{"type":"tool_result","content":[${block}]}]}`);
    expect(result(`{"type":"text","text":"a",${mark}}`)).toBe(result('{"type":"text","text":"a"}'));
  });

  test('whether content is a string or one text block', () => {
    expect(digest('{"role":"user","content":"a\\n"}')).toBe(
      digest(`{"role":"user","content":[{"type":"text","text":"a\\n",${mark}}]}`),
    );
    expect(digest('{"content":[{"type":"tool_result","content":"a"}]}')).toBe(
      digest('{"content":[{"type":"tool_result","content":[{"type":"text","text":"a"}]}]}'),
    );
  });

  test('spacing, and where in the body the item stands', () => {
    fc.assert(
      fc.property(itemText, space, (text, gap) => {
        expect(digest(text)).toBe(digest(dense(text)));
        const bytes = Buffer.from(`${gap}${text} `);
        expect(digestItem(bytes, { start: gap.length, end: bytes.length - 1 })).toBe(digest(text));
      }),
      { numRuns: 500 },
    );
  });
});

describe('counts', () => {
  test.each([
    ['a number beyond what a double holds', '{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['the form of a number', '{"a":1.0}', '{"a":1}'],
    ['the order of members', '{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['a repeated member', '{"a":1,"a":1}', '{"a":1}'],
    ['a space inside a string', '{"content":"a b"}', '{"content":"ab"}'],
    ['an empty content against none', '{"role":"user","content":[]}', '{"role":"user"}'],
    [
      'two text blocks against one',
      '{"content":[{"type":"text","text":"ab"}]}',
      '{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}',
    ],
    [
      'a mark in what a tool is given',
      `{"content":[{"type":"tool_use","input":{${mark}}}]}`,
      '{"content":[{"type":"tool_use","input":{}}]}',
    ],
    [
      'content that a tool is given',
      '{"content":[{"input":{"content":"a"}}]}',
      '{"content":[{"input":{"content":[{"type":"text","text":"a"}]}}]}',
    ],
  ])('%s', (_name, one, other) => {
    expect(digest(one)).not.toBe(digest(other));
  });
});

test('a digest and a fingerprint are 43 characters of base64url', () => {
  expect(digest('{}')).toMatch(/^[\w-]{43}$/);
  expect(chainFingerprint('', digest('{}'))).toMatch(/^[\w-]{43}$/);
});

test('a fingerprint depends on every digest before it and on their order', () => {
  const chain = (digests: string[]) => digests.reduce(chainFingerprint, '');
  const [a, b] = [digest('"a"'), digest('"b"')];
  expect(new Set([chain([a, b]), chain([b, a]), chain([a]), chain([b]), chain([b, b])]).size).toBe(
    5,
  );
});

/** The JSON text without the spaces outside its strings. */
function dense(text: string): string {
  return text.replaceAll(/("(?:[^"\\]|\\.)*")|[ \n\r\t]+/gsu, '$1');
}

describe('a Responses message', () => {
  const typed = (text: string) => {
    const bytes = Buffer.from(`[${text}]`);
    return digestItem(bytes, { start: 1, end: bytes.length - 1 }, true);
  };
  const codex = '{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}';

  test.each([
    ['a string', '{"role":"user","content":"a"}'],
    ['a string with its type', '{"type":"message","role":"user","content":"a"}'],
    ['a string before its role', '{"content":"a","role":"user","type":"message"}'],
    ['a list without its type', '{"role":"user","content":[{"type":"input_text","text":"a"}]}'],
  ])('is the same as %s', (_name, text) => {
    expect(typed(text)).toBe(typed(codex));
  });

  test('is the same as an input string', () => {
    const bytes = Buffer.from('"a"');
    expect(digestTextInput(bytes, { start: 0, end: 3 })).toBe(typed(codex));
  });

  test('of the assistant is the same as a string and as one part', () => {
    expect(typed('{"role":"assistant","content":"a"}')).toBe(
      typed('{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}'),
    );
  });

  test('of Codex has the digest that earlier releases gave it', () => {
    expect(typed(codex)).toBe(digest(codex));
  });

  test.each([
    ['another role', '{"role":"developer","content":"a"}'],
    ['another text', '{"role":"user","content":"b"}'],
    ['another id', '{"role":"user","content":"a","id":"msg_1"}'],
    ['another type', '{"type":"compaction","role":"user","content":"a"}'],
    ['a repeated member', '{"role":"user","content":"a","role":"user"}'],
    [
      'two parts',
      '{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":""}]}',
    ],
  ])('is not the same with %s', (_name, text) => {
    expect(typed(text)).not.toBe(typed(codex));
  });
});

describe('what a client may leave out or move', () => {
  const digestOf = (text: string): string => digest(text);
  const plain = digestOf('{"role":"assistant","content":[{"type":"text","text":"a"}]}');

  test.each([
    [
      'thinking',
      '[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]',
    ],
    ['redacted thinking', '[{"type":"text","text":"a"},{"data":"x","type":"redacted_thinking"}]'],
    ['a breakpoint', '[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}]'],
    ['a cache mark', '[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]'],
  ])('%s does not count', (_name, content) => {
    expect(digestOf(`{"role":"assistant","content":${content}}`)).toBe(plain);
  });

  test('reasoning of a chat message does not count', () => {
    const message = '{"role":"assistant","reasoning_content":"hm","content":"a"}';
    expect(digestOf(message)).toBe(digestOf('{"role":"assistant","content":"a"}'));
  });

  test('thinking that a person quotes counts', () => {
    const quoted =
      '{"role":"user","content":[{"type":"text","text":"{\\"type\\":\\"thinking\\"}"}]}';
    expect(digestOf(quoted)).not.toBe(digestOf('{"role":"user","content":[]}'));
  });
});
