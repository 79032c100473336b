import { setTimeout as sleep } from 'node:timers/promises';
import { textDigest } from '../../../src/core/memory/reference.ts';
import { PATHS, said, toolRound, type WireItem } from '../dialect-wire.ts';
import { recordOf } from '../records.ts';
import { longOutput } from '../tool-session.ts';
import {
  answered,
  behindThoughts,
  betasOf,
  bodyOf,
  type Branch,
  headersOf,
  modelOf,
  newBranch,
  NO_ANSWER,
  SPACES,
  spaceOf,
} from './branch.ts';
import { type Judged, judgeBody, textsIn } from './judge.ts';
import { expectPricedPrefix, type Sent, UNCHANGED } from './prefix.ts';
import type { FuzzedPlace } from './place.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { isThought } from '../strict-provider/reply.ts';
import {
  type BranchKind,
  type Cleared,
  isBinding,
  type Note,
  type Probe,
  type Step,
} from './steps.ts';
import { TEXT_PIECE_CHARS } from '../scripted-provider/scripted-answer.ts';
import { StrictPair } from './strict-pair.ts';

/** The conversations that a history has with two processes of svc. */

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

/** The agent opens these, and the memory has something about some of them: a second look finds it. */
const FILES = ['lock', 'crane', 'buoy', 'pilot', 'berth', 'tugboat', 'anchor', 'winch'].map(
  (name) => `/home/walrus/src/harbour_${name}.ts`,
);

/** Requests for which another process holds the database, or the disk is full. */
const LOCKED_REQUESTS = 3;
/** What could not be written is tried again each second (src/adapters/state/state-writer.ts). */
const WRITTEN_MS = 1_500;

export interface Counts {
  requests: number;
  compared: number;
  blocks: number;
  /** Blocks in results of tools. */
  looks: number;
  stubs: number;
  exchanges: number;
  batches: number;
  stops: number;
  /** The memory did not answer in time. */
  late: number;
  /** Refused directly too: the client edited its own history, and left its thinking out then. */
  refusedDirectly: number;
  /** Caused by leaving svc, after svc had placed a block. */
  refusedAway: number;
  /** The price of all requests of 1,000 tokens, through svc and directly. */
  price: number;
  directPrice: number;
}

/** No provider has the prefix of an opening in its cache for longer; see ALIKE_REUSE_MS of the injections. */
const OPENING_MINUTES = 60;

export class World {
  readonly counts: Counts;
  readonly #branches: Branch[] = [];
  /** The conversations that a model which binds its thinking has answered. */
  readonly #bound = new Set<string>();
  readonly #held = new Set<string>();
  readonly #place: FuzzedPlace;
  #pair = new StrictPair({ account: 'new', isStrictest: true });
  #hasSecond = false;
  #number = 0;
  #lockedFor = 0;
  #isFull = false;
  #clockMinutes = 0;
  /** The memory did not answer the newest request in time. */
  #isLate = false;
  /** The disk was full at the newest request: svc could not write down that the prompt got no block. */
  #wasFull = false;

  private constructor(place: FuzzedPlace, counts: Counts) {
    this.counts = counts;
    this.#place = place;
    place.provider.reply = (request) => this.#pair.reply(request);
  }

  static async open(place: FuzzedPlace, counts: Counts): Promise<World> {
    const world = new World(place, counts);
    for (let fact = 0; fact < FACTS.length; fact += 1) await world.#learn();
    await place.proxies[0].start();
    return world;
  }

  /** Adds what the provider took for all requests. */
  countPrices(): void {
    this.counts.price += Math.round(this.#pair.through.price / 1_000);
    this.counts.directPrice += Math.round(this.#pair.direct.price / 1_000);
  }

  async take(step: Step): Promise<void> {
    if ('on' in step) return this.#goOn(step);
    switch (step.kind) {
      case 'provider':
        this.#pair = new StrictPair(step);
        return;
      case 'learn':
        return this.#learn();
      case 'lock':
        await this.#place.lock();
        this.#lockedFor = LOCKED_REQUESTS;
        return;
      case 'fill':
        this.#place.fill();
        this.#isFull = true;
        this.#lockedFor = LOCKED_REQUESTS;
        return;
      case 'clock':
        return this.#setClock(step.minutes);
      case 'import':
        return this.#place.import(SPACES[this.#number % SPACES.length] ?? 'default');
      case 'forget':
        return void this.#forget().catch(() => undefined);
      case 'restart':
      case 'kill':
        return this.#restart(step.kind === 'kill' ? 'SIGKILL' : 'SIGTERM');
      case 'begin':
        return this.#send(
          newBranch(step.branch, {
            session: this.#nameFor(step.branch),
            items: [prompted(step.branch, step.prompt)],
          }),
        );
    }
  }

  #nameFor({ isNamed }: BranchKind): string | undefined {
    return isNamed ? this.#newName() : undefined;
  }

