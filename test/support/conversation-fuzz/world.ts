import type { EmbeddedStore } from '../../../src/adapters/store/embedded-store.ts';
import { openEmbeddedStore } from '../../../src/adapters/store/embedded-store.ts';
import { textDigest } from '../../../src/core/memory/reference.ts';
import { marked } from '../conversations.ts';
import { answerTo, requestWith, said, toolRound, type WireItem } from '../dialect-wire.ts';
import { recordOf } from '../records.ts';
import { type RecordingProvider, startRecordingProvider } from '../story.ts';
import { longOutput } from '../tool-session.ts';
import { type Judged, judgeBody, textsIn } from './judge.ts';
import { expectPricedPrefix, type Sent } from './prefix.ts';
import { RunningProxy } from './running.ts';
import type { BranchKind, Step } from './steps.ts';

/** One home with a real proxy, its store, and the conversations that a history has with it. */

const FACTS = [
  'The staging database of the walrus shop listens on port',
  'Marta owns the billing dashboard and its Grafana alerts since build',
  'Feature flags of the workspace kestrel live in LaunchDarkly, room',
];

const PROMPTS = [
  'On which port does the staging database of the walrus shop listen?',
  'Who owns the billing dashboard and its Grafana alerts?',
  'Where do the feature flags of the workspace kestrel live?',
  'Paint the mountains in winter, please. "Quoted", \\ and \u{1f600} too.',
];

/** Of the second one nothing is stated: it is the space of requests without a project. */
const SPACES = ['alpha', 'default', 'beta'] as const;

/** Requests for which another process holds the database. */
const LOCKED_REQUESTS = 3;

interface Branch {
  readonly kind: BranchKind;
  readonly session: string | undefined;
  readonly items: readonly WireItem[];
  /** The provider's answer to the newest request. */
  readonly answer: string;
  /** All requests of this conversation and of those that it came from. */
  readonly sent: readonly Sent[];
}

export interface Counts {
  requests: number;
  compared: number;
  blocks: number;
  stubs: number;
  exchanges: number;
  batches: number;
  stops: number;
}

export class World {
  readonly counts: Counts;
  readonly #branches: Branch[] = [];
  readonly #held = new Set<string>();
  readonly #provider: RecordingProvider;
  readonly #proxy: RunningProxy;
  readonly #store: EmbeddedStore;
  #number = 0;
  #lockedFor = 0;

  private constructor(provider: RecordingProvider, counts: Counts) {
    this.counts = counts;
    this.#provider = provider;
    this.#proxy = new RunningProxy(provider.url);
    this.#store = openEmbeddedStore({ folder: this.#proxy.folder, report: () => undefined });
  }

  static async open(counts: Counts): Promise<World> {
    const world = new World(await startRecordingProvider(), counts);
    for (let fact = 0; fact < FACTS.length; fact += 1) await world.#learn();
    await world.#proxy.start();
    return world;
  }

  async close(): Promise<void> {
    await this.#proxy.close();
    await this.#store.close();
  }

  async take(step: Step): Promise<void> {
    if ('on' in step) return this.#goOn(step);
    switch (step.kind) {
      case 'learn':
        return this.#learn();
      case 'lock':
        await this.#proxy.lock();
        this.#lockedFor = LOCKED_REQUESTS;
        return;
      case 'import':
        return this.#proxy.import(SPACES[this.#number % SPACES.length] ?? 'default');
      case 'restart':
      case 'kill':
        return this.#restart(step.kind === 'kill' ? 'SIGKILL' : 'SIGTERM');
      case 'begin': {
        const session = step.branch.isNamed ? this.#newName() : undefined;
        const items = [prompted(step.branch, step.prompt)];
        return this.#send({ kind: step.branch, session, items, answer: '', sent: [] });
      }
    }
  }

