import { passageIn } from '../../../src/core/memory-api/record-items.ts';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { writeAgentBlock } from '../../../src/core/recall/agent-block.ts';
import { writeRecallBlock } from '../../../src/core/recall/recall-block.ts';
import type { MemoryRecord } from '../../../src/ports/memory.ts';
import type {
  NewObject,
  ServiceAnswer,
  ServiceStore,
  TenantStore,
} from '../../src/ports/service-store.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { newPurgeId, objectOf, questionTo } from '../support/service-objects.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

/**
 * The database only finds texts and counts words; the core ranks. So a file and PostgreSQL give the
 * same passages in the same order, with the same scores, and the same block.
 */

interface Conversation {
  readonly space: string;
  readonly records: readonly (MemoryRecord & { readonly role: 'user' | 'assistant' })[];
  readonly questions: readonly { readonly text: string }[];
}

const BENCH = join(import.meta.dirname, '../../../bench/recall');
/** All questions take an hour on a busy machine: without this some of each conversation are asked. */
const ASKS_ALL = process.env['SVC_TEST_SAME_ANSWERS'] === 'all';
const EVERY = ASKS_ALL ? { dialogues: 1, long: 1 } : { dialogues: 3, long: 50 };
const BATCH = 100;
const NOW = Date.parse('2026-08-01T12:00:00Z');

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(120_000);

async function dialogues(): Promise<readonly Conversation[]> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The bench has no types.
  const module = (await import(join(BENCH, 'dialogues.mjs'))) as {
    readDialogues(): readonly Conversation[];
  };
  return module.readDialogues();
}

/** Undefined where other people's conversations are not on this machine. */
async function longConversations(): Promise<readonly Conversation[] | undefined> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The bench has no types.
  const module = (await import(join(BENCH, 'locomo.mjs'))) as {
    readonly DATA_FILE: string;
    readConversations(asked: object): readonly Conversation[] | undefined;
  };
  if (!existsSync(module.DATA_FILE)) return undefined;
  return module.readConversations({ half: 'all', areRolesTold: true });
}

const spaceOf = ({ space }: Conversation): string => `project/${space.toLowerCase()}`;

function objectsOf({ records }: Conversation): NewObject[] {
  return records.map(({ role, text, conversation, at, exchange, fingerprint }) =>
    objectOf(text, {
      role,
      session: conversation,
      client: 'claude-code',
      observedAt: at,
      position: exchange,
      fingerprint,
      branch: exchange % 3 === 0 ? 'main' : 'feature',
    }),
  );
}

async function keep(store: TenantStore, conversation: Conversation): Promise<void> {
  const objects = objectsOf(conversation);
  for (let at = 0; at < objects.length; at += BATCH) {
    const batch = objects.slice(at, at + BATCH);
    const space = spaceOf(conversation);
    // oxlint-disable-next-line no-await-in-loop -- The order of the batches is the order of the places.
    await store.capture({ space, ifGeneration: undefined, objects: batch, now: NOW }, patience());
  }
}

const AGENT = { conversation: 'asks', branch: 'main', quietShare: 0, briefTokensMax: 300 } as const;

interface Told {
  readonly chat: unknown;
  readonly block: string;
  readonly agent: unknown;
  readonly agentBlock: string;
}

/** Everything that a question may bring, in its order, and what is made of it. */
async function told(
  store: TenantStore,
  asked: { space: string; others: string[]; text: string },
): Promise<Told> {
  const { space, others, text } = asked;
  const question = questionTo({
    space,
    otherSpaces: others,
    humanText: text,
    now: NOW,
    itemsMax: 50,
  });
  const chat = await store.recall(question, patience());
  const agent = await store.recall({ ...question, agent: AGENT }, patience());
  const { exchanges = [], sessions = [] } = agent;
  const standing = agent.items.map(({ text: said }) => ({
    role: 'user' as const,
    text: said,
    at: 0,
  }));
  const limits = { tokensMax: 512, briefTokensMax: AGENT.briefTokensMax };
  return {
    chat: viewOf(chat),
    block: writeRecallBlock(
      chat.items.flatMap((item) => passageIn(item, [space, ...others]) ?? []),
      512,
    ).text,
    agent: viewOf(agent),
    agentBlock: writeAgentBlock({ exchanges, sessions, standing }, limits).text,
  };
}