  async #goOn(step: Extract<Step, { readonly on: number }>): Promise<void> {
    const at = this.#branches.length - 1 - (step.on % Math.max(1, this.#branches.length));
    const branch = this.#branches[at];
    if (branch === undefined) return;
    switch (step.kind) {
      case 'twin': {
        const { dialect, space } = branch.kind;
        const kind = { ...step.branch, dialect, space };
        const [first] = branch.items;
        // Behind a compaction of the provider the first item may be no prompt.
        if (first?.['role'] !== 'user') return;
        // Agents that work for another one have its session.
        const session = step.branch.space % 3 === 0 ? branch.session : this.#nameFor(kind);
        return this.#send(newBranch(kind, { session, items: [written(kind, first)] }));
      }
      case 'rewrite':
        this.#branches[at] = rewritten(branch);
        return;
      case 'again':
        return this.#send(branch, at);
      case 'kill-during':
        return branch.isAway ? this.#send(branch, at) : this.#killDuring(branch, at, step.afterMs);
      case 'leave':
        this.#branches[at] = { ...branch, isAway: !branch.isAway };
        return;
      case 'move':
        await this.#startSecond();
        this.#branches[at] = { ...branch, proxy: branch.proxy === 0 ? 1 : 0 };
        return;
      case 'switch':
        this.#branches[at] = { ...branch, model: modelOf(branch.kind, step.model) };
        return;
      case 'mode':
        this.#branches[at] = { ...branch, memory: step.memory };
        return;
      case 'compact':
        return this.#compact(branch, at);
      case 'probe':
        return this.#probe(branch, step.probe);
      case 'system':
        this.#branches[at] = { ...afresh(branch), systems: branch.systems + 1 };
        return;
      case 'tools':
        this.#branches[at] = { ...afresh(branch), tools: branch.tools + 1 };
        return;
      case 'clear':
        this.#branches[at] = { ...branch, items: cleared(branch.items, step.what) };
        return;
      case 'strip':
        this.#branches[at] = stripped(branch, step.keeps);
        return;
      case 'note': {
        const notes = notesOf(branch, step);
        const next = asked(branch, answered(branch), step.prompt);
        const items = step.isBehind
          ? [...next.items, ...notes]
          : [...next.items.slice(0, -1), ...notes, ...next.items.slice(-1)];
        return this.#send({ ...next, items }, at);
      }
      case 'steer':
        return branch.kind.hasTools
          ? this.#work(at, { rounds: 1, calls: 1 }, step.prompt)
          : this.#send(asked(branch, answered(branch), step.prompt), at);
      case 'cut':
        return this.#cut(asked(branch, answered(branch), step.prompt), at, step);
      case 'fail': {
        this.#pair.fail(...Array<number>(branch.isAway ? 0 : step.times).fill(step.status));
        const model = step.model === undefined ? branch.model : modelOf(branch.kind, step.model);
        return this.#send(asked(branch, answered(branch), step.prompt), at, { retryModel: model });
      }
      case 'compact-there':
        return this.#compactThere(branch, at, step.isKept);
      case 'work':
        return branch.kind.hasTools
          ? this.#work(at, step)
          : this.#send(asked(branch, answered(branch), step.rounds), at);
      case 'ask':
        return this.#send(asked(branch, answered(branch), step.prompt), at);
      case 'rewind':
      case 'edit': {
        const changed = step.kind === 'edit' ? edited : rewound;
        // Without a name a refusal belongs to a prompt. In front of it the blocks may come back.
        const isAgain = branch.wasRefused === true && branch.session === undefined;
        const sent = isAgain ? [] : branch.sent;
        const next = asked(branch, changed(branch, step.prompt), step.prompt);
        return this.#send({ ...next, sent }, at);
      }
      case 'fork':
      case 'resume': {
        const session = step.isNamed ? this.#newName() : undefined;
        // A refusal counts for one conversation, so another one has the blocks again.
        const sent = branch.wasRefused === true ? [] : branch.sent;
        const moved = { ...asked(branch, answered(branch), this.#number), session, sent };
        return this.#send(moved, step.kind === 'resume' ? at : undefined);
      }
    }
  }

  async #work(
    at: number,
    step: { readonly rounds: number; readonly calls: number },
    steering?: number,
  ): Promise<void> {
    for (let round = 0; round < step.rounds; round += 1) {
      const branch = this.#branches[at];
      if (branch === undefined) return;
      this.#number += 1;
      const name = this.#number % 9 === 0 ? 'the same' : `output ${this.#number}`;
      const { dialect } = branch.kind;
      const isUnchanged = dialect === 'anthropic_messages' && this.#number % 13 === 6;
      const text = isUnchanged
        ? `${UNCHANGED}. The content from the earlier read is still current.`
        : longOutput(`${markOf(branch.kind)} ${name}`, 150 + ((this.#number * 97) % 900));
      const output = outputOf(branch.kind, text, this.#number);
      const calls = Array.from({ length: step.calls }, (_, call) =>
        toolRound(dialect, `call_${this.#number}_${call}`, output, {
          file_path: FILES[(this.#number + call) % FILES.length],
        }),
      );
      const made = calledAs(dialect, calls, this.#number);
      const work = behindThoughts(dialect, branch.answer.thoughts, made);
      const items = [...branch.items, ...work];
      await this.#send(
        steering === undefined
          ? { ...branch, items }
          : asked({ ...branch, isMerging: true }, items, steering),
        at,
      );
    }
  }

  async #learn(): Promise<void> {
    await this.#unlock();
    const records = SPACES.flatMap((space) => {
      this.#number += 1;
      const fact = FACTS[this.#number % FACTS.length];
      const file = FILES[this.#number % FILES.length];
      const text = `${fact} ${6_000 + this.#number}, says ${markIn(space)}.`;
      const rule = `${file} must never touch the staging database of the walrus shop or the billing dashboard of Marta before build ${this.#number}, because ${markIn(space)} waits.`;
      const place = { space, conversation: `earlier-${this.#number}` };
      return [recordOf(text, place), recordOf<'assistant'>(rule, { ...place, role: 'assistant' })];
    });
    const stored = await this.#place.memory.capture(records, AbortSignal.timeout(30_000));
    const bad = stored.find((state) => state !== 'stored' && state !== 'duplicate');
    if (bad !== undefined) throw new Error(`a record was not stored: ${bad}`);
  }

  /** After an hour svc gives an unnamed conversation no block in front of an answer that it never saw in a request. */
  #setClock(minutes: number): void {
    const isLater = minutes - this.#clockMinutes > OPENING_MINUTES;
    this.#clockMinutes = minutes;
    this.#place.setClock(minutes * 60_000);
    if (!isLater) return;
    for (const [at, branch] of this.#branches.entries()) {
      if (branch.session === undefined) this.#branches[at] = { ...branch, sent: [] };
    }
  }

  /** Forgets something that no conversation here ever heard of. Fails while another process holds the memory. */
  async #forget(): Promise<void> {
    const { memory } = this.#place;
    this.#number += 1;
    const signal = AbortSignal.timeout(30_000);
    const space = 'elsewhere';
    await memory.capture([recordOf(`Nobody asks for number ${this.#number}.`, { space })], signal);
    await memory.forget({ space }, signal);
  }

  async #restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    // A proxy that ends in order waits for the database; one that is killed does not.
    if (signal === 'SIGTERM' || this.#isFull) await this.#unlock();
    this.counts.stops += 1;
    const proxy = this.#place.proxies[this.#hasSecond && this.#number % 2 === 1 ? 1 : 0];
    await proxy.stop(signal);
    await this.#unlock();
    await proxy.start();
  }

  async #startSecond(): Promise<void> {
    if (this.#hasSecond) return;
    await this.#unlock();
    await this.#place.proxies[1].start();
    this.#hasSecond = true;
  }

  async #unlock(): Promise<void> {
    this.#lockedFor = 0;
    this.#place.unlock();
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#place.free();
    // A proxy that ends before it has written what waits does not know later which answers had its blocks.
    await sleep(WRITTEN_MS);
  }

  /** The client sends the same once more when the proxy is back. */
  async #killDuring(branch: Branch, at: number, afterMs: number): Promise<void> {
    const client = bodyOf(branch);
    this.#expect(branch, client);
    const proxy = this.#place.proxies[branch.proxy];
    const sending = proxy.send(PATHS[branch.kind.dialect], client, headersOf(branch)).then(
      () => undefined,
      () => undefined,
    );
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    // On a full disk svc wrote nothing down, and a killed proxy does not know it any more.
    const wasFull = this.#isFull;
    await this.#unlock();
    this.counts.stops += 1;
    await proxy.stop('SIGKILL');
    await proxy.start();
    await sending;
    const forwarded = this.#place.provider.seen.at(-1)?.body;
    const isCompared = branch.memory === 'on' && !this.#pair.isRefused && !wasFull;
    if (forwarded === undefined || !isCompared) return this.#send(branch, at);
    const judged = judgeBody(branch.kind.dialect, client, forwarded);
    const sent = [...branch.sent, { judged, isUndecided: false, isBatchTold: true }];
    return this.#send({ ...branch, sent }, at);
  }

  async #send(
    given: Branch,
    at = this.#branches.length,
    {
      retryModel,
      compacts = false,
    }: { readonly retryModel?: string; readonly compacts?: boolean } = {},
  ): Promise<void> {
    const branch = writable(given);
    const client = bodyOf(branch);
    const text = this.#expect(branch, client, { compacts });
    const response = await this.#ask(branch, client);
    if (this.#pair.hasFailed && !this.#isLate) {
      // The client asks again, with its other model.
      this.#pair.fail();
      return this.#send({ ...branch, model: retryModel ?? branch.model }, at);
    }
    if (this.#isLate) {
      // svc did not know the blocks of this branch, so no law holds for what follows.
      this.counts.late += 1;
      this.#branches.splice(at, 1);
      return;
    }
    if (isBinding(branch.kind.dialect, branch.model)) this.#bound.add(nameOf(branch));
    if (this.#pair.isRefused) return this.#heal(branch, at);
    const { status, headers } = response;
    if (status !== 200) throw new Error(`the answer has status ${status}`);
    const answer = { text, thoughts: this.#pair.thoughts };
    this.#pair.fail();
    const wasRefused = branch.wasRefused === true || this.#pair.timesFailed > 0;
    const next = { ...branch, answer, wasRefused, given: this.#givenBy(branch) };
    if (branch.isAway) {
      // Thinking that may be bound was made without the blocks, so they stay away. svc does not know its model.
      const isBound = this.#bound.has(nameOf(branch));
      this.#branches[at] = isBound ? { ...next, sent: [] } : next;
      return;
    }
    const sent = await this.#expectLaws(branch, client, headers);
    this.#branches[at] = { ...next, sent };
  }

  /** Forks without an id are one conversation to svc, so what one had refused goes from all of them. */
  #forgetAlike(branch: Branch): void {
    for (const [at, other] of this.#branches.entries()) {
      if (nameOf(other) === nameOf(branch)) this.#branches[at] = { ...other, sent: [] };
    }
  }

  /** What keeps the thinking of a branch, and what svc changed besides. */
  async #expectLaws(branch: Branch, client: Buffer, headers: Headers): Promise<readonly Sent[]> {
    const { dialect } = branch.kind;
    const forwarded = this.#place.provider.seen.at(-1)?.body ?? Buffer.alloc(0);
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
    this.counts.blocks += forwarded.toString().split('<svc-memory').length - 1;
    this.counts.looks += judged.looks;
    await this.#expectStored(branch.kind, judged);
    // After a refusal that says nothing of thinking, what was refused is not sent for an hour.
    if (this.#pair.timesFailed > 0) {
      this.#forgetAlike(branch);
      return [];
    }
    // Where nothing is bound, a header that lowers memory takes blocks and stubs away. Thinking that is
    // bound meanwhile was made without them, so they stay away.
    if (branch.memory !== 'on') return isBinding(dialect, branch.model) ? [] : branch.sent;
    const isUndecided = headers.get('x-svc-memory-state')?.startsWith('degraded') === true;
    const now: Sent = { judged, isUndecided, isBatchTold: isTold };
    if (isUndecided && this.#wasFull) return branch.sent;
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
    return [...branch.sent, now];
  }

  /** The answer ends after its first words. */
  async #cut(
    given: Branch,
    at: number,
    { by, isKept }: { readonly by: 'provider' | 'client'; readonly isKept: boolean },
  ): Promise<void> {
    const branch = writable(given);
    const { dialect, isStreamed } = branch.kind;
    const isPlain = !isStreamed || branch.isAway || dialect === 'openai_chat_completions';
    if (isPlain) return this.#send(branch, at);
    const client = bodyOf(branch);
    const text = this.#expect(branch, client, { endsBy: by });
    const words = text.slice(0, WORDS_READ);
    await this.#ask(branch, client, { until: by === 'client' ? words : undefined, isCut: true });
    if (this.#pair.isRefused || this.#isLate) return this.#send(branch, at);
    const forwarded = this.#place.provider.seen.at(-1)?.body ?? Buffer.alloc(0);
    const judged = judgeBody(dialect, client, forwarded);
    const isCompared = branch.memory === 'on';
    const sent = isCompared
      ? [...branch.sent, { judged, isUndecided: true, isBatchTold: true }]
      : branch.sent;
    const next = { ...branch, sent };
    if (isKept) {
      this.#branches[at] = {
        ...next,
        answer: { text: text.slice(0, TEXT_PIECE_CHARS), thoughts: this.#pair.thoughts },
      };
    } else if (by === 'provider') await this.#send(next, at);
    else {
      const items = withWords(next.items, said('user', '[Request interrupted by user]'), next.kind);
      this.#branches[at] = { ...next, items, answer: NO_ANSWER, isMerging: true };
    }
  }

  /** The provider puts its own item in the place of the history. */
  async #compactThere(branch: Branch, at: number, isKept: boolean): Promise<void> {
    const { dialect } = branch.kind;
    if (dialect === 'openai_chat_completions' || branch.isAway) return;
    const next = asked(branch, answered(branch), 3);
    if (dialect === 'anthropic_messages') {
      if (!branch.model.startsWith('claude')) return;
      await this.#send(next, at, { compacts: true });
      const after = this.#branches[at];
      if (isKept || after === undefined || !JSON.stringify(after.answer).includes('compaction'))
        return;
      this.#branches[at] = {
        ...after,
        items: answered(after).slice(-1),
        answer: NO_ANSWER,
        sent: [],
      };
      return;
    }
    await this.#askAside(writable(next), {}, '/v1/responses/compact');
    if (this.#pair.isRefused || this.#isLate) return;
    const { compactedItems } = this.#pair;
    const items = isKept ? compactedItems : compactedItems.slice(-1);
    return this.#send(asked({ ...branch, answer: NO_ANSWER, sent: [] }, items, 1), at);
  }

  /** As Claude Code does after this refusal: it leaves all thinking out, for good. */
  async #heal(branch: Branch, at: number): Promise<void> {
    const isOwn = this.#pair.isRefusedDirectly;
    if (isOwn) this.counts.refusedDirectly += 1;
    else this.counts.refusedAway += 1;
    const items = withoutThoughts(branch.items);
    if (JSON.stringify(items) === JSON.stringify(branch.items)) {
      throw new Error(`refused without thinking: ${this.#pair.through.refusals.at(-1)?.message}`);
    }
    return this.#send({ ...branch, items, sent: [] }, at);
  }

  /** Thinking that a stretch without svc costs is not svc's to keep. */
  #givenBy(branch: Branch): ReadonlySet<string> {
    if (!branch.isAway) return branch.given;
    return new Set([...branch.given, ...this.#pair.lost.map(({ seal }) => seal)]);
  }

  /** A request of the client that orders a summary, and the conversation that begins with it. */
  async #compact(branch: Branch, at: number): Promise<void> {
    const order = said('user', 'Respond with TEXT ONLY: summarize this conversation.');
    const whole = { ...branch, items: [...answered(branch), order] };
    await this.#askAside(whole, { 'x-claude-code-request-class': 'compaction' });
    const summary = said('user', `This session is being continued. ${this.#number}`);
    return this.#send({ ...branch, items: [summary], answer: NO_ANSWER, sent: [] }, at);
  }

  async #probe(branch: Branch, probe: Probe): Promise<void> {
    const whole = { ...branch, items: [...answered(branch), prompted(branch.kind, 3)] };
    switch (probe) {
      case 'count':
        if (branch.kind.dialect !== 'anthropic_messages') return;
        return this.#askAside(whole, {}, '/v1/messages/count_tokens');
      case 'state': {
        if (branch.kind.dialect !== 'openai_responses') return;
        const newest = { ...whole, items: whole.items.slice(-1) };
        return this.#askAside(newest, {}, undefined, { previous_response_id: 'resp_1' });
      }
      case 'side':
        return this.#askAside(whole, { 'x-claude-code-request-class': 'auxiliary' });
      case 'passthrough':
      case 'shadow':
        return this.#askAside(whole, { 'x-svc-compression-mode': probe });
    }
  }

  /** Nothing of the answer becomes a part of the conversation. */
  async #askAside(
    branch: Branch,
    headers: Readonly<Record<string, string>>,
    path = PATHS[branch.kind.dialect],
    extra: WireItem = {},
  ): Promise<void> {
    const client = bodyOf(branch, extra);
    this.#expect(branch, client, { isCount: path.endsWith('count_tokens') });
    await this.#ask(branch, client, {
      path,
      headers,
      isCounted: !('x-svc-compression-mode' in headers),
    });
    const forwarded = this.#place.provider.seen.at(-1)?.body ?? client;
    judgeBody(branch.kind.dialect, client, forwarded);
  }

  /** Sends, and compares what the provider made of it with what it would have made of it directly. */
  async #ask(
    branch: Branch,
    client: Buffer,
    {
      path = PATHS[branch.kind.dialect],
      headers = {},
      isCounted = true,
      until,
      isCut = false,
    }: {
      readonly path?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly isCounted?: boolean;
      readonly until?: string | undefined;
      /** The provider breaks the answer off. */
      readonly isCut?: boolean;
    } = {},
  ): Promise<Response> {
    this.counts.requests += 1;
    const all = { ...headersOf(branch), ...headers };
    this.#isLate = false;
    this.#wasFull = this.#isFull;
    if (branch.isAway) return this.#place.askProvider(path, client, all);
    const began = performance.now();
    const sending = this.#place.proxies[branch.proxy].send(path, client, all, until);
    const response = await (isCut ? sending.catch(() => new Response()) : sending);
    const isUnknown = response.headers.get('x-svc-memory-state') === 'degraded_unavailable';
    this.#isLate = isUnknown && performance.now() - began >= this.#place.givesUpMs;
    if (this.#lockedFor > 0) {
      this.#lockedFor -= 1;
      if (this.#lockedFor === 0) await this.#unlock();
    }
    const times = this.#place.provider.seen.length;
    if (times === 0) throw new Error(`the provider was not asked, status ${response.status}`);
    if (times > 1 && !this.#pair.hasRefused && this.#pair.timesFailed === 0) {
      throw new Error(`the provider was asked ${times} times`);
    }
    const caused = isCounted && !this.#isLate ? this.#pair.caused(branch.given) : [];
    if (caused.length > 0) {
      throw new Error(
        `request ${this.counts.requests} (${branch.kind.dialect}, ${branch.model}, ${JSON.stringify(all)}, memory ${response.headers.get('x-svc-memory-state')}, continuity ${response.headers.get('x-svc-continuity-state')}): svc broke bound thinking: ${caused.join('; ')}`,
      );
    }
    return response;
  }

  /** The provider answers the next request with a text of its project, which may be captured there. */
  #expect(
    branch: Branch,
    client: Buffer,
    {
      isCount = false,
      compacts = false,
      endsBy,
    }: {
      readonly isCount?: boolean;
      readonly compacts?: boolean;
      readonly endsBy?: 'provider' | 'client';
    } = {},
  ): string {
    this.#number += 1;
    this.#place.provider.seen.length = 0;
    const text = longOutput(`Answer ${this.#number} of ${markOf(branch.kind)}:`, 240);
    const betas = betasOf(branch.kind);
    const json: unknown = JSON.parse(client.toString());
    const { dialect, thinks } = branch.kind;
    const words = text.slice(0, WORDS_READ);
    const endsAfter = endsBy === undefined ? undefined : { words, by: endsBy };
    this.#pair.expect({ dialect, isCount, betas, json }, { text, thinks, compacts, endsAfter });
    return text;
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
    const held = await this.#place.memory.retrieve(key, AbortSignal.timeout(30_000));
    if (held?.text !== text)
      throw new Error(`${name} left and is not stored: ${text.slice(0, 80)}`);
    this.#held.add(name);
  }

  #newName(): string {
    this.#number += 1;
    return `session-${this.#number}`;
  }
}

