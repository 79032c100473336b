import { describe, expect, test, vi } from 'vitest';
import { DELIVERIES, HookedSession, HookedWorld } from '../support/hooked-session.ts';

/** What a person tries first: to tell one thing, and to ask for it in the next session. Nothing is set. */

vi.setConfig({ testTimeout: 240_000 });

/** The fact, the part of it that nobody could guess, and a question as people type it. */
const FACTS: readonly (readonly [string, string, string])[] = [
  ['My favourite colour is chartreuse-9.', 'chartreuse-9', 'What is my favourite colour?'],
  ['Our database is Postgres 17.4.', '17.4', 'Which database do we use?'],
  ['The staging server runs on port 6431.', '6431', 'What port does staging run on?'],
  ['Please remember: my cat is called Brambleby.', 'Brambleby', 'What is the name of my cat?'],
  ['We deploy with the script ship-walrus.sh.', 'ship-walrus', 'How do we deploy?'],
  [
    'The API key for the weather service is stored in vault heron-eleven.',
    'heron-eleven',
    'Where is the weather API key?',
  ],
  [
    'Remember that tests are run with npm run check:otter.',
    'check:otter',
    'How do I run the tests?',
  ],
  ['The codename of this project is Lynxfall.', 'Lynxfall', 'What is the codename of the project?'],
  ['Release notes are written by Marta Quillhaven.', 'Quillhaven', 'Who writes the release notes?'],
  ['Always use pnpm 9.7 in this repository.', '9.7', 'Which package manager should I use here?'],
  ['The nightly backup goes to the bucket moth-two.', 'moth-two', 'Where does the backup go?'],
  [
    'Our linter config lives in tools/lint-plover.json.',
    'lint-plover',
    'Where is the linter config?',
  ],
  [
    'We chose Redis over Memcached because of streams-kite.',
    'streams-kite',
    'Why did we choose Redis?',
  ],
  ['The build takes 14 minutes because of the ibex stage.', 'ibex', 'Why is the build slow?'],
  ['Invoices are printed on the plotter stork-6.', 'stork-6', 'Which plotter prints the invoices?'],
  ['Login tokens expire after 37 minutes.', '37 minutes', 'When do login tokens expire?'],
  ['The design system is called Tamarisk.', 'Tamarisk', 'What is our design system called?'],
  [
    'Support tickets go to the queue gannet-blue.',
    'gannet-blue',
    'Which queue gets support tickets?',
  ],
  ['The demo account is demo-puffin@example.com.', 'demo-puffin', 'What is the demo account?'],
  ['Feature flags are kept in flags/egret.yaml.', 'egret', 'Where are feature flags kept?'],
];

async function tell(world: HookedWorld, session: string, fact: string): Promise<void> {
  const one = new HookedSession(world, session);
  await one.begin();
  await one.say({ prompt: fact, answer: 'Noted.' });
  await one.end();
}

/** Whether the model has read it from svc, at the start of the session or at its first prompt. */
async function isKnown(
  world: HookedWorld,
  session: string,
  { question, secret }: { readonly question: string; readonly secret: string },
): Promise<boolean> {
  const one = new HookedSession(world, session);
  await one.begin();
  await one.say({ prompt: question, answer: 'Let me look.' });
  return one.read.includes(secret);
}

describe.each(DELIVERIES)('through %s', (delivery) => {
  test('the first fact of all is known in the next session', async () => {
    for (const [fact, secret, question] of FACTS.slice(0, 5)) {
      const world = new HookedWorld(delivery);
      // oxlint-disable-next-line no-await-in-loop -- Each has stores and sockets of its own.
      await tell(world, 'told', fact);
      // oxlint-disable-next-line no-await-in-loop
      expect([question, await isKnown(world, 'asked', { question, secret })]).toEqual([
        question,
        true,
      ]);
      // oxlint-disable-next-line no-await-in-loop
      await world.restart();
    }
  });

  test('each of twenty is known, whatever was told after it', async () => {
    const world = new HookedWorld(delivery);
    // oxlint-disable-next-line no-await-in-loop -- A person does one thing after the other.
    for (const [at, [fact]] of FACTS.entries()) await tell(world, `told-${at}`, fact);
    const unknown: string[] = [];
    for (const [at, [, secret, question]] of FACTS.entries()) {
      // oxlint-disable-next-line no-await-in-loop
      if (!(await isKnown(world, `asked-${at}`, { question, secret }))) unknown.push(question);
    }
    await world.restart();
    process.stderr.write(
      `MEASURED ${delivery}: ${FACTS.length - unknown.length} of ${FACTS.length}\n`,
    );
    expect(unknown).toEqual([]);
  });
});
