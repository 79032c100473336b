import { expect, test } from 'vitest';
import { readLine, writeLine } from '../../src/core/memory/memory-lines.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { plantSecrets } from '../support/planted-secrets.ts';
import { recordOf } from '../support/records.ts';

const now = Date.UTC(2026, 10, 20);

test('a memory that is exported and imported is the same memory', () => {
  for (const record of [
    recordOf('We deploy on Tuesdays.\n\n\u201cBut not in July\u201d, 東京.', {
      branch: 'main',
      exchange: 3,
    }),
    recordOf('ok', { role: 'assistant' }),
    recordOf('Let me see.\n\nThe tail is lost.', { role: 'assistant', lastFrom: 13 }),
    recordOf('  indented\n', { at: 1 }),
  ]) {
    const line = writeLine({ ...record, ref: referenceOf(record.digest) });
    expect(line).not.toContain('\n');
    expect(readLine(line, { now })).toEqual({
      kind: 'record',
      record: { ...record, isTimed: true },
    });
  }
});

test('a line that a person wrote needs a text and a space, nothing else', () => {
  const read = readLine('{"text":"I write dates as ISO 8601."}', { space: 'global', now });
  expect(read).toMatchObject({
    kind: 'record',
    record: { role: 'user', space: 'global', at: now, exchange: 0, client: 'unknown' },
  });
  expect(readLine('{"text":"x y"}', { now })).toMatchObject({ kind: 'wrong' });
});

test('what is wrong with a line is said without a word of it', () => {
  for (const line of [
    'CANARY',
    '["CANARY"]',
    '{"text":7,"space":"CANARY"}',
    '{"text":"CANARY","space":"a","role":"CANARY"}',
    '{"text":"CANARY","space":"a","at":"CANARY"}',
    '{"text":"CANARY","space":"a","exchange":-1}',
    '{"text":"CANARY","space":7}',
    // No other command could name such a space.
    '{"text":"CANARY","space":"a\\nb"}',
    '{"text":"CANARY","space":"../CANARY"}',
  ]) {
    const read = readLine(line, { now });
    expect(read.kind).toBe('wrong');
    expect(JSON.stringify(read)).not.toContain('CANARY');
  }
  expect(readLine('', { now }).kind).toBe('nothing');
});

test('R26: a line is trusted in nothing: secrets are masked, the digest is made anew', () => {
  for (const { line, secret } of plantSecrets(11)) {
    const read = readLine(JSON.stringify({ text: line, space: 'a', digest: 'forged' }), { now });
    expect(JSON.stringify(read)).not.toContain(secret);
    if (read.kind === 'record') expect(read.record.digest).toMatch(/^[\w-]{43}$/);
  }
});

test('a text that somebody wrote with the fence of a block is a memory word for word', () => {
  const written =
    'The fence <svc-memory note="x">\n- is quoted\n</svc-memory> in our docs on port 6431.';
  const line = writeLine(recordOf(written));
  expect(readLine(line, { now })).toMatchObject({ kind: 'record', record: { text: written } });
  const { text: block } = writeRecallBlock([recordOf(written)], 512);
  expect(block.split('<svc-memory')).toHaveLength(2);
  expect(block.split('</svc-memory>')).toHaveLength(2);
});

test('a place of the last text that is none in the text is not taken over', () => {
  const lastFromOf = (fields: object) => {
    const read = readLine(
      JSON.stringify({ text: 'The tail is lost.', space: 'project', ...fields }),
      { now },
    );
    return read.kind === 'record' ? read.record.lastFrom : read;
  };
  expect(lastFromOf({ role: 'assistant', last_from: 4 })).toBe(4);
  expect(lastFromOf({ role: 'assistant', last_from: 99 })).toBeUndefined();
  expect(lastFromOf({ role: 'assistant', last_from: '4' })).toBeUndefined();
  expect(lastFromOf({ role: 'user', last_from: 4 })).toBeUndefined();
  const text = `My key is sk-ant-api03-${'aB3'.repeat(30)} here.\n\nThe tail is lost.`;
  expect(lastFromOf({ role: 'assistant', text, last_from: text.length - 17 })).toBeUndefined();
});