/** Names the conversation of a branch as svc does: forks without an id are one. */
function nameOf({ session, kind, items }: Branch): string {
  const [first] = items;
  const opening = first && written({ ...kind, writesParts: true }, first);
  return session ?? `${kind.dialect} ${JSON.stringify(opening)}`;
}

function elidedItems({ fates }: Judged): number {
  return fates.reduce((sum, fate) => sum + (fate.kind === 'left' ? 1 : fate.stubs.length), 0);
}

function markIn(space: string): string {
  return `the-mark-of-${space}`;
}

function markOf(kind: BranchKind): string {
  return markIn(spaceOf(kind));
}

/** With another system prompt or other tools the provider reads every message anew. */
function afresh(branch: Branch): Branch {
  return branch.kind.dialect === 'openai_chat_completions' ? branch : { ...branch, sent: [] };
}

function prompted(kind: BranchKind, prompt: number): WireItem {
  const text = PROMPTS[prompt % PROMPTS.length] ?? '';
  if (!kind.writesParts) return said('user', text);
  const shown = { 1: [IMAGES[kind.dialect]], 3: [DOCUMENTS[kind.dialect]] }[prompt % 5] ?? [];
  return said('user', [...shown, textPart(kind, text)]);
}

/** The item in the form that this kind of client writes, if it is one text alone. */
function written(kind: BranchKind, item: WireItem): WireItem {
  const { role, content } = item;
  // The text of an answer is another kind of part there.
  const isOther = role === 'assistant' && kind.dialect === 'openai_responses';
  if ((role !== 'user' && role !== 'assistant') || isOther) return item;
  if (typeof content === 'string') {
    return kind.writesParts ? { ...item, content: [textPart(kind, content)] } : item;
  }
  const [part, ...more]: readonly WireItem[] = Array.isArray(content) ? content : [];
  const isPlain = more.length === 0 && typeof part?.['text'] === 'string';
  return isPlain && !kind.writesParts ? { ...item, content: part['text'] } : item;
}

