import { expect, test } from 'vitest';
import {
  captureAssistant,
  captureHuman,
  cleanExchange,
  heldDigests,
  questionText,
} from '../../src/core/memory/captures.ts';
import { plantSecrets } from '../support/planted-secrets.ts';

test('what a person typed is kept as it is, once: the same words have the same digest', () => {
  const text = 'The deploy code word is marmalade-42.';
  expect(captureHuman(text)?.text).toBe(text);
  expect(captureHuman(`  ${text}\n`)?.digest).toBe(captureHuman(text)?.digest);
  expect(captureAssistant(text)?.digest).not.toBe(captureHuman(text)?.digest);
  const held = heldDigests(cleanExchange({ humanText: text, assistantText: text }), []);
  expect(held).toEqual([captureHuman(text)?.digest, captureAssistant(text)?.digest]);
});

test('fillers are no memories, short statements are', () => {
  for (const filler of ['ok', 'Yes please!', 'continue.', 'Go on', '  ', 'thanks', 'ja, weiter']) {
    expect(captureHuman(filler)).toBeUndefined();
  }
  expect(captureHuman('use pnpm')).toBeDefined();
});

test('R26: secrets are masked and private passages are gone before anything is kept', () => {
  const key = `sk-ant-api03-${'aB3'.repeat(30)}`;
  const kept = captureHuman(
    `my key is ${key}, <private>my salary is 5</private> remember the rest`,
  );
  expect(kept?.text).not.toContain(key);
  expect(kept?.text).not.toContain('salary');
  expect(kept?.text).toContain('remember the rest');
  expect(questionText(`what about ${key}?`, 4096)).not.toContain(key);
});

test('a question of any length is cut to its bound and keeps its beginning and its end', () => {
  const long = `first words ${'x'.repeat(100_000)} last words`;
  const question = questionText(long, 400);
  expect(question.length).toBeLessThanOrEqual(401);
  expect(question.startsWith('first words')).toBe(true);
  expect(question.endsWith('last words')).toBe(true);
});

const LONG = 'The walrus shop has a bay. '.repeat(4_000);

test.each(plantSecrets(7))(
  'R26: no part of a secret ($name) stays where a text is cut',
  ({ secret, line }) => {
    const told = line.indexOf(secret);
    for (const share of [0.25, 0.5, 0.9]) {
      const before = Math.floor(secret.length * share) + told;
      const kept = captureHuman(`${LONG.slice(0, 32_767 - before)} ${line} ${LONG}`);
      expect(kept?.text.length).toBeGreaterThan(20_000);
      expect(kept?.text).not.toContain(secret.slice(0, 8));
      // A question is cut behind its first half and before its last one.
      const first = questionText(`${LONG.slice(0, 2_047 - before)} ${line} ${LONG}`, 4_096);
      expect(first).not.toContain(secret.slice(0, 8));
      const after = 2_047 - (line.length - before);
      const last = questionText(`${LONG} ${line} ${LONG.slice(0, Math.max(0, after))}`, 4_096);
      expect(last).not.toContain(secret.slice(-8));
    }
  },
);

test('a text full of secrets is cut short rather than cut open', () => {
  const secrets = plantSecrets(11)
    .map(({ line }) => line)
    .join('\n');
  const text = `${secrets}\n`.repeat(40);
  expect(text.length).toBeGreaterThan(100_000);
  const kept = captureHuman(text)?.text ?? '';
  for (const { secret } of plantSecrets(11)) expect(kept).not.toContain(secret.slice(0, 12));
});

test('of an answer, what the assistant was about to do is no memory', () => {
  const told = 'The login test fails because the clock of the container runs in UTC.';
  const answer = `Let me look at the tests.\n\nNow I'll run them:\n\nStep 1.\n\n${told}`;
  expect(captureAssistant(answer)?.text).toBe(told);
  const list = 'Two things changed:\n\n- `port`: 6432\n\n- TLS\n\n```\nnpm ci\n```';
  expect(captureAssistant(list)?.text).toBe(list);
  expect(captureAssistant('Let me rename the deploy script to ship.sh')?.text).toContain('ship.sh');
  expect(captureAssistant('Done.')).toBeUndefined();
  expect(captureAssistant('Yes, done!')).toBeUndefined();
});

test('a reminder of the client that the assistant repeats is not its own', () => {
  const told = 'The folder holds the report of March.';
  const answer = `${told}\n\n<system-reminder>\n<total_tokens>14 tokens left</total_tokens>\n</system-reminder>`;
  expect(captureAssistant(answer)?.text).toBe(told);
});

const ANSWER = 'The staging database of the walrus shop listens on port 6431.';

