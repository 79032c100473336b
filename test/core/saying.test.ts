import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conclusionLines, soleSentences } from '../../src/core/recall/conclusions.ts';
import { isOfMoment, isWeak, saysNothing, sayingPart } from '../../src/core/recall/saying.ts';
import { sentencesOf } from '../../src/core/recall/sentences.ts';

const EMPTY = {
  'an announcement': [
    'I’m pushing the branch of the quay, then the draft follows in `boats.json`.',
    'I’ll use the list of `quay.ts` because the cranes are told apart there.',
    'The helper is missing in `quay`, so I’m using the installed copy instead.',
    'Since the quay has no users, I’m going to rename `crane.ts` so that both fit.',
    'Once the tide is low, I’ll read `quay.ts` rather than guess.',
    'One glob hit a missing `boats.json`, so I’m rerunning the check with another shell.',
    'Let me now look at the caller.',
    'Good. Now I will run the tests of the gateway.',
    'Lass mich zuerst den Aufrufer ansehen.',
    'Je vais maintenant vérifier les tests.',
    'Voy a revisar el archivo de configuración.',
    'Vou verificar o arquivo de configuração.',
    '让我先看一下这个文件。',
    '次にテストを実行します。',
  ],
  'a status': [
    'Verification: `npm run lint` clean, `npm test` 0 issues.',
    'Replied to both review comments with the commit of the quay.',
    '4 review threads — fixed in `quay.ts`, answered, and resolved',
    'Closed completed issue `#12` after the merge of the quay.',
    'I also killed the two idle crane workers (`tide-sync`, `tide-note`).',
    'Removed the stale worktree/window: `quay-review`.',
    'Tracker changes were pushed to the `harbour-tasks` remote.',
    'Todo added and PR created: https://harbour.example/pull/18',
    'No crane worker was relaunched for `quay.ts`.',
    'Bead `q-7.5` closed with the note of the merge.',
    'Tests pass (`npm run test:quay`) with good coverage',
    'The fix for the cranes that appear under all quays is complete.',
    'The tracker of the harbour is updated.',
    'The stale worktree and its window are gone.',
    'The harbour removal PR was already merged.',
    'CI is progressing: lint and types pass, the build still runs.',
    'Spawned another worker for the docs of the quay.',
    '8 pending todos remain.',
    '25 commits covering the whole harbour.',
    'Moved the todo to `done/` and committed.',
    'Todo for TIDE-02 committed as `1b3df75`.',
    "I've successfully fixed the issue and added tests.",
    'The plan is solid for the common tide.',
    'The current approach is fine as it documents intent.',
    'The patch has been saved to `output/quay.json`.',
    'All PR review comments have been addressed.',
    'The file looks correct.',
    'Strong test coverage - the planner of the tide is well tested',
    'Overall, the document looks solid.',
    'TIDE-98 is complete.',
    'Plan posted to [TIDE-53](https://harbour.example/tide/53).',
    'All tests pass.',
    'All 230 gateway tests pass.',
    'Build succeeds.',
    'Done! Committed as 1a2b3c4d.',
    'Pushed to origin.',
    'Tests pass (78 tests), lint passes (0 issues).',
    'Everything works as expected now.',
    'CI is green.',
    'All 12 unit tests pass, TypeScript compiles clean, and a comment has been posted on the PR.',
    'Alle Tests laufen durch.',
    'Tous les tests passent.',
    'Todas las pruebas pasan.',
    'Todos os testes passam.',
    '所有测试均已通过。',
    'すべてのテストが通りました。',
  ],
  'the rest of a sentence': [
    'for boats of the quay.',
    'Whether the planner allows boats on the main quay',
  ],
  'an offer or a question': [
    'why do we have quay.v1, what is the difference to quay.v2',
    'How does the crane know its quay.',
    'should we close the quay of harbour.example as resolved',
    'Want me to push it?',
    'Should the session appear under all branches or just one?',
    'Let me know if you want another name.',
    'Soll ich es gleich pushen?',
    'Voulez-vous que je continue ?',
    '¿Quieres que lo suba?',
    '需要我提交吗？',
  ],
  'a sentence about the one before it': [
    'In some cases it is inconsistent with the planner.',
    'Ideally, this would yield the names of boats.',
    'If so, amend the plan of the quay.',
    'But no boats of the quay with trailers.',
    'Or to keep an array of boats in quay.json.',
    'And separately: the cranes of the quay.',
    'Confirmed: This is a real bug.',
    'Aber nicht für die Boote des Hafens.',
    'Mais pas pour les bateaux du quai.',
    'Pero no para los barcos del muelle.',
    '但是港口的船没有。',
    'しかし船は動きません。',
    'The answer is: because the keys of the harbour are random.',
    'It works now.',
    'This fixes the crash of the gateway.',
    'These should stay in step with the schema.',
    'They are different from the ones in the store.',
    'The same fix should be applied to the handler above it.',
    'Das funktioniert jetzt auch unter Windows.',
    'C’est la cause de la panne.',
    'Esto resuelve el problema del servidor.',
    '这是因为缓存没有清空。',
    'これはキャッシュが原因です。',
  ],
  'a narration': [
    'I see the project folder of the tests.',
    "Good, I've launched 7 review agents.",
    'Found another issue!',
    'I found the issue!',
    'Good — I can see the failure of the harbour.',
  ],
  'a value that was masked': ['Looks like the code of the quay is [masked: one-time-code].'],
} as const;

