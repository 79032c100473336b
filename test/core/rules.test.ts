import { expect, test } from 'vitest';
import { rulesIn, withdrawalsIn } from '../../src/core/recall/rules.ts';
import { rulesFor, rulesInForce } from '../../src/core/recall/rules-in-force.ts';

test.each([
  'Always use pnpm here.',
  'In this repository always use pnpm, never npm or yarn.',
  'Never touch anything under src/generated, it is written by the generator.',
  'please never use Bootstrap in this project',
  'From now on, always write log messages in lower case.',
  'You must never force-push to main.',
  '- always run the linter before you commit',
  'When you write Python, always add type hints.',
  "From now on, I'd like you to end all function names with '_c'.",
  'Firstly, always use docstrings in your functions.',
  'Going forward, I need you to always add comments.',
  'always remember to run the tests before you commit',
  'No, we use pnpm here.',
  'We use tabs for indentation in this repository.',
  'I told you: never touch generated files.',
  "Don't add comments to generated code.",
  'stop using default exports from now on',
  'All commit messages must be in the imperative.',
  'Remember to end your method names with `_o`.',
  'Could you always run the linter before you commit?',
  'One of our conventions is to start attribute names with "q_".',
  'Antworte mir ab jetzt immer auf Deutsch.',
  'Ab sofort verwende pnpm statt npm.',
  'Utilise toujours pnpm dans ce projet.',
  'À partir de maintenant, écris les commits en anglais.',
  'Usa siempre pnpm en este proyecto.',
  'Nunca toques los archivos generados.',
  'A partir de agora, escreva testes para cada função.',
  "D'ora in poi usa pnpm.",
  'Всегда используй pnpm.',
  '以后请用 pnpm。',
  '今後は pnpm を使ってください。',
  'From now on run `make lint` before every commit.',
  'As I said before, don’t use any in TypeScript.',
  'Nope, tabs not spaces in this repo.',
  'We don’t mock the database here.',
  'Never amend commits that are already pushed.',
  'Each migration needs a down step.',
  'You must not touch the lockfile by hand, ever.',
  'Stop using console.log for debugging, use the logger.',
  'Please stop adding emojis to commit messages.',
  'Bitte keine Kommentare auf Deutsch im Code.',
  '不，我们这里用 pnpm，不用 npm。',
  'Никогда не пуши в main.',
  'never force unwrap optionals in this code base, use guard let',
  'Every time we add a field you must update the docs.',
  'Never use npm here again.',
  'Use metric units and UTC times in everything that you produce for me.',
  // Tastes, bans, consent, occasions and customs, as people type them.
  "let's not mock the database in tests.",
  'I prefer early returns over nested ifs',
  "I'd rather see small functions than clever ones",
  "I don't like abbreviations in variable names, write them out",
  'house rule: no TODO without a ticket',
  'No inline styles anymore.',
  "don't commit unless I ask",
  'Ask me first before adding a dependency.',
  'before every commit run make check',
  'After every merge, regenerate the client.',
  'Whenever you add a flag, document it in the README.',
  'As I said: migrations are never edited after they are merged.',
  'tests live next to the source file here, not in a tests folder',
  'Function names are snake_case here.',
  'our convention is kebab-case for file names',
  'going forward all new components are function components',
  'use uv instead of pip in this project',
  "we've switched from mocha to vitest, please stick to it",
  'you must not edit files under vendor/',
  'Avoid one-letter variable names.',
  'never mind what I said about jest, do use jest again',
  'Hör auf, alles zu kommentieren.',
  'No toques nunca los archivos generados.',
  'больше не добавляй комментарии в код',
  'Always, and I mean always, include asserts in your methods.',
  "When declaring variables in future, start them with 'z_'.",
])('a rule: %s', (text) => {
  expect(rulesIn(text)).toEqual([text]);
});

