import * as fc from 'fast-check';
import { parse } from 'smol-toml';
import { expect, test } from 'vitest';
import { insertBlock, removeBlock } from '../../src/core/foreign/toml-block.ts';

const BLOCK = {
  top: { model_provider: '"svc"' },
  tables: [
    ['[model_providers.svc]', 'base_url = "http://127.0.0.1:8765/v1"'],
    ['[model_providers.svc.auth]', 'command = "svc"'],
  ],
};

function isWhole(text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

const TOP_LINES = [
  'model = "gpt-5" # a comment',
  '# [model_providers.svc]',
  'notify = [\n  ["a", "b"],\n[ "c" ],\n]',
  'text = """\n[model_providers.svc]\nmodel_provider = "quoted"\n"""',
  'model_provider = "openai"  # mine',
  '',
  '   ',
  "'model_provider_x' = 1",
];
const TABLES = [
  '[tui]\nnotifications = true',
  '# about the next one\n[ projects."/a [b] c" ]\ntrust_level = "trusted"',
  '[[hooks]]\nrun = "x"\n\n[[hooks]]\nrun = "y"',
  '[model_providers."svc"]\nbase_url = "http://127.0.0.1:1/v1"\n# kept\nname = "old"',
  '[model_providers.svc.http_headers]\n"x-svc-memory-mode" = "read"',
  '[model_providers.svc2]\nname = "another"',
];

/** Files as people write them: any order, any line end, with and without a last one. */
const files = fc
  .record({
    top: fc.uniqueArray(fc.constantFrom(...TOP_LINES), { maxLength: 6 }),
    tables: fc.uniqueArray(fc.constantFrom(...TABLES), { maxLength: 5 }),
    end: fc.constantFrom('\n', '\r\n'),
    isEnded: fc.boolean(),
  })
  .map(({ top, tables, end, isEnded }) => {
    const text = [...top, ...tables].join('\n').replaceAll('\n', end);
    return isEnded && text !== '' ? text + end : text;
  })
  .filter(isWhole);

test('what was put in is what the file says then, beside everything that it said', () => {
  fc.assert(
    fc.property(files, (text) => {
      const before = parse(text) as Record<string, object>;
      const after = parse(insertBlock(text, BLOCK, isWhole).text) as Record<string, object>;
      const others = { ...before['model_providers'] } as Record<string, unknown>;
      delete others['svc'];
      const svc = { base_url: 'http://127.0.0.1:8765/v1', auth: { command: 'svc' } };
      expect(after).toEqual({
        ...before,
        model_provider: 'svc',
        model_providers: { ...others, svc },
      });
    }),
  );
});

test('taken out, every byte is as before; only a missing last line end may stay', () => {
  fc.assert(
    fc.property(files, (text) => {
      const { text: after, change } = insertBlock(text, BLOCK, isWhole);
      const reverted = removeBlock(after, change);
      if (typeof reverted === 'string') throw new Error(reverted);
      const ends = text.endsWith('\n') ? [text] : [text, `${text}\n`, `${text}\r\n`];
      expect(ends).toContain(reverted.text);
    }),
  );
});

test('it is taken out of a file whose line ends and later tables another program changed', () => {
  fc.assert(
    fc.property(files, (text) => {
      const { text: after, change } = insertBlock(text, BLOCK, isWhole);
      const rewritten = after
        .replaceAll('\r\n', '\n')
        .replace('# <<< svc', '\n[mcp_servers.foo]\ncommand = "bar"\n# <<< svc');
      const reverted = removeBlock(rewritten, change);
      if (typeof reverted === 'string') throw new Error(reverted);
      const wanted = {
        ...(parse(text.replaceAll('\r\n', '\n')) as object),
        mcp_servers: { foo: { command: 'bar' } },
      };
      expect(parse(reverted.text)).toEqual(wanted);
      expect(reverted.text).not.toContain('svc: take this out');
    }),
  );
});

test('a block that somebody edited is told, and one that is gone', () => {
  const { text, change } = insertBlock('model_provider = "openai"\n', BLOCK, isWhole);
  expect(removeBlock(text.replace('8765', '9000'), change)).toBe('edited');
  expect(removeBlock(text.replace('(set aside by svc) ', ''), change)).toBe('edited');
  expect(removeBlock('model_provider = "openai"\n', change)).toBe('absent');
});

test('a block whose markers went with all comments is still taken out, unless an earlier value went too', () => {
  const inserted = insertBlock('model = "a"\n\n[tui]\nx = 1\n', BLOCK, isWhole);
  const rewritten = inserted.text.replaceAll(/^#.*\n/gm, '');
  expect(removeBlock(rewritten, inserted.change)).toEqual({
    text: 'model = "a"\n\n[tui]\nx = 1\n',
  });
  const replaced = insertBlock('model_provider = "openai"\n', BLOCK, isWhole);
  expect(removeBlock(replaced.text.replaceAll(/^#.*\n/gm, ''), replaced.change)).toBe('edited');
});