describe.each(Object.entries(EMPTY))('%s says nothing alone', (_, sentences) => {
  test.each(sentences)('%s', (sentence) => {
    expect(sayingPart(sentence)).toBe('');
  });
});

const TELLING = [
  'I’m seeing timeouts of the gateway at `quay.ts`.',
  'Tests pass only with `--serial` at the quay.',
  'The check passes the crane to `quay.ts`.',
  'The lock of the quay is complete only when `flush()` returns.',
  'The review found that the crane is never released.',
  'Only `npm test ./...` would have caught the crane.',
  'The lock is removed by the nightly job of the harbour.',
  'The workers are started by `quay.ts` at boot.',
  'The port is correct in `quay.toml` and wrong in the docs.',
  'For boats of the quay the planner adds an hour.',
  'What the crane lifts is listed in `quay.ts`.',
  'Why it failed: the clock of the harbour was wrong.',
  'The gateway listens on port 6543, because pgbouncer owns 6432.',
  'Tests pass with DOCKER=1 only.',
  'All tests pass where `DOCKER=1` is set.',
  'The same lock is held by the nightly job.',
  'The issue is the clock of the harbour.',
  'The login takes `quay_token`, whose value is [masked: secret].',
  'The build needs pnpm and the folder of the service.',
  'This function returns before the last chunk was decoded.',
  'These tests of the decoder need a database.',
  'It turns out the lock of the harbour is held by the nightly job.',
  'It is important that the lock is released first.',
  'I found that `flush()` drops the tail of the stream.',
  'I see: the parser fails because the clock is wrong.',
  'All boats have been moved to `quay/depot.ts`.',
  'The thread of the crane is closed because `quay.ts` no longer needs it.',
  'Threads of the crane are 4 by default.',
  'The crane stops when the tide turns because `quay.ts` holds its lock.',
  'Good enough for a first search in `quay.db`: lists, trends and tags.',
  'I did not use `quay.ts`, because its lock is held at night.',
  'The worker pool is closed by `quay.ts` at low tide.',
  'The code is correct only for boats below 4 tons.',
  'The changes are written to `quay.log` first.',
  'Good names of the quay come from `names.json`.',
  'Clean builds need 4 minutes at the quay.',
  'In some cases the planner is inconsistent.',
  'In this case the planner needs DOCKER=1.',
  'Notify me is the name of the button.',
  'Committed sessions stay in the shadow branch.',
  'The boats are staged, weighed and committed to the depot of Bergen.',
  '12 tests fail without DOCKER=1.',
  'The log of the quay is written to `logs/quay.log`.',
  "I've added `--harbour` to the planner.",
  'The gate is green, and boats wait.',
  'Der Zwischenspeicher wird beim Start geleert.',
  'Il faut vider le cache avant le démarrage.',
  'El servidor escucha en el puerto 6543.',
  'O cache é limpo na inicialização.',
  '缓存在启动时被清空。',
  'キャッシュは起動時に消されます。',
];

test.each(TELLING)('it tells something: %s', (sentence) => {
  expect(sayingPart(sentence)).toBe(sentence);
});

test('what says nothing goes from both ends of a line, and the rest stays word for word', () => {
  const said = 'The gateway listens on port 6543. This keeps pgbouncer apart.';
  expect(sayingPart(`Done! Committed as 1a2b3c4d. ${said} All tests pass. Want me to push?`)).toBe(
    said,
  );
});

