import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { FoundEntries } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { readBodyList } from '../clients/support/body-list.ts';
import { DIALECTS, requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory, type Story } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * The law of the provider's cache over everything that happens to conversations: they are continued,
 * forked, rewound and resumed under other names or none, svc restarts, the ledger is late, an hour
 * passes, and the memory learns. What a conversation sent stays what it was.
 */

const FACTS = [
  'The staging database of the walrus shop listens on port',
  'Marta owns the billing dashboard and its Grafana alerts since build',
  'Feature flags of the workspace kestrel live in LaunchDarkly, room',
];

const PROMPTS = [
  'On which port does the staging database of the walrus shop listen?',
  'Who owns the billing dashboard and its Grafana alerts?',
  'Where do the feature flags of the workspace kestrel live?',
  'Paint the mountains in winter, please.',
];

type Step =
  | { readonly kind: 'begin'; readonly prompt: number; readonly isNamed: boolean }
  | { readonly kind: 'ask' | 'rewind'; readonly on: number; readonly prompt: number }
  | { readonly kind: 'round' | 'again'; readonly on: number }
  | {
      readonly kind: 'fork';
      readonly on: number;
      readonly prompt: number;
      readonly isNamed: boolean;
    }
  | Event;

interface Event {
  readonly kind: 'restart' | 'learn' | 'hour' | 'late';
}

const prompt = fc.nat(PROMPTS.length - 1);
const on = fc.nat(9);
const isNamed = fc.boolean();

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin' as const), prompt, isNamed }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), on, prompt }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('round' as const), on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('again' as const), on }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rewind' as const), on, prompt }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('fork' as const), on, prompt, isNamed }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'learn', 'hour', 'late') }),
  },
);

interface Branch {
  readonly session: string | undefined;
  readonly items: readonly WireItem[];
  /** The newest request that carried these items, as the client wrote it and as it left. */
  readonly sent: Sent | undefined;
  /** Of the process that sent it: one that knows nothing by heart cannot do without its ledger. */
  readonly life: number;
}

interface Sent {
  readonly client: Buffer;
  readonly forwarded: Buffer;
  /** Nothing was decided for its newest prompt, as the ledger was late: the next request asks again. */
  readonly isUndecided: boolean;
}

