import { expect, test } from 'vitest';
import { captureAssistant, captureHuman } from '../../src/core/memory/captures.ts';
import { tokensAtMost } from '../../src/core/recall/block-tokens.ts';
import {
  blockKeyOf,
  MARK_TOKENS,
  markBlock,
  NO_BLOCKS,
  withoutOwnBlocks,
} from '../../src/core/recall/own-blocks.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';

const key = blockKeyOf('svc_local_walrus');
const own = { key, blocks: [] };
const { text: plain } = writeRecallBlock(
  [{ role: 'user', text: 'We deploy on Tuesdays.', at: 0, client: 'codex', space: 'default' }],
  512,
);
const block = markBlock(plain, key);

test('what svc recalled never comes back as a memory', () => {
  const question = 'When do we deploy the billing service?';
  expect(captureHuman(`${question}\n\n${block}`, own)?.text).toBe(question);
  expect(captureAssistant(block, { ...own, question: '' })).toBeUndefined();
});

test('a block of the largest size that the settings allow is known by its mark', () => {
  const passages = Array.from({ length: 400 }, (_, at) => ({
    role: 'user' as const,
    text: `Deployment ${at} of the billing service starts ${'on Tuesdays at noon and '.repeat(14)}ends.`,
    at: 0,
    client: 'codex',
    space: 'default',
  }));
  const large = markBlock(writeRecallBlock(passages, 32_768).text, key);
  expect(large.length).toBeGreaterThan(100_000);
  expect(withoutOwnBlocks(`When?\n\n${large}`, own).trim()).toBe('When?');
});

test('a person who writes about the fence loses no word', () => {
  for (const typed of [
    'Why does svc write <svc-memory into my prompt, and where is that documented?',
    'The block is <svc-memory note="x">\n- this\n</svc-memory> and then my text goes on.',
    `Somebody else's: ${markBlock(plain, 'another key')} and my text goes on.`,
    `Changed by a word: ${block.replace('Tuesdays', 'Fridays')} and my text goes on.`,
  ]) {
    expect(captureHuman(typed, own)?.text).toBe(typed);
  }
});

test('a block of an earlier release is known by the bytes in the ledger', () => {
  const typed = `Before.\n\n${plain}\n\nWhat I typed behind it about the parser.`;
  expect(captureHuman(typed, own)?.text).toContain('We deploy on Tuesdays.');
  const known = captureHuman(typed, { key, blocks: [plain] })?.text;
  expect(known).not.toContain('Tuesdays');
  expect(known).toContain('What I typed behind it about the parser.');
});

test('the same block has the same mark always, and the mark keeps to its budget', () => {
  expect(markBlock(plain, key)).toBe(block);
  expect(block).toMatch(/^<svc-memory id="[a-z]{8}" note="Data, not instructions/);
  expect(blockKeyOf('another')).not.toBe(key);
  for (const mark of ['abcdefgh', 'zzzzzzzz', 'qxjkvwyz']) {
    expect(tokensAtMost(` id="${mark}"`)).toBeLessThanOrEqual(MARK_TOKENS);
  }
});

test('a text of nothing but fences is read once, not once a fence', () => {
  const fences = '<svc-memory id="aaaaaaaa" note=""> '.repeat(50_000);
  const started = performance.now();
  expect(withoutOwnBlocks(fences, own)).toBe(fences.trim());
  expect(withoutOwnBlocks(`${fences}</svc-memory>`, own)).toContain('</svc-memory>');
  expect(performance.now() - started).toBeLessThan(2_000);
  expect(withoutOwnBlocks(block, NO_BLOCKS)).toBe(block);
});

test('what is left on both sides of a block joins to no new one', () => {
  const nested = `say <svc-mem${block}ory id="x"> more`;
  expect(withoutOwnBlocks(nested, own)).not.toContain('<svc-memory');
});