test.each([
  ['So yes — the keys of the quay are random.', 'the keys of the quay are random.'],
  ['Got it - the quay is on by default.', 'the quay is on by default.'],
  ["You're right - we should add `quay/.gitignore`.", 'we should add `quay/.gitignore`.'],
  ['However, the crane reads ALL files.', 'the crane reads ALL files.'],
  ['Anyway, great, the crane reads ALL files.', 'the crane reads ALL files.'],
  ['Similarly, the crane reads ALL files.', 'the crane reads ALL files.'],
  ['Genau, der Kran liest alle Dateien.', 'der Kran liest alle Dateien.'],
  ['Exactement, la grue lit tous les fichiers.', 'la grue lit tous les fichiers.'],
  ['Exacto, la grúa lee todos los archivos.', 'la grúa lee todos los archivos.'],
  ['你说得对，缓存在启动时被清空。', '缓存在启动时被清空。'],
  ['なるほど、キャッシュは起動時に消されます。', 'キャッシュは起動時に消されます。'],
])('what greets the sentence before it goes: %s', (said, rest) => {
  expect(sayingPart(said)).toBe(rest);
});

test.each([
  'Handle single lines of the quay that exceed their limit',
  'Initialize the crane inside `runQuay()`, with logs in `quay.log`',
  'Skip boats with the flag `moored` when planning the tide',
  'Parse the number of the quay.',
  'Option 1 of the quay is longer but needs two calls.',
  'This comment says that the quay is on.',
])('a line of little use alone: %s', (line) => {
  expect(isWeak(line)).toBe(true);
});

test.each([
  'Use `MustBoat` for data of the harbour itself',
  'Added the field `boat` to the log of the quay',
  'Test coverage of the quay is low.',
  'Tests of the quay only pass with DOCKER=1.',
  'The file `quay.ts` holds the crane.',
  'This repository pins pnpm 9.',
  'The quay reads ALL files, because #1234 asked for it.',
  'Session A keeps the lock of the quay until session B asks for it.',
  'Load tests of the quay are slow.',
  'Tests: the quay needs DOCKER=1.',
  'Print jobs of the quay run at night.',
])('a line that says something alone: %s', (line) => {
  expect(isWeak(line)).toBe(false);
});

test.each([
  '`TestQuay_MovesBoats` - verifies that the crane moves all boats',
  '`quay/crane_test.go`: Updated to use the new crane',
  'crane.spec.ts (11): removed redundant mocks',
])('a line about a test needs its file: %s', (line) => {
  expect(isWeak(line)).toBe(true);
});

test.each([
  "You're right to ask - the gate never opens the crane lock.",
  'My mistake — the warnings are in `quay/crane.ts`, not in the tide list.',
  'I did not start the crane because the lock must close before the tide.',
  "You're right: the crane lock is never freed.",
])('a remark with a fact behind it is kept: %s', (sentence) => {
  expect(saysNothing(sentence)).toBe(false);
});

test.each([
  "I'm testing the harbour now.",
  'ok I just deployed the newest harbour to staging.',
  'still some crane test failures in ci.',
  'the crane test is also still failing.',
  'the harbour branch is somehow failing in ci.',
  'there are a few review comments on that pr.',
  'theres 4 new comments from the reviewer on pr 175',
])('a sentence about the moment is not quoted: %s', (sentence) => {
  expect(isOfMoment(sentence)).toBe(true);
});

test.each([
  'you should not edit files in the harbour copy',
  'you need to use the crane list of `quay.ts`',
  'I want the crane lock to be freed at low tide.',
  'when loading a ship I just noticed that two cranes have the same id',
  'the crane still holds its lock after the tide',
  'there are two cranes at each quay',
  'there are comments in the crane module that explain the lock',
  'the tide table is never cached',
  "I'm working on TIDE-98.",
  'the crane tests are failing because the tide table is shared',
])('what stays true is no sentence about the moment: %s', (sentence) => {
  expect(isOfMoment(sentence)).toBe(false);
});

test('a line of little use alone is not quoted', () => {
  const turns = 'The crane of the quay turns left.';
  expect(conclusionLines(`- Handle the crane of the quay in \`boats.ts\`\n\n${turns}`)).toEqual([
    turns,
  ]);
});

const sentence = fc.constantFrom(...Object.values(EMPTY).flat(), ...TELLING);

test('a part is a piece of its line, begins and ends with whole sentences, and is its own part', () => {
  fc.assert(
    fc.property(fc.array(sentence, { minLength: 1, maxLength: 6 }), (sentences) => {
      const line = sentences.join(' ');
      const part = sayingPart(line);
      expect(line).toContain(part);
      expect(sayingPart(part)).toBe(part);
      const [first] = sentencesOf(part);
      if (first !== undefined) expect(saysNothing(first)).toBe(false);
      for (const one of sentencesOf(part)) expect(sentencesOf(line)).toContain(one);
    }),
  );
});

test('any text is read in time, and a part of it comes back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      expect(text).toContain(sayingPart(text));
    }),
  );
  for (const text of [
    'it '.repeat(50_000),
    'ok '.repeat(50_000),
    '。'.repeat(50_000),
    'a. '.repeat(20_000),
  ]) {
    expect(text).toContain(sayingPart(text));
  }
});

