import { expect, test } from 'vitest';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import type { Placement } from '../../src/core/recall/injections.ts';
import { plantSecrets } from '../support/planted-secrets.ts';
import { answerShowing, captureRecordings, judge, withPlanted } from '../support/purity.ts';
import type { Reading } from '../../src/proxy/conversations.ts';

const plain = await captureRecordings();

test('of what recorded sessions of real clients leave in the memory, nine records of ten are useful', () => {
  const judged = judge(plain);
  const useless = judged.filter(({ verdict }) => verdict !== 'useful');
  expect(judged.length).toBeGreaterThan(100);
  expect(useless.length / judged.length).toBeLessThanOrEqual(0.1);
});

test('R26: not one record holds the words of a client, of svc, or of nobody', () => {
  const alien = judge(plain).filter(({ verdict }) =>
    ["a client's words", 'a recalled block or a stub', 'not what a person typed'].includes(verdict),
  );
  expect(alien.map(({ scenario, record }) => [scenario, record.text])).toEqual([]);
});

const FACT = 'The deploy code word is marmalade-42, and Marta Lindqvist keeps it.';
const passage = { role: 'user', text: FACT, at: 0, client: 'codex', space: 'default' } as const;
const { text: block, tokens } = writeRecallBlock([passage], 512);

function placed({ view }: Reading): Placement[] {
  const item = view.items.findLast(({ humanText }) => humanText !== '');
  return item === undefined ? [] : [{ item, block, form: 'text', space: 'default', tokens }];
}

test.each([FACT, `Earlier you told me: ${FACT}`, 'The code word is marmalade-42.', block])(
  'R26: when every answer of a session quotes what was recalled, no record of it is kept: %s',
  async (quote) => {
    const change = (recording: Parameters<typeof withPlanted>[0]) => ({
      ...recording,
      answer: answerShowing(recording.dialect, quote),
    });
    const captured = await captureRecordings({ change, placements: placed });
    const records = captured.flatMap((one) => one.records);
    expect(records.length).toBeGreaterThan(50);
    expect(records.filter(({ text }) => /marmalade|svc-memory/.test(text))).toEqual([]);
  },
);

test('R26: no secret that stands in prompts, answers and results of tools is in any record', async () => {
  const secrets = plantSecrets(20);
  const more = secrets.map(({ line }) => line).join('\n');
  const change = (recording: Parameters<typeof withPlanted>[0]) => withPlanted(recording, more);
  const records = (await captureRecordings({ change })).flatMap((one) => one.records);
  expect(records.filter(({ text }) => text.includes('[masked: '))).not.toEqual([]);
  const kept = JSON.stringify(records);
  const leaked = secrets.filter(({ secret }) => kept.includes(JSON.stringify(secret).slice(1, -1)));
  expect(leaked.map(({ name }) => name)).toEqual([]);
});