test.each([
  'I always use pnpm.',
  'We always go to the beach in summer.',
  'Never give up!',
  'She never writes back.',
  'It never runs on Windows.',
  'Should I always use pnpm?',
  'Always nice to see you.',
  'The worker never started because the queue was full.',
  'never mind',
  'use pnpm',
  'The API must always return 404 for an unknown id.',
  'When the user clicks the button, always show the dialog.',
  'Make sure all the tests pass.',
  'Rename all functions in this file.',
  "Don't commit yet.",
  'We should update the message to have a check mark in front.',
  'remove the start command again',
  'It never worked, and we always wanted to be passed a valid id.',
  'For now, put all functions into one file.',
  'I want you to follow a few important guidelines.',
  // An aside, a piece of code, and how one piece of work is to come out.
  '(we use go-git explicitly in other places, and never the worktree)',
  'Existing sessions: set `lastSeen` (it needs to always save)',
  'Do not add comments or extra functionality.`,',
  'Consider a clearer comment: "We don’t create a branch here.',
  'keep backwards compatibility to also read "count", but always write "steps" now',
  'change `--full` to the parsed transcript, and don’t append the raw one any more',
  'and remember to use pagination',
  'You should always see the banner after login.',
  'Siempre falla en CI.',
  'Das passiert immer wieder.',
  'C’est toujours la même erreur.',
  'Он всегда падает.',
  '它总是失败，每次都报错。',
  '常にエラーになります。',
  'Please apply them from now on.',
  'Never got that error in this repository before.',
  // Complaints, and the state of one piece of work.
  'Every time I ask for a test you write three.',
  'make sure you never do this again',
  'Write it down to make sure you never do this again, and then go on.',
  'make sure that never happens again',
  'we never had this problem with yarn here',
  'all files should be there now',
  'always the same failure here',
  'never works here',
  // One design, one task, a state, and what others do.
  'I prefer the second design, go with it',
  'I prefer option 2',
  "I don't like this, revert it",
  "let's not do that today",
  "let's not overthink this",
  "don't commit until the build is green",
  'ask before you overwrite that file',
  'the script runs before each commit and takes long',
  'No errors anymore, great!',
  'how often does the job run: no logs anywhere',
  'files are missing here, not there',
  'our rule engine is slow for big files',
  'we switched to oxlint last week and it broke',
  'do use the cache again for this request',
  'All files are processed twice, find out why',
  'you should not see an error there',
  `Always use ${'a very long story '.repeat(20)}`,
  // Pasted fields of an issue, and steps of a description.
  'problem_statement: Class methods from nested classes cannot be used as Field.default.',
  'This fails when naming the db as a parameter. Then run any DB migration.',
])('no rule: %s', (text) => {
  expect(rulesIn(text)).toEqual([]);
});

test('only the sentence is one, not what is said around it', () => {
  expect(rulesIn('The build broke. Never run npm install here. What now?')).toEqual([
    'Never run npm install here.',
  ]);
});

test('of several about the same thing the last one holds', () => {
  const said = [
    { text: 'Always use npm in this project.', at: 1 },
    { text: 'Always use pnpm in this project.', at: 2 },
    { text: 'Never touch src/generated.', at: 3 },
    { text: 'Always write commit messages in English.', at: 4 },
    { text: 'Never mock the clock.', at: 5 },
  ];
  expect(rulesInForce(said).map(({ at }) => at)).toEqual([5, 4, 3, 2]);
});

test('the work is linear in hostile text', () => {
  // A regular expression that backtracks would not come back from these.
  for (const text of ['in '.repeat(20_000), `when ${', '.repeat(20_000)}`, 'a. '.repeat(50_000)]) {
    expect(rulesIn(text)).toEqual([]);
  }
});

test.each([
  ['We use npm here.', 'No, we use pnpm here.'],
  ['From now on we use pnpm here, never npm.', 'From now on we use yarn here.'],
  ['We use pnpm here, not npm.', 'From now on we use yarn here, never npm.'],
  ['Always use tabs for indentation.', 'From now on always use spaces for indentation.'],
  ["From now on end all method names with '_a'.", "I want you to end method names with '_b'."],
  ['Always write comments in German.', 'Always write comments in English.'],
  ['Always use jest for the tests.', 'Use vitest instead of jest from now on.'],
  ['Never push to main.', 'From now on always push to main.'],
  ['Always use jest for the tests.', 'never mind what I said about jest, do use vitest again'],
  [
    "We always start our function names with 'a_'.",
    "Start all function names with 'y_' from now on.",
  ],
  ['Always add docstrings to your functions.', 'Forget the rule about docstrings for functions.'],
  [
    'Always run the linter before you commit.',
    "You don't need to run the linter before you commit any more.",
  ],
])('%s is replaced by %s', (earlier, later) => {
  const held = rulesInForce([
    { text: earlier, at: 1 },
    { text: later, at: 2 },
  ]);
  expect(held.map(({ text }) => text)).not.toContain(earlier);
});