test('an item that goes on with the head of its list is quoted behind it, or not at all', () => {
  const answer = [
    'The metadata hook of the gateway runs at two places:',
    '- During the setup of the quay',
    '- The nightly job calls it once more, because the crane moves.',
    '',
    '**Changes:**',
    '- Used as map keys',
  ].join('\n');
  expect(conclusionLines(answer)).toEqual([
    'The metadata hook of the gateway runs at two places: During the setup of the quay',
    'The nightly job calls it once more, because the crane moves.',
  ]);
  expect(soleSentences(answer)).toEqual([
    'The nightly job calls it once more, because the crane moves.',
  ]);
});

test.each([
  'Can find boats that came since low tide',
  'Does NOT use the crane of the quay',
  'Tries the number of the quay (12 signs)',
  'Used by `crane`, `quay` and the gates of the harbour',
  'Assigned to fields of the quay that are `string`',
  'Line 51: `openQuay()` reads the whole tide table',
])('a line whose subject stands above its list needs its head: %s', (item) => {
  const head = 'In `loadTide()`, for each quay of the harbour:';
  expect(conclusionLines(`${head}\n- ${item}`)).toEqual([`${head} ${item}`]);
  expect(conclusionLines(`**Changes:**\n- ${item}`)).toEqual([]);
  expect(conclusionLines(item)).toEqual([]);
});

test.each([
  'Tests fail in `quay.ts` where no crane is set',
  'Based on the tide table, `quay.ts` opens at low tide.',
  'Fixed by replacing `runQuay` with `runCrane` in `quay.ts`',
  'Switched to `pnpm` because the quay is a workspace.',
  'The failure is at line 27 of `quay.ts`.',
  'Display names of `quay.ts` are cut at 40 signs.',
])('a line with a subject of its own needs no head: %s', (line) => {
  expect(conclusionLines(line)).toEqual([line]);
});

test('an item with a label that names nothing is quoted with the head of its list', () => {
  const answer = [
    'The crane of the quay has two modes:',
    '- Nightly: loads the boats of the harbour one by one',
    '- `--fast`: loads the boats of the harbour at once',
    '',
    'Modes:',
    '- Weekly: loads the boats of the harbour by hand',
  ].join('\n');
  expect(conclusionLines(answer)).toEqual([
    'The crane of the quay has two modes: Nightly: loads the boats of the harbour one by one',
    '`--fast`: loads the boats of the harbour at once',
    'Weekly: loads the boats of the harbour by hand',
  ]);
});

test.each([
  'Options:',
  'There are two approaches to the quay:',
  '## Alternatives',
  'We could do one of these with the quay:',
  '**Scenario 1**: two boats moor at the quay at once:',
])('of a list of what may be done nothing is quoted: %s', (head) => {
  const items =
    '- Adopt the crane: let it load `6431` boats.\n\n- Reset: remove the crane of the quay.';
  const chosen = 'The crane of the quay loads three boats a night.';
  expect(conclusionLines(`${head}\n\n${items}\n\n${chosen}`)).toEqual([chosen]);
});

test.each([
  'Pros:',
  '**Cons:**',
  'Before:',
  'After:',
  'Vorher:',
  'Antes:',
  'Nachteile:',
  'Avantages :',
  'Ventajas:',
  '优点：',
])('of %s and its half of a comparison nothing is quoted', (head) => {
  const item = 'Takes more vertical space in the list of the harbour.';
  const answer = `${head}\n- ${item}\n\nThe list of the harbour is grouped by quay.\n- ${head.replaceAll('*', '')} ${item}`;
  expect(conclusionLines(answer)).toEqual(['The list of the harbour is grouped by quay.']);
});

test('an item that names its own subject has no head, and neither signs nor tags of a page are left', () => {
  const answer = [
    '**The two hooks of the quay gateway:**',
    '- `boats.ts`: Updated the test that passes the crane',
    '',
    '**4. `harbour/` files** - These are operations, the crane is optional.',
    '<sub>The harbour log is kept for 14 days</sub>',
  ].join('\n');
  expect(conclusionLines(answer)).toEqual([
    '`boats.ts`: Updated the test that passes the crane',
    '`harbour/` files - These are operations, the crane is optional.',
    'The harbour log is kept for 14 days',
  ]);
});

test('ticks are taken off, and the end of a sentence is no line', () => {
  const answer = [
    '✅ The gateway of the quay listens on port 6543',
    '- ✅ Build passes',
    '...does not make sense for the boats of a quay.',
  ].join('\n');
  expect(conclusionLines(answer)).toEqual(['The gateway of the quay listens on port 6543']);
});