function rewritten(branch: Branch): Branch {
  const kind = { ...branch.kind, writesParts: !branch.kind.writesParts };
  return { ...branch, kind, items: branch.items.map((item) => written(kind, item)) };
}

function textPart({ dialect }: BranchKind, text: string): WireItem {
  return { type: dialect === 'openai_responses' ? 'input_text' : 'text', text };
}

const PIXEL = 'iVBORw0KGgo=';

const IMAGES: Readonly<Record<Dialect, WireItem>> = {
  anthropic_messages: {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: PIXEL },
  },
  openai_responses: { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
  openai_chat_completions: {
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${PIXEL}` },
  },
};

const DOCUMENTS: Readonly<Record<Dialect, WireItem>> = {
  anthropic_messages: {
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: 'A paper about piers.' },
    citations: { enabled: true },
  },
  openai_responses: {
    type: 'input_file',
    filename: 'piers.txt',
    file_data: 'data:text/plain;base64,UGllcnM=',
  },
  openai_chat_completions: {
    type: 'file',
    file: { filename: 'piers.txt', file_data: 'data:text/plain;base64,UGllcnM=' },
  },
};

/** A client that writes parts has outputs of parts too, some with a picture or nothing but one. */
function outputOf(kind: BranchKind, text: string, number: number): unknown {
  if (!kind.writesParts) return text;
  const parts = [textPart(kind, text)];
  // Chat Completions takes texts alone there.
  if (kind.dialect === 'openai_chat_completions') return parts;
  const image = IMAGES[kind.dialect];
  if (number % 11 === 5) return [image];
  if (number % 7 === 3) return [...parts, image];
  const isFound = number % 7 === 5 && kind.dialect === 'anthropic_messages';
  return isFound ? [...parts, { type: 'tool_reference', tool_name: 'shell' }] : parts;
}

/** Calls one after the other, or all in one answer; the results of those come in one message or in some. */
function calledAs(
  dialect: Dialect,
  rounds: readonly (readonly WireItem[])[],
  number: number,
): readonly WireItem[] {
  if (number % 2 === 0) return rounds.flat();
  const calls = rounds.flatMap((round) => round.slice(0, 1));
  const results = rounds.flatMap((round) => round.slice(1));
  const all = (items: readonly WireItem[], name: string): readonly unknown[] =>
    items.flatMap((item) => item[name]);
  switch (dialect) {
    case 'openai_responses':
      return [...calls, ...results];
    case 'openai_chat_completions':
      return [{ ...calls[0], tool_calls: all(calls, 'tool_calls') }, ...results];
    case 'anthropic_messages': {
      const call = said('assistant', all(calls, 'content'));
      return [call, ...(number % 4 === 1 ? results : [said('user', all(results, 'content'))])];
    }
  }
}

/** Models of other makers know no system messages in the history, so the client leaves them out. */
function writable(branch: Branch): Branch {
  const takesAll =
    branch.kind.dialect !== 'anthropic_messages' || branch.model.startsWith('claude');
  if (takesAll) return branch;
  return { ...branch, items: branch.items.filter(({ role }) => role !== 'system') };
}

type NoteStep = Extract<Step, { readonly kind: 'note' }>;

/** What clients put into a history that is nobody's word: a new effort, a reminder, a new tool. */
function notesOf(
  { kind: { dialect }, model }: Branch,
  { note, isBehind }: NoteStep,
): readonly WireItem[] {
  switch (dialect) {
    case 'openai_chat_completions':
      return [{ role: 'system', content: 'Be brief now.' }];
    case 'openai_responses':
      return [RESPONSES_NOTES[note]];
    case 'anthropic_messages':
      if (!model.startsWith('claude')) return [];
      // Only the empty form may stand behind an answer.
      return [CLAUDE_NOTES[isBehind ? note : 'effort']];
  }
}

const RESPONSES_NOTES: Readonly<Record<Note, WireItem>> = {
  effort: { type: 'configuration_update', reasoning: { effort: 'low' } },
  reminder: {
    type: 'message',
    role: 'developer',
    content: [{ type: 'input_text', text: 'Be brief now.' }],
  },
  tool: { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'sed' }] },
};

const CLAUDE_NOTES: Readonly<Record<Note, WireItem>> = {
  effort: { role: 'system', content: [], output_config: { effort: 'low' } },
  reminder: {
    role: 'system',
    content: [{ type: 'text', text: 'Be brief now.' }],
    clear_at: 'next_user_message',
  },
  tool: { role: 'system', content: [{ type: 'tool_addition', tool: { name: 'sed' } }] },
};

/** So many characters of an answer are read before it ends early: less than the first event has. */
const WORDS_READ = 20;

/** The newest outputs that a client keeps when it clears old ones. */
const RESULTS_KEPT = 2;

/** Without what old messages hold: the outputs of tools, pictures, or the inputs of calls. */
function cleared(items: readonly WireItem[], what: Cleared): readonly WireItem[] {
  const json = JSON.stringify(items);
  const all = (json.match(/"(?:tool_result|function_call_output)"|"role":"tool"/g) ?? []).length;
  let results = 0;
  const clear = (_name: string, value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.
    const part = value as WireItem;
    const { type, role } = part;
    const isResult = type === 'tool_result' || type === 'function_call_output' || role === 'tool';
    if (isResult) results += 1;
    if (isResult && what === 'results' && results <= all - RESULTS_KEPT) {
      const member = type === 'function_call_output' ? 'output' : 'content';
      return { ...part, [member]: '[Old tool result content cleared]' };
    }
    if (what === 'images' && /image/.test(String(type))) {
      return { type: type === 'input_image' ? 'input_text' : 'text', text: '[image]' };
    }
    if (what === 'inputs' && results < all - RESULTS_KEPT) {
      if (type === 'tool_use') return { ...part, input: {} };
      if (type === 'function_call') return { ...part, arguments: '{}' };
    }
    return value;
  };
  // The reviver sees inner values first; outputs hold no outputs.
  return JSON.parse(json, clear) as readonly WireItem[];
}

/** Without the thinking of all but the newest messages that have some. */
function stripped(branch: Branch, keeps: number): Branch {
  const { answer } = branch;
  const holds = branch.items.flatMap((item, at) => (hasThoughts(item) ? [at] : []));
  // The newest answer is no item yet.
  const first = keeps <= 1 ? branch.items.length : (holds.at(1 - keeps) ?? 0);
  const items = [...withoutThoughts(branch.items.slice(0, first)), ...branch.items.slice(first)];
  const thoughts =
    keeps === 0 ? answer.thoughts.filter((part) => !isThought(part)) : answer.thoughts;
  return { ...branch, items, answer: { ...answer, thoughts } };
}

function hasThoughts(item: WireItem): boolean {
  const { content } = item;
  return (
    isThought(item) || (Array.isArray(content) && content.some((part: object) => isThought(part)))
  );
}

function withoutThoughts(items: readonly WireItem[]): readonly WireItem[] {
  return items
    .filter((item) => !isThought(item))
    .map((item) => {
      const { content } = item;
      if (!Array.isArray(content)) return item;
      const parts: readonly WireItem[] = content;
      return { ...item, content: parts.filter((part) => !isThought(part)) };
    });
}

function asked(branch: Branch, items: readonly WireItem[], prompt: number): Branch {
  const kept = branch.kind.stripsThinking ? withoutThoughts(items) : items;
  const words = prompted(branch.kind, prompt);
  const { isMerging, ...rest } = branch;
  const merged = isMerging === true ? withWords(kept, words, branch.kind) : [...kept, words];
  return { ...rest, items: merged };
}

/** Claude Code writes one message of the person where two would follow each other. */
function withWords(
  items: readonly WireItem[],
  words: WireItem,
  { dialect, writesParts }: BranchKind,
): readonly WireItem[] {
  const last = items.at(-1);
  const merges = dialect === 'anthropic_messages' && writesParts && last?.['role'] === 'user';
  if (!merges) return [...items, words];
  return [...items.slice(0, -1), said('user', [...partsOf(last), ...partsOf(words)])];
}

function partsOf({ content }: WireItem): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }];
}

/** Up to one of the answers, or up to a result: a cut elsewhere would leave a call without its result. */
function rewound(branch: Branch, choice: number): readonly WireItem[] {
  const items = answered(branch);
  const toResults = choice % 5 === 4 && items.some(holdsResult);
  const ends = items.flatMap((item, at) =>
    (toResults ? holdsResult(item) && !holdsResult(items[at + 1]) : isAnswer(item)) ? [at] : [],
  );
  const end = ends[Math.max(0, ends.length - 1 - (choice % 4))] ?? items.length;
  return items.slice(0, end + 1);
}

function isAnswer({ role, content, tool_calls }: WireItem): boolean {
  return role === 'assistant' && tool_calls === undefined && isText(content);
}

function isText(content: unknown): boolean {
  return typeof content === 'string' || !JSON.stringify(content).includes('"tool_use"');
}

function holdsResult(item: WireItem | undefined): boolean {
  const { type, role, content } = item ?? {};
  if (type === 'function_call_output' || role === 'tool') return true;
  return role === 'user' && (JSON.stringify(content) ?? '').includes('"tool_result"');
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
