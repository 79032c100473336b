import { expect, test } from 'vitest';
import { StrictPair } from '../support/conversation-fuzz/strict-pair.ts';
import { requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory, type Story } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

// A provider that binds thinking to everything before it (test/support/strict-provider): what svc placed
// once must come back, or the provider refuses the request or drops the thinking.

const MODELS = [
  ['anthropic_messages', 'claude-opus-5-5'],
  ['anthropic_messages', 'claude-fable-5-2'],
  ['openai_responses', 'gpt-6.2'],
] as const;

const CASES = MODELS.flatMap(([dialect, model]) =>
  (['new', 'old'] as const).flatMap((account) =>
    [true, false].map((isStrictest) => ({ dialect, model, account, isStrictest })),
  ),
);

const FACTS = [
  'The staging database of the walrus shop listens on port 6431.',
  'Marta owns the billing dashboard and its Grafana alerts.',
];
const QUESTIONS = [
  'On which port does the staging database of the walrus shop listen?',
  'Who owns the billing dashboard and its Grafana alerts?',
];

test.each(CASES)(
  '$model, $account account, strictest reading: $isStrictest: blocks of two prompts stay over tool loops and a restart',
  async ({ dialect, model, account, isStrictest }) => {
    const provider = await startRecordingProvider();
    const pair = new StrictPair({ account, isStrictest });
    provider.reply = (request) => pair.reply(request);
    const folder = tempFolder();
    let story = await startStory({ provider, folder });
    const records = FACTS.map((text) => recordOf(text, { space: 'default', conversation: text }));
    await story.memory.capture(records, AbortSignal.timeout(30_000));

    let items: readonly WireItem[] = [];
    const ask = async (through: Story, ...more: readonly WireItem[]): Promise<void> => {
      const thoughts = pair.thoughts;
      items = [...items, ...withThoughts(dialect, thoughts, more)];
      const json = requestWith(dialect, items, { model });
      pair.expect({ dialect, isCount: false, betas: [], json }, { text: 'Noted.' });
      const { status } = await through.send(dialect, json, { 'session-id': 'one' });
      expect(pair.caused(new Set())).toEqual([]);
      expect(status).toBe(200);
    };
    for (const [index, question] of QUESTIONS.entries()) {
      const answer = index === 0 ? [] : [said('assistant', 'Noted.')];
      await ask(story, ...answer, said('user', question));
      for (const round of ['a', 'b']) {
        await ask(story, ...toolRound(dialect, `call_${index}${round}`, 'nothing'));
      }
    }
    await story.stop();
    story = await startStory({ provider, folder });
    await ask(story, said('assistant', 'Noted.'), said('user', 'Thank you so much for that.'));
    const blocks = provider.seen.at(-1)?.body.toString().split('<svc-memory ') ?? [];
    expect(blocks).toHaveLength(3);
  },
);

// "With server-side compaction, the checked prefix starts at the most recent compaction block" (platform.claude.com, "Prefix
// checks", read 2026-11-29), and what stands before that block may be left out.
test.each([
  ['leaves out', (items: readonly WireItem[]) => items.slice(1)],
  ['edits', (items: readonly WireItem[]) => [said('user', 'Begin, please.'), ...items.slice(1)]],
])('a block behind a compaction stays when the client %s what stands before it', async (...of) => {
  const [, change] = of;
  const provider = await startRecordingProvider();
  const pair = new StrictPair({ account: 'new', isStrictest: false });
  provider.reply = (request) => pair.reply(request);
  const story = await startStory({ provider });
  const records = FACTS.map((text) => recordOf(text, { space: 'default', conversation: text }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
  const dialect = 'anthropic_messages';
  const betas = ['compact-2026-01-12'];
  let items: readonly WireItem[] = [];
  const ask = async (text: string, compacts = false): Promise<number> => {
    const answer = said('assistant', [...pair.thoughts, { type: 'text', text: 'Noted.' }]);
    items = [...items, ...(items.length > 0 ? [answer] : []), said('user', text)];
    const json = requestWith(dialect, items, { model: 'claude-opus-5-5' });
    pair.expect({ dialect, isCount: false, betas, json }, { text: 'Noted.', compacts });
    const headers = { 'session-id': 'one', 'anthropic-beta': betas.join() };
    const { status } = await story.send(dialect, json, headers);
    expect([pair.caused(new Set()), status]).toEqual([[], 200]);
    return (provider.seen.at(-1)?.body.toString() ?? '').split('<svc-memory ').length - 1;
  };
  await ask('Begin.', true);
  expect(await ask(QUESTIONS[0] ?? '')).toBe(1);
  expect(await ask('Thank you so much for that.')).toBe(1);
  items = change(items);
  expect(await ask('Is that all?')).toBe(1);
});

/** The thinking of the last answer, in front of what the model made. */
function withThoughts(
  dialect: (typeof MODELS)[number][0],
  thoughts: readonly WireItem[],
  more: readonly WireItem[],
): readonly WireItem[] {
  const [first, ...rest] = more;
  if (first === undefined || first['role'] === 'user' || thoughts.length === 0) return more;
  if (dialect === 'openai_responses') return [...thoughts, ...more];
  const { content } = first;
  const made: readonly unknown[] = Array.isArray(content)
    ? content
    : [{ type: 'text', text: content }];
  return [said('assistant', [...thoughts, ...made]), ...rest];
}