  async #goOn(step: Extract<Step, { readonly on: number }>): Promise<void> {
    const at = this.#branches.length - 1 - (step.on % Math.max(1, this.#branches.length));
    const branch = this.#branches[at];
    if (branch === undefined) return;
    switch (step.kind) {
      case 'again':
        return this.#send(branch, at);
      case 'kill-during':
        return this.#killDuring(branch, at, step.afterMs);
      case 'work':
        return branch.kind.hasTools
          ? this.#work(at, step)
          : this.#send(asked(branch, answered(branch), step.rounds), at);
      case 'ask':
        return this.#send(asked(branch, answered(branch), step.prompt), at);
      case 'rewind':
        return this.#send(asked(branch, rewound(branch, step.prompt), step.prompt), at);
      case 'edit':
        return this.#send(asked(branch, edited(branch, step.prompt), step.prompt), at);
      case 'fork':
      case 'resume': {
        const session = step.isNamed ? this.#newName() : undefined;
        const moved = { ...asked(branch, answered(branch), this.#number), session };
        return this.#send(moved, step.kind === 'resume' ? at : undefined);
      }
    }
  }

  async #work(
    at: number,
    step: { readonly rounds: number; readonly calls: number },
  ): Promise<void> {
    for (let round = 0; round < step.rounds; round += 1) {
      const branch = this.#branches[at];
      if (branch === undefined) return;
      this.#number += 1;
      const name = this.#number % 9 === 0 ? 'the same' : `output ${this.#number}`;
      const text = longOutput(`${markOf(branch.kind)} ${name}`, 150 + ((this.#number * 97) % 900));
      const rounds = Array.from({ length: step.calls }, (_, call) =>
        toolRound(branch.kind.dialect, `call_${this.#number}_${call}`, text),
      );
      await this.#send({ ...branch, items: [...branch.items, ...rounds.flat()] }, at);
    }
  }

  async #learn(): Promise<void> {
    this.#unlock();
    const records = SPACES.map((space) => {
      this.#number += 1;
      const fact = FACTS[this.#number % FACTS.length];
      const text = `${fact} ${6_000 + this.#number}, says ${markIn(space)}.`;
      return recordOf(text, { space, conversation: `earlier-${this.#number}` });
    });
    await this.#store.memory.capture(records, AbortSignal.timeout(30_000));
  }

  async #restart(signal: NodeJS.Signals): Promise<void> {
    // A proxy that ends in order waits for the database; one that is killed does not.
    if (signal === 'SIGTERM') this.#unlock();
    this.counts.stops += 1;
    await this.#proxy.stop(signal);
    this.#unlock();
    await this.#proxy.start();
  }

  #unlock(): void {
    this.#lockedFor = 0;
    this.#proxy.unlock();
  }

  /** The client sends the same once more when the proxy is back. */
  async #killDuring(branch: Branch, at: number, afterMs: number): Promise<void> {
    const client = bodyOf(branch);
    this.#answerTo(branch.kind);
    const sending = this.#proxy.send(branch.kind.dialect, client, headersOf(branch)).then(
      () => undefined,
      () => undefined,
    );
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await this.#restart('SIGKILL');
    await sending;
    const forwarded = this.#provider.seen.at(-1)?.body;
    if (forwarded === undefined) return this.#send(branch, at);
    const judged = judgeBody(branch.kind.dialect, client, forwarded);
    const sent = [...branch.sent, { judged, isUndecided: false, isBatchTold: true }];
    return this.#send({ ...branch, sent }, at);
  }

  async #send(branch: Branch, at = this.#branches.length): Promise<void> {
    const { dialect } = branch.kind;
    this.#number += 1;
    this.counts.requests += 1;
    const answer = this.#answerTo(branch.kind);
    const client = bodyOf(branch);
    const { status, headers } = await this.#proxy.send(dialect, client, headersOf(branch));
    if (this.#lockedFor > 0) {
      this.#lockedFor -= 1;
      if (this.#lockedFor === 0) this.#unlock();
    }
    if (status !== 200) throw new Error(`the answer has status ${status}`);
    if (this.#provider.seen.length !== 1) throw new Error('the provider was not asked once');
    const forwarded = this.#provider.seen[0]?.body ?? Buffer.alloc(0);
    this.#expectOwnProject(branch.kind, forwarded.toString());
    const judged = judgeBody(dialect, client, forwarded);
    const elided = elidedItems(judged);
    const evidence = `memory ${headers.get('x-svc-memory-state')}, continuity ${headers.get('x-svc-continuity-state')}, ${headers.get('x-svc-original-input-tokens')} tokens`;
    if (headers.get('x-svc-elided-items') !== String(elided)) {
      throw new Error(
        `${elided} items were left out, told are ${headers.get('x-svc-elided-items')}`,
      );
    }
    const isTold = /^(?:elided_tool_output|committed)$/.test(
      headers.get('x-svc-continuity-state') ?? '',
    );
    if (elided > 0 !== isTold) throw new Error(`what was left out is not told: ${evidence}`);
    const isUndecided = headers.get('x-svc-memory-state')?.startsWith('degraded') === true;
    const now: Sent = { judged, isUndecided, isBatchTold: isTold };
    await this.#expectStored(branch.kind, judged);
    try {
      const isFresh = branch.items.length === 1;
      const { compared, isBatch } = expectPricedPrefix(isFresh ? [] : branch.sent, now);
      this.counts.compared += compared;
      if (isBatch) this.counts.batches += 1;
    } catch (error) {
      throw new Error(
        `request ${this.counts.requests} (${dialect}, ${evidence}): ${String(error)}`,
        { cause: error },
      );
    }
    this.counts.blocks += forwarded.toString().split('<svc-memory').length - 1;
    this.#branches[at] = { ...branch, answer, sent: [...branch.sent, now] };
  }

  /** The provider answers the next request with a text of its project, which may be captured there. */
  #answerTo(kind: BranchKind): string {
    const answer = longOutput(`Answer ${this.#number} of ${markOf(kind)}:`, 240);
    this.#provider.reply = (request) => answerTo(request, { text: answer });
    this.#provider.seen.length = 0;
    return answer;
  }

  #expectOwnProject(kind: BranchKind, forwarded: string): void {
    const own = markOf(kind);
    const strange = SPACES.map(markIn).find((mark) => mark !== own && forwarded.includes(mark));
    if (strange !== undefined) throw new Error(`${strange} stands in a request of ${own}`);
  }

  /** What left is what the store gives back. */
  async #expectStored(kind: BranchKind, { fates }: Judged): Promise<void> {
    for (const fate of fates) {
      if (fate.kind === 'kept') {
        for (const { text, stub } of fate.stubs) {
          const ref = /svc memory get (m_[a-z2-7]{16})/.exec(stub)?.[1] ?? 'none';
          this.counts.stubs += 1;
          await this.#expectHeld({ ref }, text);
        }
        continue;
      }
      this.counts.exchanges += 1;
      const role = Object(fate.value).role === 'user' ? 'user' : 'assistant';
      for (const text of textsIn(fate.value)) {
        await this.#expectHeld({ digest: textDigest(role, text), space: spaceOf(kind) }, text);
      }
    }
  }

  async #expectHeld(
    key: { readonly ref: string } | { readonly digest: string; readonly space: string },
    text: string,
  ): Promise<void> {
    const name = JSON.stringify(key);
    if (this.#held.has(name)) return;
    const held = await this.#store.memory.retrieve(key, AbortSignal.timeout(30_000));
    if (held?.text !== text)
      throw new Error(`${name} left and is not stored: ${text.slice(0, 80)}`);
    this.#held.add(name);
  }

  #newName(): string {
    this.#number += 1;
    return `session-${this.#number}`;
  }
}

