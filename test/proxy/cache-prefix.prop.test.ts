import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { viewRequest } from '../support/view-of.ts';
import { type BodyPair, expectStablePrefix } from '../clients/support/laws.ts';
import { bodyOf, conversations, type Conversation, stepsOf } from '../support/conversations.ts';
import { DIALECTS, PATHS } from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import { type RecordedCall, recordedCalls } from '../support/recorded-bodies.ts';
import { startRecordingProvider, startStory, type Story } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * The law of the provider's prompt cache: what the client left as it was from one request to the
 * next leaves svc as it was, memory or not, restart or not.
 */

const MEMORIES = [
  'The staging database of the walrus shop listens on port 6431.',
  'Marta owns the billing dashboard and its Grafana alerts.',
  'Feature flags live in LaunchDarkly under the workspace kestrel.',
  'Nightly backups are encrypted with age and shipped to Frankfurt.',
];

async function teach(story: Story): Promise<void> {
  const records = MEMORIES.map((text) => recordOf(text, { space: 'global', conversation: text }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
}

/** So many tokens that no older block has to make way, which would be a break that is meant. */
// Every prompt with words of its own may get a block: what is asked is where it stays.
const settings = { recalledTokensMax: 8_192, recallQuietPercent: 0 };

test.each(DIALECTS)(
  '%s: side by side and over a restart, generated conversations keep their prefix',
  async (dialect) => {
    let blocks = 0;
    let items = 0;
    await fc.assert(
      fc.asyncProperty(
        conversations(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (told, share) => {
          const pairs = await play(dialect, told, share);
          for (const list of pairs) {
            const counts = expectStablePrefix(list, listName(dialect));
            items += counts.items;
            blocks += list.at(-1)?.forwardedBody.toString().split('<svc-memory').length ?? 0;
          }
        },
      ),
      { numRuns: 4 },
    );
    // The law says nothing where nothing was placed.
    expect(blocks).toBeGreaterThan(3);
    expect(items).toBeGreaterThan(10);
  },
  120_000,
);

/** Sends all conversations step by step, in turns, with a restart after a share of the steps. */
async function play(
  dialect: Dialect,
  told: readonly Conversation[],
  share: number,
): Promise<readonly BodyPair[][]> {
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  let story = await startStory({ provider, folder, settings });
  await teach(story);
  const pairs: BodyPair[][] = told.map(() => []);
  const all = told.map((conversation) => stepsOf(dialect, conversation));
  const steps = Math.max(...all.map(({ length }) => length));
  const restartAt = Math.floor(share * steps);
  for (let step = 0; step < steps; step += 1) {
    if (step === restartAt) {
      await story.stop();
      story = await startStory({ provider, folder, settings });
    }
    for (const [index, own] of all.entries()) {
      const items = own[step];
      const conversation = told[index];
      if (items === undefined || conversation === undefined) continue;
      const clientBody = bodyOf(dialect, items);
      const { headers } = await story.send(dialect, clientBody, conversation.headers);
      expect(headers['x-svc-memory-state']).toMatch(/^(?:recalled|empty)$/);
      pairs[index]?.push({ clientBody, forwardedBody: lastBody(provider.seen) });
    }
  }
  await story.stop();
  return pairs;
}

const BINDING = 'claude-opus-5-5';
const UNBINDING = 'claude-opus-4-5';

function lastBody(seen: readonly { readonly body: Buffer }[]): Buffer {
  return seen.at(-1)?.body ?? Buffer.alloc(0);
}

function listName(dialect: Dialect): 'messages' | 'input' {
  return dialect === 'openai_responses' ? 'input' : 'messages';
}

interface Recorded {
  readonly scenario: string;
  readonly dialect: Dialect;
}

const RECORDED: readonly Recorded[] = [
  { scenario: 'claude-code-2.1.329/long-26-steps', dialect: 'anthropic_messages' },
  { scenario: 'claude-code-2.1.329/multi-turn-resume', dialect: 'anthropic_messages' },
  { scenario: 'claude-code-2.1.329/parallel-tools', dialect: 'anthropic_messages' },
  { scenario: 'claude-code-2.1.329/subagent', dialect: 'anthropic_messages' },
  { scenario: 'claude-code-2.1.20/tui', dialect: 'anthropic_messages' },
  { scenario: 'codex-0.169.0/long-26-steps', dialect: 'openai_responses' },
  { scenario: 'codex-0.169.0/multi-turn-resume', dialect: 'openai_responses' },
  { scenario: 'codex-0.169.0/parallel-tools', dialect: 'openai_responses' },
  { scenario: 'opencode-1.18.33/chat', dialect: 'openai_chat_completions' },
];

test.each(RECORDED)(
  'the recorded session $scenario keeps its prefix over a restart',
  async ({ scenario, dialect }) => {
    const calls = recordedCalls(scenario).filter(({ path }) => path === PATHS[dialect]);
    const folder = tempFolder();
    const provider = await startRecordingProvider();
    let story = await startStory({ provider, folder, settings });
    await teachAbout(story, dialect, calls);
    const pairs: BodyPair[] = [];
    for (const [index, { body: recorded, headers }] of calls.entries()) {
      // The recorded thinking was not relayed here, so a model is asked that binds none.
      const body = Buffer.from(
        recorded.toString('latin1').replaceAll(BINDING, UNBINDING),
        'latin1',
      );
      if (index === calls.length >> 1) {
        await story.stop();
        story = await startStory({ provider, folder, settings });
      }
      const answer = await story.send(dialect, body, headers);
      const state = String(answer.headers['x-svc-memory-state']);
      expect(state).toMatch(/^(?:recalled|empty|skipped_side_call)$/);
      const pair = { clientBody: body, forwardedBody: lastBody(provider.seen) };
      if (state !== 'skipped_side_call') pairs.push(pair);
    }
    const { items } = expectStablePrefix(pairs, listName(dialect));
    expect(items).toBeGreaterThan(0);
    expect(pairs.at(-1)?.forwardedBody.toString()).toContain('<svc-memory');
  },
  60_000,
);

/** An earlier session that spoke of what this one asks. */
async function teachAbout(
  story: Story,
  dialect: Dialect,
  calls: readonly RecordedCall[],
): Promise<void> {
  const texts = calls.flatMap(
    ({ body }) => viewRequest(body, dialect)?.items.map(({ humanText }) => humanText) ?? [],
  );
  const records = [...new Set(texts)]
    .filter((text) => text !== '')
    .map((text) => recordOf(`The harbour crew wrote: ${text}`, { space: 'global' }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
}