/** Without the numbers that each database counts in its own way. */
function viewOf({ items, exchanges, sessions, isTruncated }: ServiceAnswer): unknown {
  return {
    items: items.map(({ text, kind, score, verbatim, provenance }) => {
      const places = provenance.map((place) => ({ ...place, source_id: '' }));
      return { text, kind, score, verbatim, places };
    }),
    exchanges,
    sessions,
    isTruncated,
  };
}

async function purgeSome(store: TenantStore, conversation: Conversation): Promise<void> {
  const { records } = conversation;
  const digests = objectsOf(conversation)
    .filter((_, at) => at % 7 === 3)
    .map(({ digest }) => digest);
  const session = records.at(-1)?.conversation ?? '';
  const order = { space: spaceOf(conversation), isDryRun: false, requestedBy: 'k', now: NOW };
  for (const scope of [{ digests }, { session_id: session }]) {
    const purgeId = newPurgeId();
    // oxlint-disable-next-line no-await-in-loop
    await store.beginPurge({ ...order, purgeId, scope });
    // oxlint-disable-next-line no-await-in-loop
    while (!(await store.continuePurge(purgeId, NOW)));
  }
}

describe.skipIf(missing !== undefined)('a file and PostgreSQL', () => {
  const servers = postgresStores();

  async function compare(conversations: readonly Conversation[], every: number): Promise<number> {
    const folder = tempFolder();
    const address = await servers.address();
    const openBoth = async (): Promise<readonly [ServiceStore, ServiceStore]> => [
      openServiceStore({ folder, serves: true, creates: true, report: () => undefined }),
      await servers.open(address),
    ];
    let both = await openBoth();
    onTestFinished(() => Promise.all(both.map((one) => one.close())).then(() => undefined));
    const each = (work: (store: TenantStore) => Promise<void>): Promise<unknown> =>
      Promise.all(both.map((one) => work(one.of('default'))));
    let answered = 0;
    const askAll = async (step: number): Promise<void> => {
      for (const [place, conversation] of conversations.entries()) {
        const next = conversations[(place + 1) % conversations.length] ?? conversation;
        for (const [at, { text }] of conversation.questions.entries()) {
          if (at % step !== 0) continue;
          const others = at % 2 === 0 ? ['global'] : ['global', spaceOf(next)];
          const asked = { space: spaceOf(conversation), others, text };
          // oxlint-disable-next-line no-await-in-loop
          const [file, server] = await Promise.all(
            both.map((one) => told(one.of('default'), asked)),
          );
          expect({ text, ...server }).toEqual({ text, ...file });
          if (file?.block !== '' || file.agentBlock !== '') answered += 1;
        }
      }
    };
    const restart = async (): Promise<void> => {
      await Promise.all(both.map((one) => one.close()));
      both = await openBoth();
    };
    for (const conversation of conversations) {
      // oxlint-disable-next-line no-await-in-loop
      await each((store) => keep(store, conversation));
    }
    // As the database does by itself a minute after so many rows: its plans rest on it.
    await servers.server().run(address.database, 'ANALYZE');
    await askAll(every);
    for (const conversation of conversations) {
      // oxlint-disable-next-line no-await-in-loop
      await each((store) => purgeSome(store, conversation));
    }
    await restart();
    await askAll(every * 3);
    for (const conversation of conversations) {
      // oxlint-disable-next-line no-await-in-loop
      await each((store) => keep(store, conversation));
    }
    await restart();
    await askAll(every * 3);
    return answered;
  }

  test('a question about the dialogues gets the same answer, also after a purge and a restart', async () => {
    expect(await compare(await dialogues(), EVERY.dialogues)).toBeGreaterThan(20);
  }, 600_000);

  test('a question about long conversations gets the same answer, also after a purge and a restart', async (context) => {
    const conversations = await longConversations();
    if (conversations === undefined) {
      process.stderr.write('SKIPPED ALOUD: the long conversations are not on this machine\n');
      context.skip('the long conversations are not on this machine');
      return;
    }
    expect(await compare(conversations, EVERY.long)).toBeGreaterThan(20);
  }, 3_600_000);
});
