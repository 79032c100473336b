import { expect, test, vi } from 'vitest';
import {
  DELIVERIES,
  type Delivery,
  HookedSession,
  HookedWorld,
  saysOf,
} from '../support/hooked-session.ts';

/** A session that runs svc's hooks, that asks through the proxy, or that does both: the same memories, each once. */

vi.setConfig({ testTimeout: 120_000 });

const FACT = 'The staging database of the marmalade service listens on port 6543, not on 5432.';
const NOTED = 'Noted: the marmalade staging database listens on port 6543, not on 5432.';
const ASKED = 'Which port does the staging database of the marmalade service use?';

type Story = (world: HookedWorld) => Promise<string | void>;

/** What each of the three keeps of the same sessions. */
async function keptBy(story: Story): Promise<Readonly<Record<Delivery, readonly string[]>>> {
  const entries: [Delivery, readonly string[]][] = [];
  for (const delivery of DELIVERIES) {
    const world = new HookedWorld(delivery);
    // oxlint-disable-next-line no-await-in-loop -- Each has stores and sockets of its own.
    await story(world);
    // oxlint-disable-next-line no-await-in-loop
    const records = await world.records();
    const texts = records.map((record) =>
      saysOf(record)
        .replaceAll(world.stage.home, '~')
        .replace(/^\S+-[0-9a-f]{10} /, ''),
    );
    // oxlint-disable-next-line no-await-in-loop
    await world.restart();
    entries.push([delivery, texts.toSorted()]);
  }
  return Object.fromEntries(entries) as Record<Delivery, readonly string[]>;
}

async function expectSame(story: Story): Promise<readonly string[]> {
  const { hooks, proxy, both } = await keptBy(story);
  expect({ proxy, both }).toEqual({ proxy: hooks, both: hooks });
  return hooks;
}

async function told(world: HookedWorld): Promise<void> {
  const session = new HookedSession(world, 's1');
  await session.begin();
  await session.say({ prompt: FACT, answer: NOTED });
  await session.end();
}

const ECHO = 'The marmalade staging database listens on port 6543, not on 5432.';
/** Begins a second session after the fact was told in a first one. `isHookLate`: at its start and at its first prompt. */
async function afterTold(
  world: HookedWorld,
  { isHookLate = false }: { readonly isHookLate?: boolean } = {},
): Promise<HookedSession> {
  await told(world);
  const session = new HookedSession(world, 's2');
  world.isHookLate = isHookLate;
  await session.begin();
  world.isHookLate = isHookLate;
  return session;
}

const NEWS = 'I have put the walrus retry limit of 17 into harbour.toml.';

test('an answer that repeats what a hook or the proxy has placed is kept without it, and once', async () => {
  const kept = await expectSame(async (world) => {
    const session = await afterTold(world);
    await session.say({ prompt: ASKED, answer: `${ECHO} ${NEWS}` });
    await session.end();
  });
  expect(kept).toContain(`claude-code assistant: ${NEWS}`);
  expect(kept).toHaveLength(4);
});

test('an answer is kept as it was heard, whatever is placed later', async () => {
  const kept = await expectSame(async (world) => {
    const session = new HookedSession(world, 's2');
    await session.begin();
    const first = `${ECHO} ${NEWS}`;
    await session.say({
      prompt: 'What did the harbour change write into its file?',
      answer: first,
    });
    await told(world);
    await session.say({ prompt: ASKED, answer: 'As said above, nothing else is known of it.' });
    await session.end();
  });
  expect(kept).toContain(`claude-code assistant: ${ECHO} ${NEWS}`);
});

test('where a hook is late the proxy places the block, and the hooks keep what it leaves new', async () => {
  const kept = await expectSame(async (world) => {
    const session = await afterTold(world, { isHookLate: world.delivery === 'both' });
    await session.say({ prompt: ASKED, answer: `${ECHO} ${NEWS}` });
    await session.end();
  });
  expect(kept).toContain(`claude-code assistant: ${NEWS}`);
  expect(kept).toHaveLength(4);
});

test('a fork keeps only what is said in it', async () => {
  const kept = await expectSame(async (world) => {
    const session = await afterTold(world, { isHookLate: world.delivery === 'both' });
    await session.say({ prompt: ASKED, answer: `${ECHO} ${NEWS}` });
    await session.end();
    const fork = await session.fork('s3');
    await fork.say({ prompt: 'And which file has the tide lock?', answer: 'It is tide_lock.ts.' });
    await fork.end();
  });
  expect(kept.filter((text) => text.includes('walrus'))).toHaveLength(1);
  expect(kept).toContain('claude-code assistant: It is tide_lock.ts.');
});

test('a prompt that the person asks again from an earlier place is kept too', async () => {
  const kept = await expectSame(async (world) => {
    const session = new HookedSession(world, 's2');
    await session.begin();
    for (const number of [11, 12, 13, 14, 15]) {
      const prompt = `Which harbour has the crane with number ${number}?`;
      await session.say({ prompt, answer: `Crane ${number} stands in the harbour of Lindau.` });
    }
    session.rewind(1);
    await session.say({ prompt: 'Which harbour has a dock?', answer: 'Only Bregenz has a dock.' });
    await session.end();
  });
  expect(kept).toContain('claude-code assistant: Only Bregenz has a dock.');
  expect(kept).toHaveLength(12);
});

test.each([60, 500])('a transcript that is written %i ms late changes nothing', async (lagMs) => {
  const kept = await expectSame(async (world) => {
    const session = new HookedSession(world, 's2');
    await session.begin();
    for (const number of [11, 12, 13]) {
      const prompt = `Which harbour has the crane with number ${number}?`;
      const answer = `Crane ${number} stands in the harbour of Lindau.`;
      const between = [`I look at the list of crane ${number}.`, ''];
      await session.say({ prompt, answer, between, lagMs });
    }
    await session.end();
  });
  expect(kept).toHaveLength(6);
});

test('what was said before a compaction is not taken out behind it', async () => {
  const kept = await expectSame(async (world) => {
    const session = await afterTold(world);
    await session.say({ prompt: ASKED, answer: `${ECHO} ${NEWS}` });
    await session.compact('This session is being continued from a previous conversation.');
    const answer = `${ECHO} The tide lock has 23 holders.`;
    await session.say({ prompt: 'What do we know of the tide lock?', answer });
    await session.end();
  });
  expect(kept.filter((text) => text.includes('23 holders'))).toHaveLength(1);
});

test('what a session began with is not taken out behind a compaction before its first prompt', async () => {
  const kept = await expectSame(async (world) => {
    const session = await afterTold(world);
    await session.compact('This session is being continued from a previous conversation.');
    const answer = `${ECHO} ${NEWS}`;
    await session.say({ prompt: 'Please count the holders.', answer });
    await session.end();
  });
  expect(kept).toContain(`claude-code assistant: ${ECHO} ${NEWS}`);
});
