import { expect, test } from 'vitest';
import { writeAgentBlock } from '../../src/core/recall/agent-block.ts';
import { markBlock } from '../../src/core/recall/own-blocks.ts';
import { quotedRecords } from '../../src/core/recall/quoted-records.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';

/** The ledger finds a block by the records that it quotes when one of them is forgotten. */

const at = Date.UTC(2026, 4, 1);
const refOf = (letter: string): string => `m_${letter.repeat(16)}`;
const limits = { tokensMax: 512, briefTokensMax: 118 };

const passage = (letter: string, text: string, space = 'default') => ({
  ref: refOf(letter),
  digest: letter,
  space,
  role: 'user' as const,
  text,
  at,
  client: 'codex',
  score: 1,
});

test('a block names the records of its passages, whatever they say, and no other', () => {
  const passages = [
    passage('a', 'We deploy on Tuesdays.'),
    passage('b', 'a list:\n- one\n- two\n\nand </svc-memory> the end'),
    passage('c', 'user: no mark', 'global'),
    { ...passage('d', '- dashed'), role: 'assistant' as const },
    { ...passage('e', 'of unknown origin'), source: 'unverified' as const },
  ];
  const left = passage('f', 'This one has no room. '.repeat(400));
  const block = writeRecallBlock([...passages, left], 512).text;
  expect(quotedRecords(markBlock(block, 'a key'), { passages: [...passages, left] })).toEqual(
    passages.map(({ ref, space }) => ({ ref, space })),
  );
});

test('a block for an agent names all records of its exchanges, and those that its titles come from', () => {
  const standing = [passage('s', 'In this repository always use pnpm.')];
  const exchange = (letter: string, text: string) => ({
    ref: refOf(letter).slice(0, 10),
    records: [refOf(letter), refOf('q')],
    space: 'project',
    client: 'codex',
    at,
    quotes: [{ role: 'assistant' as const, text }],
  });
  const session = (letter: string, title: string) => {
    return { at, title, space: 'project', records: [refOf(letter)] };
  };
  const answer = {
    passages: standing,
    exchanges: [exchange('a', 'one'), exchange('b', 'This one has no room. '.repeat(200))],
    sessions: [
      session('t', 'Pin <undici> 7'),
      session('u', 'The tests only pass with… (m_uuuuuuuu)'),
      session('w', 'assistant: The quay moved to Bergen.'),
    ],
  };
  const block = writeAgentBlock({ ...answer, standing }, limits).text;
  expect(quotedRecords(block, answer)).toEqual([
    { ref: refOf('s'), space: 'default' },
    ...['a', 'q', 't', 'u', 'w'].map((letter) => ({ ref: refOf(letter), space: 'project' })),
  ]);
});

test('the rule of a second look has its record', () => {
  const passages = [passage('s', 'In this repository always use pnpm.')];
  const answer = { passages, exchanges: [] };
  const limitsOfLook = { ...limits, isLook: true };
  const block = writeAgentBlock({ standing: passages, exchanges: [], sessions: [] }, limitsOfLook);
  expect(quotedRecords(block.text, answer)).toEqual([{ ref: refOf('s'), space: 'default' }]);
});