test.each([
  `<think>\nThe user wants the port.\n</think>\n\n${ANSWER}`,
  `<thinking>The user wants the port.</thinking>\n${ANSWER}`,
  `The user wants the port.\n</think>\n\n${ANSWER}`,
  `${ANSWER}\n\n<thinking>\nWas that all? I have not looked`,
  `<think>\n</think>\n${ANSWER}\n<think>Done.</think>`,
  `<Think>The user wants the port.</Think>\n${ANSWER}`,
  `<thought>**Looking up the port**\nIt is in the notes.</thought>${ANSWER}`,
  `</thought>${ANSWER}`,
  `<reasoning>\nThe user wants the port.\n</reasoning>\n${ANSWER}`,
  `<seed:think>The user wants the port.</seed:think>${ANSWER}`,
  `The user wants the port.</seed:think>${ANSWER}`,
  `[THINK]The user wants the port.[/THINK]${ANSWER}`,
  `[THINK]The user wants it.[/THINK]\n${ANSWER}\n[THINK]Was that`,
  `<|START_THINKING|>The user wants the port.<|END_THINKING|>${ANSWER}`,
  `<|channel>thought\nThe user wants the port.<channel|>${ANSWER}`,
  `◁think▷The user wants the port.◁/think▷${ANSWER}`,
  `Let me see. It is 6431.</think>${ANSWER}`,
  `One thought.</think>Another thought.</think>\n${ANSWER}`,
  `<|channel|>analysis<|message|>The user wants the port.<|end|><|start|>assistant<|channel|>final<|message|>${ANSWER}<|return|>`,
  `<|channel|>analysis<|message|>Ask the file.<|end|><|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path":"ports.md"}<|call|><|start|>assistant<|channel|>final<|message|>${ANSWER}`,
  `<|channel|>commentary<|message|>${ANSWER}<|end|><|start|>assistant<|channel|>analysis<|message|>And now the`,
  `analysisThe user wants the port. It is in the notes.assistantfinal${ANSWER}`,
])('R26: reasoning that a model writes into its visible text is never kept: %j', (text) => {
  expect(captureAssistant(text)?.text).toBe(ANSWER);
});

test('of an answer that is all reasoning nothing is kept, and of one about it everything', () => {
  expect(captureAssistant('<think>\nThe port is 6431, I think, and so')).toBeUndefined();
  const about = 'Strip what stands between `<think>` and `</think>` before you store the answer.';
  expect(captureAssistant(about)?.text).toBe(about);
  for (const prose of [
    'Models such as Qwen3 wrap their work in <think>...</think> and answer behind it.',
    'Mistral writes [THINK] and [/THINK] around what it thinks before it answers.',
    'The harmony format has `<|channel|>analysis` for thoughts and `<|channel|>final` for answers.',
    'Our analysis of the ports is done: staging listens on port 6431.',
    'Put the rule into the prompt like this:\n<rule>\nThink before you write.\n</rule>',
  ]) {
    expect(captureAssistant(prose)?.text).toBe(prose);
  }
});

test('marks of reasoning without end are read in one go', () => {
  const hostile = `${'\n<think>'.repeat(200_000)}${'\n </thinking'.repeat(200_000)}`;
  expect(captureAssistant(hostile)).toBeUndefined();
  for (const mark of [
    '</think>',
    '\n[THINK]',
    '<|channel|>',
    '<|channel|>x<|message|>',
    '[/THINK] a',
  ]) {
    const before = performance.now();
    captureAssistant(mark.repeat(100_000));
    expect(performance.now() - before, mark).toBeLessThan(2_000);
  }
});

test.each([
  '14',
  '8\n\n6',
  'q',
  '1 - yeah, 2 - definitely, go for it.',
  '5 seems like a great one to tackle',
  'commit, push and pr it',
  'ok lets get back to main',
  'yeah please fix all 11 issues',
  'please run the tests again',
  'can you double check again?',
  'ok I updated it',
  'bump version',
  'ok mach das so',
  'bitte committen und pushen',
  'nochmal',
  'continúa',
  'продолжай',
  '继续吧',
  '好，继续',
  '2a',
  'y/n',
  'none',
  '/clear',
  'npm run build',
])('an order of a few words is no memory: %j', (order) => {
  expect(captureHuman(order)).toBeUndefined();
});

test.each([
  'use pnpm',
  'no mocks please',
  'never push to main',
  'the port is 6543',
  'postgres',
  'tabs, not spaces',
  'run it with `--shard`',
  'check 192.0.2.17 again',
  'does this work with redis?',
  'what port does the api use?',
  '3 but apply the changes to this branch, since its directly related.',
  '30% of them fail',
  '3, but enabled by default',
  'answer in German',
  '2 spaces',
  'stand-up at 9',
  'keine Mocks bitte',
  'wir nehmen postgres',
])('a rule, a name, a figure or a question is a memory, however short: %j', (text) => {
  expect(captureHuman(text)?.text).toBe(text);
});