function elidedItems({ fates }: Judged): number {
  return fates.reduce((sum, fate) => sum + (fate.kind === 'left' ? 1 : fate.stubs.length), 0);
}

function spaceOf({ space }: BranchKind): (typeof SPACES)[number] {
  return SPACES[space % SPACES.length] ?? 'default';
}

function markIn(space: string): string {
  return `the-mark-of-${space}`;
}

function markOf(kind: BranchKind): string {
  return markIn(spaceOf(kind));
}

function headersOf({ kind, session }: Branch): Record<string, string> {
  const space = spaceOf(kind);
  return {
    ...(space !== 'default' && { 'x-svc-memory-space': space }),
    ...(session !== undefined && { 'session-id': session }),
  };
}

function bodyOf({ kind, items }: Branch): Buffer {
  const { dialect, hasTools, isStreamed, writesParts } = kind;
  const extra = {
    // Its window is so large that no history comes to the edge, where all comes back by design.
    model: 'gemini-2.5-pro',
    ...(hasTools && { tools: [{ type: 'function', name: 'shell' }] }),
    ...(isStreamed && { stream: true }),
  };
  const movesMark = writesParts && dialect === 'anthropic_messages';
  const written = movesMark ? marked(items) : items;
  return Buffer.from(JSON.stringify(requestWith(dialect, written, extra)));
}

function prompted(kind: BranchKind, prompt: number): WireItem {
  const text = PROMPTS[prompt % PROMPTS.length] ?? '';
  if (!kind.writesParts) return said('user', text);
  const type = kind.dialect === 'openai_responses' ? 'input_text' : 'text';
  return said('user', [{ type, text }]);
}

/** The items with the provider's answer to them. */
function answered({ kind, items, answer }: Branch): readonly WireItem[] {
  const content =
    kind.writesParts && kind.dialect === 'openai_responses'
      ? [{ type: 'output_text', text: answer, annotations: [] }]
      : answer;
  return [...items, said('assistant', content)];
}

function asked(branch: Branch, items: readonly WireItem[], prompt: number): Branch {
  return { ...branch, items: [...items, prompted(branch.kind, prompt)] };
}

/** Up to one of the answers: a cut elsewhere would leave a call without its result. */
function rewound(branch: Branch, choice: number): readonly WireItem[] {
  const items = answered(branch);
  const ends = items.flatMap(({ role, content, tool_calls }, at) =>
    role === 'assistant' && tool_calls === undefined && isText(content) ? [at] : [],
  );
  const end = ends[Math.max(0, ends.length - 1 - (choice % 4))] ?? items.length;
  return items.slice(0, end + 1);
}

function isText(content: unknown): boolean {
  return typeof content === 'string' || JSON.stringify(content).includes('output_text');
}

/** One prompt of the history has other words now. */
function edited(branch: Branch, choice: number): readonly WireItem[] {
  const items = answered(branch);
  const prompts = items.flatMap((item, at) =>
    item['role'] === 'user' && !JSON.stringify(item).includes('tool_result') ? [at] : [],
  );
  const at = prompts[choice % prompts.length];
  return items.map((item, index) => (index === at ? prompted(branch.kind, choice + 1) : item));
}
