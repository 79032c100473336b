import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { textDigest } from '../../src/core/memory/reference.ts';
import type { RecordKey } from '../../src/ports/memory.ts';
import {
  answered,
  behindThoughts,
  bodyOf,
  type Branch,
  headersOf,
  newBranch,
  spaceOf,
} from './conversation-fuzz/branch.ts';
import { judgeBody } from './conversation-fuzz/judge.ts';
import { expectPricedPrefix, type Sent } from './conversation-fuzz/prefix.ts';
import { RunningProxy } from './conversation-fuzz/running.ts';
import { type BranchKind, isBinding } from './conversation-fuzz/steps.ts';
import { StrictPair } from './conversation-fuzz/strict-pair.ts';
import { PATHS, said, toolRound } from './dialect-wire.ts';
import { recordOf } from './records.ts';
import { until } from './sockets.ts';
import { type RecordingProvider, startRecordingProvider } from './story.ts';
import { longOutput } from './tool-session.ts';

/**
 * The built program as a process that is killed while clients talk through it. Each client waits for the
 * next process and sends the request that failed once more. The provider is strict
 * (test/support/strict-provider).
 */

const PLAIN: Omit<BranchKind, 'dialect' | 'model' | 'isStreamed'> = {
  isNamed: true,
  space: 0,
  hasTools: true,
  writesParts: false,
  stripsThinking: false,
  dropsBlocks: false,
  thinks: 'once',
};

/** Three conversations with bound thinking, and one whose tool outputs may leave. */
const KINDS: readonly BranchKind[] = [
  { ...PLAIN, dialect: 'anthropic_messages', model: 2, isStreamed: true },
  { ...PLAIN, dialect: 'openai_responses', model: 3, isStreamed: true },
  { ...PLAIN, dialect: 'anthropic_messages', model: 3, isStreamed: false },
  { ...PLAIN, dialect: 'openai_chat_completions', model: 0, isStreamed: true },
];

const SPACE = spaceOf({ ...PLAIN, dialect: 'anthropic_messages', model: 0, isStreamed: false });

const FACTS = [
  'The staging database of the walrus shop listens on port',
  'Marta owns the billing dashboard and its Grafana alerts since build',
  'Feature flags of the workspace kestrel live in LaunchDarkly, room',
];

const PROMPTS = [
  'On which port does the staging database of the walrus shop listen, asks',
  'Who owns the billing dashboard and its Grafana alerts, asks',
  'Where do the feature flags of the workspace kestrel live, asks',
  'Paint the mountains in winter for',
];

/** A conversation ends after so many items, so that bodies stay small. */
const ITEMS_MAX = 40;

interface Said {
  readonly role: 'assistant' | 'user';
  readonly text: string;
}

/** Of one process: how long it lives, and whether it still does. */
interface Life {
  isOver: boolean;
}

/** A client that is one request of one conversation further with each step. */
class Talk {
  /** Texts of finished answers and their prompts that nobody has looked for yet. */
  fresh: Said[] = [];
  readonly held: Said[] = [];
  /** Ids of the finished answers whose rows the request log must have. */
  readonly logged: string[] = [];
  /** Its row is written behind the last byte of the answer, so a kill may take it. */
  #newest: string | undefined;
  answers = 0;
  blocks = 0;
  readonly #kind: BranchKind;
  readonly #number: number;
  readonly #proxy: RunningProxy;
  readonly #pair = new StrictPair({ account: 'new', isStrictest: true });
  /** What the provider got of the request on its way. */
  #forwarded: Buffer[] = [];
  #branch: Branch;
  #asked = 0;
  #sessions = 0;
  /** Its request may have reached the provider, but the answer did not come. */
  #isCut = false;

  constructor(number: number, kind: BranchKind, proxy: RunningProxy) {
    this.#number = number;
    this.#kind = kind;
    this.#proxy = proxy;
    this.#branch = this.#begun();
  }

  get session(): string {
    return this.#branch.session ?? '';
  }

  reply: RecordingProvider['reply'] = (request) => {
    this.#forwarded.push(request.body);
    return this.#pair.reply(request);
  };

  async goOn(life: Life): Promise<void> {
    while (!life.isOver) {
      // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
      await this.step(life);
    }
  }

  proxyStarted(): void {
    this.#newest = undefined;
  }

