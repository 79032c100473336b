import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { captureAssistant, cleanExchange, heldDigests } from '../../src/core/memory/captures.ts';
import { withoutEchoes } from '../../src/core/memory/echoes.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { FACTS } from '../support/records.ts';

const FACT = 'The deploy code word is marmalade-42, and Marta Lindqvist keeps it.';

const { text: block } = writeRecallBlock(
  [FACT, 'We deploy on Tuesdays after the stand-up.'].map((text, at) => ({
    role: 'user' as const,
    text,
    at: Date.UTC(2026, 1, at + 1),
    client: 'codex',
    space: 'default',
  })),
  512,
);
const heard = { blocks: [block], key: '', question: 'What is the deploy code word?' };

test.each([
  FACT,
  `"${FACT}"`,
  `Earlier you told me: ${FACT}`,
  'The code word is marmalade-42.',
  'According to the memory from an earlier session, the deploy code word is **marmalade-42**.',
  'Yes: marmalade-42. Marta Lindqvist keeps it, and you deploy on Tuesdays.',
  `From memory:\n- user: ${FACT}\n- user: We deploy on Tuesdays after the stand-up.\n`,
  block,
])('an answer that only repeats what was recalled is no memory: %s', (answer) => {
  expect(captureAssistant(answer, heard)).toBeUndefined();
});

test('of an answer that says more, what it says more is kept', () => {
  const news = 'I rotated the credentials in Vault and restarted the gateway pods.';
  expect(captureAssistant(`${FACT} ${news}`, heard)?.text).toBe(news);
  expect(captureAssistant(`${news}\n\n${FACT}`, heard)?.text).toBe(news);
  const changed = 'The deploy code word is now tangerine-17, kept in the new Vault of Oskar.';
  expect(captureAssistant(changed, heard)?.text).toBe(changed);
});

test('an answer to a request that carried no memories is kept as it is', () => {
  expect(captureAssistant(FACT)?.text).toBe(FACT);
  expect(captureAssistant(FACT, { blocks: [], key: '', question: '' })?.text).toBe(FACT);
});

test('what is kept of an echoing answer is known to be held by the request', () => {
  const answer = `${FACT} I rotated the credentials in Vault and restarted the gateway pods.`;
  const digests = heldDigests(cleanExchange({ humanText: heard.question, assistantText: answer }), [
    block,
  ]);
  expect(digests).toContain(captureAssistant(answer, heard)?.digest);
  expect(digests).toContain(captureAssistant(answer)?.digest);
});

test('nothing is made up: what is left is made of pieces of the answer, and leaving out again changes nothing', () => {
  const sentences = fc.array(fc.constantFrom(FACT, ...FACTS), { maxLength: 8 });
  fc.assert(
    fc.property(sentences, (said) => {
      const text = said.join(' ');
      const left = withoutEchoes(text, heard);
      expect(left).not.toContain('marmalade');
      for (const fact of said) if (fact !== FACT) expect(left).toContain(fact);
      expect(withoutEchoes(left, heard)).toBe(left);
    }),
  );
});

const { text: ports } = writeRecallBlock(
  [
    'The staging database of the shop listens on port 5432 of the host walrus-seven.',
    'The credentials are kept in config/staging.env and read by loadSecrets.',
  ].map((text, at) => ({
    role: 'user' as const,
    text,
    at: Date.UTC(2026, 1, at + 1),
    client: 'codex',
    space: 'default',
  })),
  512,
);
const recalled = { blocks: [ports], key: '', question: 'Where does the staging database listen?' };

test.each([
  'The staging database of the shop listens on port 6543 of the host walrus-seven.',
  'The staging database of the shop listens on port 5432 of the host walrus-eight.',
  'The credentials are kept in config/production.env and read by loadSecrets.',
  'The credentials are kept in config/staging.env and read by loadAllSecrets.',
  'The credentials of the staging database are kept by Oskar.',
  'The staging database does not listen on port 5432 of the host walrus-seven.',
  'The staging database no longer listens on the host walrus-seven.',
])('a correction is never an echo: %s', (answer) => {
  expect(captureAssistant(answer, recalled)?.text).toBe(answer);
});