test.each([
  ["Always end method names with '_a'.", "Always start method names with 'b_'."],
  ["Always end method names with '_a'.", "Always end function names with '_b'."],
  ['Always use docstrings in functions.', 'Always use annotations in functions.'],
  ['Always use docstrings in functions.', 'Always use docstrings in methods.'],
  ['Never push to main.', 'Always use pnpm here.'],
  ['Never use npm.', 'From now on we use yarn here.'],
  ['Never use jest, and never mocha.', 'Always use vitest here.'],
  ['Always write commit messages in English.', 'Always answer in German.'],
  ['Always use pytest for the backend.', 'Always use vitest for the frontend.'],
])('%s and %s both hold', (one, other) => {
  const held = rulesInForce([
    { text: one, at: 1 },
    { text: other, at: 2 },
  ]);
  expect(held.map(({ text }) => text).toSorted()).toEqual([one, other].toSorted());
});

test('a correction of a correction holds', () => {
  const said = ['We use npm here.', 'No, we use yarn here.', 'Sorry, no: we use pnpm here.'];
  expect(rulesInForce(said.map((text, at) => ({ text, at }))).map(({ at }) => at)).toEqual([2]);
});

test('in one message the last sentence holds', () => {
  const held = rulesInForce([{ text: 'Always use npm here. No, always use pnpm here.', at: 1 }]);
  expect(held.map(({ text }) => text)).toEqual(['No, always use pnpm here.']);
});

test('what is taken back is named', () => {
  expect(withdrawalsIn('Thanks. Forget the rule about docstrings. Go on.')).toEqual([
    'Forget the rule about docstrings.',
  ]);
});

const RULES = [
  { text: "From now on, end all method names with '_m'.", at: 1 },
  { text: "From now on, end all function names with '_f'.", at: 2 },
  { text: 'Always write commit messages in English.', at: 3 },
  { text: 'Always use pnpm here.', at: 4 },
  { text: 'Always answer in German.', at: 5 },
  { text: 'Never use Skype for calls.', at: 6 },
];

test.each([
  ['Write a function that sorts a list.', [2, 1, 5]],
  ['Write a stack class with a push method.', [1, 2, 5]],
  ['Commit this.', [3, 5]],
  ['Install the newest zod.', [4, 5]],
  ['Thanks, that looks right.', [5]],
])('what %s falls under', (text, ats) => {
  const found = rulesFor(rulesInForce(RULES), { text, kind: 'prompt' }, 200);
  expect(new Set(found.map(({ at }) => at))).toEqual(new Set(ats));
});

test('a rule about everything that the agent produces holds for each prompt', () => {
  const text = 'Use metric units in everything that you produce for me.';
  const rules = rulesInForce([{ text, at: 1 }]);
  expect(rulesFor(rules, { text: 'Plot the temperatures.', kind: 'prompt' }, 200)).toHaveLength(1);
});

test('an action falls under the rules for it, and no rule for answers', () => {
  const found = rulesFor(rulesInForce(RULES), { text: 'git commit -m', kind: 'action' }, 200);
  expect(found.map(({ at }) => at)).toEqual([3]);
});

const ACTION_RULES = [
  { text: 'Always use pnpm here, never npm.', at: 1 },
  { text: 'Never push to main.', at: 2 },
  { text: 'Always use type hints in Python files.', at: 3 },
  { text: 'Never run `make deploy` without a dry run.', at: 4 },
  { text: 'Always answer in German.', at: 5 },
  { text: "From now on, end all function names with '_f'.", at: 6 },
];

test('an action that has a rule’s everyday words only by chance does not fall under it', () => {
  const rules = [{ text: 'Always read the text and show the user an example.', at: 1 }];
  const action = { text: 'cat example/user.txt\nread text', kind: 'action' } as const;
  expect(rulesFor(rules, action, 200)).toEqual([]);
});

test.each([
  ['npm install zod', [1]],
  ['git -C /home/ada push origin main', [2]],
  ['src/tide.py', [3]],
  ['cd infra && make deploy', [4]],
  ['src/tide.ts\nls -la', []],
  ['grep -rn "answer in" docs', []],
])('an action falls under the rules for its commands and kinds of files: %s', (text, ats) => {
  const found = rulesFor(rulesInForce(ACTION_RULES), { text, kind: 'action' }, 200);
  expect(found.map(({ at }) => at)).toEqual(ats);
});

test('as many rules as fit, and no more', () => {
  const many = Array.from({ length: 500 }, (_, at) => ({
    text: `From now on, add the '@check_${at}x${at}' decorator to all functions of part${at}x.`,
    at,
  }));
  const found = rulesFor(rulesInForce(many), { text: 'Write a function.', kind: 'prompt' }, 200);
  expect(found.length).toBeGreaterThan(3);
  expect(found.length).toBeLessThan(14);
  expect(rulesFor(rulesInForce(many), { text: 'Write a function.', kind: 'prompt' }, 0)).toEqual(
    [],
  );
});
