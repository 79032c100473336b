import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conclusionLines, soleLines } from '../../src/core/recall/conclusions.ts';
import { saysNothing, sayingPart } from '../../src/core/recall/saying.ts';
import { sentencesOf } from '../../src/core/recall/sentences.ts';

const EMPTY = {
  'an announcement': [
    'Let me now look at the caller.',
    'Good. Now I will run the tests of the gateway.',
    'Continuing with the E2E test debugging.',
    'Lass mich zuerst den Aufrufer ansehen.',
    'Je vais maintenant vérifier les tests.',
    'Voy a revisar el archivo de configuración.',
    'Vou verificar o arquivo de configuração.',
    '让我先看一下这个文件。',
    '次にテストを実行します。',
  ],
  'a status': [
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
  'an offer or a question': [
    'Want me to push it?',
    'Should the session appear under all branches or just one?',
    'Let me know if you want another name.',
    'Soll ich es gleich pushen?',
    'Voulez-vous que je continue ?',
    '¿Quieres que lo suba?',
    '需要我提交吗？',
  ],
  'a sentence about the one before it': [
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
  'Notify me is the name of the button.',
  'Committed sessions stay in the shadow branch.',
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
  expect(soleLines(answer)).toEqual([
    'The nightly job calls it once more, because the crane moves.',
  ]);
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

test('ticks are taken off, and menus, logs and quotations are no lines', () => {
  const answer = [
    '✅ The gateway of the quay listens on port 6543',
    '- ✅ Build passes',
    '- Commit: `e94d2718` - "add the boats of the quay, small refactor"',
    '- `/quay:check` — review the pending boats of the quay',
    'DEBUG quay skipped: failed to find the boat',
    '"I want to restore the boats of the quay to this point"',
    '...does not make sense for the boats of a quay.',
  ].join('\n');
  expect(conclusionLines(answer)).toEqual(['The gateway of the quay listens on port 6543']);
});