const { text: plain } = writeRecallBlock(
  [
    'The staging database uses postgres on the host walrus-seven.',
    'The cache lives in redis with a lifetime of ten minutes.',
    'The team prefers tabs over spaces.',
    'The report is sent every monday morning to the finance team.',
    'Marta Lindqvist owns the billing service.',
  ].map((text, at) => ({
    role: 'user' as const,
    text,
    at: Date.UTC(2026, 1, at + 1),
    client: 'codex',
    space: 'default',
  })),
  512,
);
const told = { blocks: [plain], key: '', question: 'How is staging set up?' };

test.each([
  'The staging database uses mysql on the host walrus-seven.',
  'The cache lives in memcached with a lifetime of ten minutes.',
  'The cache lives in redis with a lifetime of twenty minutes.',
  'The team prefers spaces over tabs.',
  'The report is sent every friday morning to the finance team.',
  'The report is sent every month to the finance team.',
  'The report is sent every monday morning to the sales team.',
  'Marta Lindqvist left the billing service.',
  'The staging database uses postgres on the host walrus-seven, and the cache lives in memcached.',
])('one ordinary word in the place of another corrects a memory: %s', (answer) => {
  expect(captureAssistant(answer, told)?.text).toBe(answer);
});

test.each([
  [
    'Where does the production database run?',
    'The production database runs on the host walrus-seven with postgres.',
  ],
  [
    'And for the analytics service, what do we use?',
    'For the analytics service you use postgres on the host walrus-seven.',
  ],
  ['Who owns the search index?', 'The search index is owned by Marta Lindqvist as well.'],
  [
    'Which cache does Heron use?',
    'Heron also lives with the redis cache, with a lifetime of ten minutes.',
  ],
  ['When is the audit sent?', 'The audit is sent every monday morning to the finance team.'],
])('a true answer about what only the question names is no echo: %s', (question, answer) => {
  expect(captureAssistant(answer, { ...told, question })?.text).toBe(answer);
});

test.each([
  ['How is staging set up?', 'Staging is set up with postgres on the host walrus-seven.'],
  [
    'Where can we find the cache?',
    'You can find the cache in redis with a lifetime of ten minutes.',
  ],
  ['Please tell me who owns billing, quickly', 'Marta Lindqvist owns the billing service.'],
])('a question in other words does not make an echo news: %s', (question, answer) => {
  expect(captureAssistant(answer, { ...told, question })).toBeUndefined();
});

test.each([
  'The staging database uses postgres on walrus-seven, and the cache lives in redis.',
  'The staging database is hosted on walrus-seven and the cache is kept in redis for ten minutes.',
  'Marta Lindqvist handles the billing service, and the team currently prefers tabs over spaces.',
  'From what I remember, the cache lives in redis (ten minutes), and Marta Lindqvist is the owner of the billing service.',
  'Billing is owned by Marta Lindqvist, while the report goes to the finance team on monday morning.',
  '- Database: postgres on walrus-seven\n- Cache: redis, ten minutes\n- Report: monday morning, finance team',
])('other words for the same do not correct it: %s', (answer) => {
  expect(captureAssistant(answer, told)).toBeUndefined();
});

test('a correction beside an echo is kept, however short it is', () => {
  const echo = 'The staging database of the shop listens on port 5432 of the host walrus-seven.';
  expect(captureAssistant(`${echo} Now the port is 6543.`, recalled)?.text).toBe(
    'Now the port is 6543.',
  );
});

test.each([
  'The staging database listens on port 5432 of walrus-seven, and the credentials are kept in config/staging.env.',
  'As you said: port 5432 of walrus-seven, with the credentials that loadSecrets reads.',
])('a sentence that only joins recalled memories is an echo: %s', (answer) => {
  expect(captureAssistant(answer, recalled)).toBeUndefined();
});
