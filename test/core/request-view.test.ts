import { describe, expect, test } from 'vitest';
import { viewRequest } from '../support/view-of.ts';
import { recordedBodies } from '../support/recorded-bodies.ts';

const view = (text: string) => viewRequest(Buffer.from(text), 'openai_responses');

describe('what is not understood', () => {
  test.each([
    ['nothing', ''],
    ['a list', '[]'],
    ['an object without the list', '{"model":"m"}'],
    ['a list that is null', '{"input":null}'],
    ['a list that is an object', '{"input":{}}'],
    ['two lists', '{"input":[],"input":[]}'],
    ['two lists, one key written with an escape', '{"input":[],"\\u0069nput":[]}'],
    ['a byte order mark', '\uFEFF{"input":[]}'],
    ['bytes after the body', '{"input":[]} x'],
    ['two bodies', '{"input":[]}{"input":[]}'],
    ['two commas between elements', '{"input":[1,,2]}'],
    ['a comma after the last element', '{"input":[1,]}'],
    ['a comma before the first element', '{"input":[,1]}'],
    ['no comma between elements', '{"input":[{} {}]}'],
    ['brackets of the wrong kind', '{"input":[{]}]}'],
    ['a broken element', '{"input":[{"a":tru}]}'],
    ['a broken member before the list', '{"a":tru,"input":[]}'],
    ['a broken member after the list', '{"input":[],"a":"\t"}'],
    ['a comment', '{"input":[]/**/}'],
  ])('%s', (_name, text) => {
    expect(view(text)).toBeUndefined();
  });

  test('a body nested deeper than 512 levels', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    expect(view(`{"input":[${nested(510)}]}`)).toBeDefined();
    expect(view(`{"input":[${nested(511)}]}`)).toBeUndefined();
    expect(view(`{"a":${nested(511)},"input":[]}`)).toBeDefined();
    expect(view(`{"a":${nested(512)},"input":[]}`)).toBeUndefined();
    expect(view(`{"input":[],"a":${nested(512)}}`)).toBeUndefined();
  });

  test('a plain string in a dialect that has none', () => {
    expect(viewRequest(Buffer.from('{"messages":"hello"}'), 'anthropic_messages')).toBeUndefined();
  });
});

test('a list key written with escapes is the list', () => {
  expect(view('{"\\u0069n\\u0070ut":[1]}')?.items).toHaveLength(1);
});

test('the list key deeper in the body is not the list', () => {
  const found = view('{"a":{"input":[1,2]},"input":[3],"b":[{"input":[]}]}');
  expect(found?.items).toHaveLength(1);
});

test('a Responses input string is one item that says what the message form says', () => {
  const text = view('{"input" : "hi \\n there", "model":"m"}');
  const list = view('{"input":[{"role":"user","content":"hi \\n there"}]}');
  expect(text).toMatchObject({ isTextInput: true, list: { start: 11, end: 24 } });
  expect(text?.shell.value).toEqual({ input: [], model: 'm' });
  expect(text?.items).toMatchObject([{ start: 11, end: 24 }]);
  expect(text?.items[0]?.fingerprint).toBe(list?.items[0]?.fingerprint);
});

test('bytes that are not UTF-8 are seen as the replacement character and stay as they are', () => {
  const bytes = Buffer.concat([
    Buffer.from('{"input":["'),
    Buffer.of(0xff, 0xe2),
    Buffer.from('"]}'),
  ]);
  const found = viewRequest(bytes, 'openai_responses');
  expect(found?.items).toHaveLength(1);
  expect(found?.bytes).toBe(bytes);
});

describe('a view from an earlier view is the view from nothing', () => {
  test.each([
    ['a scalar at the end grew', '{"input":[1]}', '{"input":[12]}'],
    ['a scalar at the end grew into garbage', '{"input":[null]}', '{"input":[nullx]}'],
    ['a scalar in the middle grew', '{"input":[1,2]}', '{"input":[13,2]}'],
    ['an object at the end is followed by more', '{"input":[{}]}', '{"input":[{},{}]}'],
    ['an object at the end is followed by garbage', '{"input":[{}]}', '{"input":[{}{}]}'],
    ['a string at the end grew', '{"input":["a"]}', '{"input":["a\\""]}'],
    ['the string grew', '{"input":"a","b":1}', '{"input":"ab","b":1}'],
    ['the list became a string', '{"input":[1]}', '{"input":"a"}'],
    ['the string became a list', '{"input":"a"}', '{"input":[1]}'],
    ['a space came before the list', '{"input":[1]}', '{"input": [1]}'],
    ['the list became empty', '{"input":[1]}', '{"input":[]}'],
    ['the list was empty', '{"input":[]}', '{"input":[1]}'],
    ['the end of the body is missing', '{"input":[1],"a":1}', '{"input":[1],"a":1'],
    ['a second list came', '{"input":[1],"a":1}', '{"input":[1],"input":1}'],
    ['another member became the list', '{"input":[1],"a":1}', '{"inputs":[1],"input":[2]}'],
  ])('when %s', (_name, earlier, later) => {
    const bytes = Buffer.from(later);
    expect(viewRequest(bytes, 'openai_responses', view(earlier))).toEqual(view(later));
  });
});

describe.each([
  ['claude-code-2.1.329/long-26-steps', 'anthropic_messages'],
  ['codex-0.169.0/long-26-steps', 'openai_responses'],
] as const)('%s', (scenario, dialect) => {
  const bodies = recordedBodies(scenario);

  test('every recorded body is understood, alone and after the one before', () => {
    bodies.forEach((body, index) => {
      const fresh = viewRequest(body, dialect);
      const before = bodies[index - 1];
      expect(fresh?.items.length).toBeGreaterThan(0);
      if (before === undefined) return;
      const reused = viewRequest(body, dialect, viewRequest(before, dialect));
      expect({ ...reused, bytes: undefined }).toEqual({ ...fresh, bytes: undefined });
    });
  });

  test('what stands unchanged since the request before is not read again', () => {
    const [one, two] = [bodies.at(-2), bodies.at(-1)].map((body) => body ?? Buffer.alloc(0));
    const earlier = viewRequest(one ?? Buffer.alloc(0), dialect);
    const later = viewRequest(two ?? Buffer.alloc(0), dialect, earlier);
    const kept = earlier?.items.slice(0, -1) ?? [];
    expect(kept.length).toBeGreaterThan(20);
    kept.forEach((item, index) => expect(later?.items[index]).toBe(item));
  });

  test('earlier items keep their digests and fingerprints through the whole conversation', () => {
    const views = bodies.map((body) => viewRequest(body, dialect));
    views.forEach((later, index) => {
      const earlier = views[index - 1]?.items ?? [];
      expect(later?.items.slice(0, earlier.length).map(({ fingerprint }) => fingerprint)).toEqual(
        earlier.map(({ fingerprint }) => fingerprint),
      );
    });
  });
});