test.each([
  "Build succeeds. Now let's test locally with the new flag.",
  'All tests pass (230 unit, 12 integration).',
  'On `main`, up to date. Ready for the next task.',
  'Committed as `77f6ce85c`. Want me to push?',
  "Good, I have everything I need. I'll write the plan.",
  'Your code: [masked: one-time-code]',
  'Great, that worked.',
  'Merged. Branch deleted.',
  'PR created: https://github.com/walrus/shop/pull/12',
  'Opened PR #12.',
  'No changes needed.',
  'Understood, proceeding.',
  'I have pushed the changes to the branch.',
  'The commit went through. All 230 tests are green.',
  '✅ All checks passed',
  'Done — committed as `77f6ce85c` and pushed.',
  'Alle Tests laufen durch.',
  'Fertig, alles grün.',
  'Ich schaue mir jetzt die Tests an.',
  'Déjame revisar los archivos.',
  'Je vais regarder le fichier de configuration.',
])('an answer of announcements, status and offers is no memory: %j', (answer) => {
  expect(captureAssistant(answer)).toBeUndefined();
});

test.each([
  ['The port is 6543. Let me update the config.', 'The port is 6543.'],
  [
    'Let me revert that, because the lock is taken twice. All tests pass.',
    'Let me revert that, because the lock is taken twice. All tests pass.',
  ],
  [
    'Good, the store is reverted. Now let me check the endpoint.\n\nThe endpoint returns the email.',
    'Good, the store is reverted.\n\nThe endpoint returns the email.',
  ],
  [
    'Now the port is 6543. The tests pass because of it.',
    'Now the port is 6543. The tests pass because of it.',
  ],
  [
    'All tests pass now that the clock is mocked in setup.ts.',
    'All tests pass now that the clock is mocked in setup.ts.',
  ],
  [
    'Ich schaue mir die Tests an. Der Index auf orders.created_at fehlte.',
    'Der Index auf orders.created_at fehlte.',
  ],
  ['Die Tests brauchen Docker und einen freien Port.', undefined],
  ['Ich werde in Graz wohnen, nahe der Mur.', undefined],
  ['I moved the parser into src/parse.ts.', undefined],
  ['PR 12 removes the rate limit of the walrus API.', undefined],
  ['```\nLet me run it.\n```\nThe script prints 12 lines.', undefined],
])('announcements leave an answer by the sentence: %j', (answer, kept) => {
  expect(captureAssistant(answer)?.text).toBe(kept ?? answer);
});

const ON_THE_WAY = 'The tail of the stream is lost in `flushTail()`.';
const LAST = 'The decoder returned before the last chunk, because the buffer was reused.';

test.each([
  ['one text', LAST, LAST, undefined],
  ['earlier words', `${ON_THE_WAY}\n\n${LAST}`, LAST, ON_THE_WAY.length + 2],
  ['a step that is announced', `${ON_THE_WAY}\n\nNow let me run the tests.\n\n${LAST}`, LAST, 50],
  // A short remark is kept alone, and not beside other paragraphs.
  ['a remark at the end', `${ON_THE_WAY}\n\nIt does now.`, 'It does now.', ON_THE_WAY.length],
  ['a remark before it', `${ON_THE_WAY}\n\nSo it is.\n\n${LAST}`, `So it is.\n\n${LAST}`, 50],
  ['nothing of the last text is kept', `${ON_THE_WAY}\n\nDone.`, 'Done.', ON_THE_WAY.length],
  ['earlier words that are not kept', `Let me look.\n\n${LAST}`, LAST, undefined],
])('where the last text of an answer begins: %s', (_, answer, last, lastFrom) => {
  const kept = captureAssistant(answer, undefined, last);
  expect(kept?.lastFrom).toBe(lastFrom);
  expect(captureAssistant(answer)).toEqual({ ...kept, lastFrom: undefined });
});

test('the last text is found behind masked secrets and echoes, and not in a text that was cut', () => {
  const key = `sk-ant-api03-${'aB3'.repeat(30)}`;
  const lastIn = (answer: string, last: string, blocks: readonly string[] = []) => {
    const kept = captureAssistant(answer, { blocks, key: '', question: 'why?' }, last);
    return kept?.lastFrom === undefined ? undefined : kept.text.slice(kept.lastFrom);
  };
  expect(lastIn(`The key is ${key} here.\n\n${LAST}`, LAST)).toBe(LAST);
  const told = 'The deploy code word of the walrus shop is marmalade.';
  const block = `<svc-memory>\n- ${told}\n</svc-memory>`;
  expect(lastIn(`${ON_THE_WAY}\n\n${told} ${LAST}`, `${told} ${LAST}`, [block])).toBe(LAST);
  expect(lastIn(`${ON_THE_WAY.repeat(1000)}\n\n${LAST}`, LAST)).toBeUndefined();
});