  async step(life: Life): Promise<void> {
    if (!this.#isCut) this.#branch = this.#continued();
    const cut = this.#isCut ? this.#forwarded.at(-1) : undefined;
    this.#forwarded = [];
    this.#asked += 1;
    const { dialect } = this.#kind;
    const client = bodyOf(this.#branch);
    const text = answerTo(`${this.#name}, number ${this.#asked}`);
    const json: unknown = JSON.parse(client.toString());
    this.#pair.expect({ dialect, isCount: false, betas: [], json }, { text });
    const answer = await this.#send(client, life);
    this.#isCut = answer === undefined;
    const forwarded = this.#forwarded.at(-1);
    if (forwarded === undefined) {
      if (answer !== undefined) throw new Error(`no request, but status ${answer.status}`);
      if (cut !== undefined) this.#forwarded = [cut];
      return;
    }
    expect(this.#pair.caused(new Set())).toEqual([]);
    // What the provider got before the kill it gets again, byte for byte.
    if (cut !== undefined && isBinding(dialect, this.#branch.model)) {
      expect(forwarded.toString()).toBe(cut.toString());
    }
    this.#branch = { ...this.#branch, sent: this.#compared(client, forwarded, answer) };
    if (answer === undefined) return;
    expect(answer.status).toBe(200);
    this.answers += 1;
    if (this.#newest !== undefined) this.logged.push(this.#newest);
    this.#newest = answer.headers.get('x-svc-request-id') ?? '';
    this.blocks += forwarded.toString().split('<svc-memory ').length - 1;
    this.fresh.push({ role: 'assistant', text }, { role: 'user', text: this.#prompt() });
    this.#branch = { ...this.#branch, answer: { text, thoughts: this.#pair.thoughts } };
  }

  /** Undefined where the proxy was killed before the last byte. */
  async #send(client: Buffer, life: Life): Promise<Response | undefined> {
    try {
      return await this.#proxy.send(PATHS[this.#kind.dialect], client, headersOf(this.#branch));
    } catch (error) {
      if (life.isOver) return undefined;
      throw error;
    }
  }

  #compared(client: Buffer, forwarded: Buffer, answer: Response | undefined): readonly Sent[] {
    const judged = judgeBody(this.#kind.dialect, client, forwarded);
    const state = answer?.headers.get('x-svc-memory-state') ?? '';
    // The evidence of an answer that did not come is not known.
    const isBatchTold = (answer?.headers.get('x-svc-elided-items') ?? '1') !== '0';
    const now = { judged, isUndecided: state.startsWith('degraded'), isBatchTold };
    const { sent } = this.#branch;
    expectPricedPrefix(sent, now);
    return [...sent, now];
  }

  get #name(): string {
    return `client-${this.#number}`;
  }

  #begun(): Branch {
    this.#sessions += 1;
    return newBranch(this.#kind, { session: `${this.#name}-session-${this.#sessions}` });
  }

  /** A further prompt, a round of the tool loop, or the first prompt of the next conversation. */
  #continued(): Branch {
    const branch = this.#branch.items.length > ITEMS_MAX ? this.#begun() : this.#branch;
    const { items, answer } = branch;
    if (items.length > 0 && this.#asked % 3 !== 0) {
      const output = longOutput(`output ${this.#asked} for ${this.#name}`, 300);
      const round = toolRound(this.#kind.dialect, `call_${this.#asked}`, output);
      const work = behindThoughts(this.#kind.dialect, answer.thoughts, round);
      return { ...branch, items: [...items, ...work] };
    }
    const question = PROMPTS[(this.#asked + this.#number) % PROMPTS.length];
    const prompt = said('user', `${question} ${this.#name} as number ${this.#asked}.`);
    return { ...branch, items: [...(items.length > 0 ? answered(branch) : []), prompt] };
  }

  /** The newest one of the person. */
  #prompt(): string {
    const isText = (content: unknown): content is string => typeof content === 'string';
    const texts = this.#branch.items
      .filter(({ role }) => role === 'user')
      .map((it) => it['content']);
    return texts.findLast(isText) ?? '';
  }
}

export class KilledProxy {
  readonly proxy: RunningProxy;
  readonly talks: readonly Talk[];

  private constructor(provider: RecordingProvider) {
    this.proxy = new RunningProxy(provider.url);
    this.talks = KINDS.map((kind, at) => new Talk(at + 1, kind, this.proxy));
    provider.reply = (request) => {
      const name = request.headers.find((value) => /^client-\d+-session-/.test(value));
      const talk = this.talks.find(({ session }) => session === name);
      if (talk === undefined) throw new Error(`whose request is it? ${name}`);
      return talk.reply(request);
    };
  }

  static async open(): Promise<KilledProxy> {
    return new KilledProxy(await startRecordingProvider());
  }

  /** What earlier sessions said. */
  async learn(): Promise<void> {
    const store = this.#openStore();
    const records = Array.from({ length: 30 }, (_, at) =>
      recordOf(`${FACTS[at % FACTS.length]} ${6_000 + at}, says keeper ${at}.`, {
        space: SPACE,
        conversation: `earlier-${at}`,
      }),
    );
    await store.memory.capture(records, AbortSignal.timeout(30_000));
    await store.close();
  }

  async start(): Promise<void> {
    await this.proxy.start();
    for (const talk of this.talks) talk.proxyStarted();
  }

  /**
   * A process from its first moment to its kill, with all clients talking as soon as it listens. `killAfterMs`
   * counts from its first moment, or from its first answer.
   */
  async live(killAfterMs: number, from: 'start' | 'answers' = 'start'): Promise<void> {
    const life: Life = { isOver: false };
    const started = this.start();
    const talking = started.then(
      () => Promise.all(this.talks.map((talk) => talk.goOn(life))),
      (error: unknown) => {
        if (!life.isOver) throw error;
      },
    );
    if (from === 'answers') await Promise.race([started.then(() => this.#firstAnswer()), talking]);
    await Promise.race([sleep(killAfterMs), talking]);
    life.isOver = true;
    await this.proxy.stop('SIGKILL');
    await talking;
    this.expectNothingDamaged();
  }

  async #firstAnswer(): Promise<void> {
    const before = this.answers;
    await until(() => this.answers > before);
  }

  get answers(): number {
    return this.talks.reduce((sum, talk) => sum + talk.answers, 0);
  }

  /** Every client is one request further. */
  async step(): Promise<void> {
    await Promise.all(this.talks.map((talk) => talk.step({ isOver: false })));
  }

  expectNothingDamaged(): void {
    expect(this.proxy.stderr).not.toMatch(/cannot|damaged|could not|waits/);
  }

  /** Everything that was acknowledged since the last call is stored, and has its row in the request log. */
  async expectKept(): Promise<void> {
    const store = this.#openStore();
    await store.outbox.flush(30_000);
    const isHeld = async (one: Said): Promise<boolean> =>
      (await store.memory.retrieve(keyOf(one), AbortSignal.timeout(30_000)))?.text === one.text;
    for (const talk of this.talks) {
      const fresh = talk.fresh.splice(0);
      // oxlint-disable-next-line no-await-in-loop
      const areHeld = await Promise.all(fresh.map(isHeld));
      expect(fresh.filter((_, at) => areHeld[at] !== true)).toEqual([]);
      talk.held.push(...fresh);
    }
    const rows = await store.requestLog.list({ limit: 100_000 });
    const ids = rows.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const logged = this.talks.flatMap((talk) => talk.logged);
    expect(logged.filter((id) => !ids.includes(id))).toEqual([]);
    await store.close();
  }

  /** All that was ever acknowledged is stored once. */
  async expectAllStored(): Promise<void> {
    const store = this.#openStore();
    await store.outbox.flush(30_000);
    expect(store.outbox.waiting).toBe(0);
    const texts: string[] = [];
    for (let offset = 0; ; offset += 1000) {
      // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
      const page = await store.memory.list({ limit: 1000, offset }, AbortSignal.timeout(30_000));
      texts.push(...page.map(({ text }) => text));
      if (page.length < 1000) break;
    }
    expect(new Set(texts).size).toBe(texts.length);
    const stored = new Set(texts);
    const held = this.talks.flatMap((talk) => talk.held);
    expect(held.filter(({ text }) => !stored.has(text))).toEqual([]);
    await store.close();
  }

  #openStore() {
    return openEmbeddedStore({
      folder: this.proxy.folder,
      report: (line) => expect(line).toBe(''),
    });
  }
}

/** Each sentence has a word of its own, because what only repeats a recalled block is not stored again. */
function answerTo(whom: string): string {
  const words = createHash('sha512').update(whom).digest('hex').match(/.{8}/g) ?? [];
  return words.map((word) => `The crate ${word} went to ${word}ville.`).join('\n');
}

function keyOf({ role, text }: Said): RecordKey {
  return { digest: textDigest(role, text), space: SPACE };
}