class World {
  readonly #dialect: Dialect;
  readonly #folder = tempFolder();
  readonly #clock = manualClock();
  readonly #branches: Branch[] = [];
  #provider = startRecordingProvider();
  #story: Story | undefined;
  #close: () => Promise<void> = async () => undefined;
  #isLate = false;
  #count = 0;
  #life = 0;
  compared = 0;
  blocks = 0;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  async start(): Promise<void> {
    await this.stop();
    const folder = this.#folder;
    const store = openEmbeddedStore({ folder, report: () => undefined });
    const known = new Set<string>();
    const ledger: Ledger = {
      generation: () => store.ledger.generation(),
      isShared: false,
      record: async (entries) => {
        for (const entry of entries) known.add(JSON.stringify({ ...entry, at: 0 }));
        await store.ledger.record(entries);
      },
      commit: async (entries) => {
        await ledger.record(entries);
        return true;
      },
      find: async (addresses, withinMs) => {
        const found = await store.ledger.find(addresses, withinMs);
        const entries = addresses.flatMap((address) => found.get(address) ?? []);
        const isKnown = (entry: object): boolean => known.has(JSON.stringify({ ...entry, at: 0 }));
        if (this.#isLate) return new FoundEntries(entries.filter(isKnown), 'late');
        for (const entry of entries) known.add(JSON.stringify({ ...entry, at: 0 }));
        return found;
      },
    };
    const provider = await this.#provider;
    const settings = { recalledTokensMax: 8_192 };
    this.#story = await startStory({ provider, folder, ledger, settings, clock: this.#clock });
    this.#close = () => store.close();
    this.#life += 1;
  }

  async stop(): Promise<void> {
    await this.#story?.stop();
    await this.#close();
  }

  async learn(): Promise<void> {
    this.#count += 1;
    const text = `${FACTS[this.#count % FACTS.length]} ${6_000 + this.#count}.`;
    const record = recordOf(text, { space: 'default', conversation: text });
    await this.#story?.memory.capture([record], AbortSignal.timeout(30_000));
  }

  async take(one: Step): Promise<void> {
    switch (one.kind) {
      case 'restart':
        return this.start();
      case 'learn':
        return this.learn();
      case 'hour':
        return this.#clock.goOn(3_700_000);
      case 'late':
        this.#isLate = !this.#isLate;
        return;
      case 'begin': {
        this.#count += 1;
        const session = 'isNamed' in one && one.isNamed ? `session-${this.#count}` : undefined;
        const items = [said('user', PROMPTS[one.prompt])];
        return this.#send({ session, items, sent: undefined, life: 0 });
      }
      case 'ask':
      case 'round':
      case 'again':
      case 'rewind':
      case 'fork':
        return this.#goOn(one);
    }
  }

  async #goOn(one: Exclude<Step, { prompt: number; isNamed: boolean; kind: 'begin' } | Event>) {
    const at = one.on % Math.max(1, this.#branches.length);
    const branch = this.#branches[at];
    if (branch === undefined) return;
    this.#count += 1;
    const unique = `call_${this.#count}`;
    if (!('prompt' in one)) {
      if (one.kind === 'again') return this.#send(branch, at);
      const items = [...branch.items, ...toolRound(this.#dialect, unique, 'nothing')];
      return this.#send({ ...branch, items }, at);
    }
    const answer = said('assistant', `Answer ${this.#count}.`);
    const question = said('user', PROMPTS[one.prompt]);
    if (one.kind === 'ask') {
      return this.#send({ ...branch, items: [...branch.items, answer, question] }, at);
    }
    // Before an answer that came already: a cut elsewhere would leave a call without its result.
    const answers = branch.items.flatMap(({ role, content }, index) =>
      role === 'assistant' && typeof content === 'string' ? [index] : [],
    );
    const cut = answers.at(-1);
    if (cut === undefined) return;
    const items = [...branch.items.slice(0, cut + 1), question];
    if (one.kind === 'rewind') return this.#send({ ...branch, items }, at);
    const session = 'isNamed' in one && one.isNamed ? `fork-${this.#count}` : undefined;
    return this.#send({ ...branch, items, session });
  }

  async #send(branch: Branch, at = this.#branches.length): Promise<void> {
    const client = Buffer.from(JSON.stringify(requestWith(this.#dialect, branch.items)));
    const headers = branch.session === undefined ? {} : { 'session-id': branch.session };
    const answer = await this.#story?.send(this.#dialect, client, headers);
    expect(answer?.status).toBe(200);
    const state = String(answer?.headers['x-svc-memory-state']);
    const isUndecided = state.startsWith('degraded');
    const forwarded = (await this.#provider).seen.at(-1)?.body ?? Buffer.alloc(0);
    JSON.parse(forwarded.toString());
    // A process that was just started knows nothing by heart: what it was not told in time is not there.
    const couldKnow = !this.#isLate || branch.life === this.#life;
    const isFresh = branch.items.length === 1;
    if (branch.sent !== undefined && couldKnow && !isFresh) {
      this.#compare(branch.sent, { client, forwarded, isUndecided });
    }
    this.blocks += forwarded.toString().split('<svc-memory').length - 1;
    // What was sent without blocks because nothing was known is no promise for later.
    const kept =
      couldKnow || branch.sent === undefined ? { client, forwarded, isUndecided } : branch.sent;
    this.#branches[at] = { ...branch, sent: kept, life: couldKnow ? this.#life : branch.life };
  }

  #compare(before: Sent, now: Sent): void {
    const name = this.#dialect === 'openai_responses' ? 'input' : 'messages';
    const list = (body: Buffer) => readBodyList(body, name).items;
    const [clientBefore, client] = [list(before.client), list(now.client)];
    const [forwardedBefore, forwarded] = [list(before.forwarded), list(now.forwarded)];
    for (const [index, item] of clientBefore.entries()) {
      if (client[index]?.equals(item) !== true) return;
      // Asked again, or answered meanwhile: another conversation with these words may have its block.
      if (index === clientBefore.length - 1 && before.isUndecided) return;
      this.compared += 1;
      expect(forwarded[index]?.toString(), `item ${index}`).toBe(
        forwardedBefore[index]?.toString(),
      );
    }
  }
}

test.each(DIALECTS)(
  '%s: over forks, rewinds, resumes, restarts, a late ledger and clients without names every prefix stays',
  async (dialect) => {
    let compared = 0;
    let blocks = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
        const world = new World(dialect);
        await world.start();
        for (let fact = 0; fact < FACTS.length; fact += 1) await world.learn();
        for (const one of steps) await world.take(one);
        await world.stop();
        compared += world.compared;
        blocks += world.blocks;
      }),
      { numRuns: Number(process.env['SVC_TEST_HISTORIES'] ?? 5) },
    );
    // The law says nothing where nothing was placed.
    expect(blocks).toBeGreaterThan(3);
    expect(compared).toBeGreaterThan(20);
  },
  300_000,
);
