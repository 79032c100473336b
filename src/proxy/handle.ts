import type { ServerResponse } from 'node:http';
import type { Dialect } from '../core/conversation/view.ts';
import type { Answer } from '../core/dialects/dialect-answer.ts';
import { apiOf } from '../core/dialects/apis.ts';
import { pathOf } from '../core/http/routes.ts';
import { type CompressionMode, decideModes, type Modes, modesToTell } from '../core/http/modes.ts';
import { applyEdits, type Edit } from '../core/plan/item-edits.ts';
import { modesWithout, trialOf } from '../core/meter/hold-out.ts';
import { CLEARING_BETA } from '../core/shortening/provider-clearing.ts';
import type { HandlerSettings } from '../core/settings/settings.ts';
import { estimateSteps } from '../core/bytes/tokens.ts';
import { CaptureKeeper, provenanceKeeper } from './capture-keeper.ts';
import { CacheWatch, LongCacheWatch } from './cache-watch.ts';
import { Conversations, heldBytes, type Reading } from './conversations.ts';
import { type Form, forwardPlanned, headersForClient, sendForm } from './forward.ts';
import { BackgroundPace, BackgroundQueue } from './background-queue.ts';
import { Bonds, type Relayed } from './bonds.ts';
import type { Bond, Placement } from '../core/recall/injections.ts';
import type {
  ClientRequest,
  ConfiguredUpstream,
  HoldBack,
  ProxyDependencies,
} from './dependencies.ts';
import { placeReading, readSteps, settleProject } from './read-request.ts';
import { NOTHING_LEAVES, type Recalled, Recaller, silenceOfModes } from './recall.ts';
import { Deadline, Slices } from './deadline.ts';
import { AnswerWatch, goneSignal, relay } from './relay.ts';
import { RequestRecord } from './request-record.ts';
import { type KeepCall, leavingOf, Shortener } from './shortener.ts';
import { ProxyError } from '../core/errors.ts';
import {
  relayedEvidence,
  sourceHeaders,
  makePlan,
  type Plan,
  type PlanFacts,
  type Unread,
  untouchedPlan,
} from '../core/plan/plan.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';

/**
 * Pace of background work: at most a quarter of one core. Storing an exchange takes about 2 ms of this thread, and up
 * to 10 ms of the store's. Most tools run longer than 20 ms, so the work of a request is usually done before the next
 * request.
 */
const BACKGROUND = { paceMs: 20, share: 0.25 };

/**
 * Handles a request after the gate has accepted it and its body is decoded. The steps are those of "A request in
 * fifteen minutes" in ARCHITECTURE.md. If the memory fails, the request goes on, and the reported state says so. svc
 * stops a request for an `x-svc-` header that is invalid or not allowed, a missing upstream, a provider that it cannot
 * reach, or a limit of a service.
 */
export class ProxyHandler {
  readonly #dependencies: ProxyDependencies;
  readonly #conversations = new Conversations();
  readonly #slices: Slices;
  readonly #recaller: Recaller;
  readonly #shortener: Shortener;
  readonly #keeper: CaptureKeeper;
  readonly #background: BackgroundQueue;
  readonly #longCaches: LongCacheWatch;
  readonly #caches: CacheWatch;
  readonly #bonds: Bonds;

  constructor(dependencies: ProxyDependencies) {
    this.#dependencies = dependencies;
    this.#slices = new Slices(dependencies.clock);
    this.#recaller = new Recaller(dependencies, this.#slices);
    this.#shortener = new Shortener(dependencies, this.#slices);
    this.#background = new BackgroundQueue(
      dependencies.background ?? new BackgroundPace(BACKGROUND),
      dependencies.changed,
    );
    const onFinished = provenanceKeeper(dependencies, this.#background);
    this.#keeper = new CaptureKeeper(dependencies, onFinished);
    this.#longCaches = new LongCacheWatch(dependencies);
    this.#caches = new CacheWatch(dependencies);
    this.#bonds = new Bonds(dependencies);
  }

  /**
   * Runs the queued background work, for at most `withinMs` milliseconds. Call it at shutdown, when no request comes
   * any more. Never rejects.
   */
  drain(withinMs: number): Promise<void> {
    return this.#background.drain(withinMs);
  }

  /**
   * Tries once more to write the captures that the disk has refused. Returns how many records are still not written.
   * Call it after `drain`.
   */
  keepLast(): number {
    return this.#keeper.keepLast();
  }

  /** Returns the estimated bytes of memory that caches and background work take. */
  heldBytes(): number {
    return this.#conversations.bytes + this.#shortener.heldBytes + this.#background.bytes;
  }

  /** Drops the cached conversations, and ends background work for good. Running requests continue to their end. */
  leave(): void {
    this.#conversations.clear();
    this.#background.close();
  }

  async handle(request: ClientRequest, outgoing: ServerResponse): Promise<void> {
    const record = new RequestRecord(this.#dependencies, request);
    const gone = goneSignal(outgoing);
    this.#dependencies.inFlight?.add(record);
    try {
      const context = { request, outgoing, record, gone };
      if (request.route.kind === 'model') await this.#answer(context);
      else await this.#relayBeside(context);
    } catch (error) {
      if (gone.aborted) record.note({ end: 'client-gone' }, 'relay');
      else record.failed(error);
      // svc's own error answers have the evidence headers too, as far as they are known.
      if (!outgoing.headersSent) setHeaders(outgoing, record.evidence());
      throw error;
    } finally {
      this.#dependencies.inFlight?.delete(record);
      record.close();
    }
  }

  async #answer(context: RequestContext): Promise<void> {
    const { request: asked, record, gone } = context;
    const settings = this.#dependencies.settings();

    // Reads the modes first, because a request with an unknown mode is refused.
    record.note({ modes: this.#modesOf(asked, settings, settings.compressionMode) });

    // Parses the body, chooses the upstream, and identifies client, conversation and space.
    const { request, read, configured } = await this.#readRouted(asked);
    const { compressionMode = settings.compressionMode } = configured.settings;
    const reading = typeof read === 'string' ? undefined : read;
    const hasSpace = reading?.hasNoSpace !== true;
    const asConfigured = this.#modesOf(request, settings, compressionMode, hasSpace);
    const trial =
      settings.holdOut && reading !== undefined ? trialOf(reading.place.conversation) : undefined;
    const modes = trial === 'without' ? modesWithout(asConfigured) : asConfigured;
    record.note({ modes, trial, upstream: configured.settings });
    record.hashes?.routed(request.body);
    record.note({ reading }, 'read');

    await this.#admit(record);

    // Recalls, proves what may be left out, and plans the edits.
    const upstream = configured.settings;
    const change = await this.#change({ request, read, modes, settings, upstream });
    // The form of the request (see Form) that counts as sent: the planned one, unless only another is accepted.
    let taken: TakenForm = change;
    const { bond, plan, recalled } = change;
    record.note({ ...notedOf(change), memoryGeneration: recalled.generation }, 'recall');
    record.note(
      { plan, isBound: bond?.isBound === true, isForeign: recalled.isForeign === true },
      'plan',
    );
    this.#keepWhole(request, change, settings.keepRequests);

    this.#dependencies.planned?.(record.known());

    // Sends the request. The fallbacks are sent only if the provider refuses the planned form.
    const sent = forwardPlanned({
      configured,
      request,
      planned: change,
      fallbacks: change.fallbacks,
      signal: gone,
      onRefused: async (accepted) => {
        taken = accepted ?? change;
        if (taken !== change) {
          record.hashes?.forwarded(taken.body);
          record.note({ ...notedOf(taken), plan: taken.plan });
        }
        if (reading === undefined) return;
        if (bond?.isBound === true && taken.body === undefined) {
          reading.state.prefixChangedBy ??= 'svc';
        }
        await this.#noteRefusal(reading, change, taken);
      },
    });
    // The request is under way. Longer work here would delay the first byte of the answer.
    record.hashes?.forwarded(change.body);
    const answer = await sent.catch((error: unknown) => {
      if (gone.aborted && reading !== undefined && modes.writes) this.#keeper.keepHuman(reading);
      throw error;
    });
    record.answered(answer);

    // Relays the answer while svc reads it. The outbox gets the captures before the client has the last byte.
    const watch = new AnswerWatch(request, answer, {
      onAnswer: (said) => {
        record.note({ answer: said });
        if (reading !== undefined) this.#noteAnswer(record, { reading, modes, said, taken, bond });
      },
      onThought: (thought, model) => {
        if (reading === undefined) return;
        const { placements } = taken.recalled;
        this.#bonds.relayed(thought, model, { reading, bond, placements, ...leftOutOf(taken) });
      },
    });
    const end = await this.#relay(context, {
      answer,
      watch,
      configured,
      evidence: record.evidence(answer.status),
      holdBack: this.#dependencies.holdBack,
    });
    const isLeft = end === 'client-gone' && !watch.endsEarly();
    if (reading === undefined || !modes.writes) return;
    if (isLeft) this.#keeper.keepHuman(reading);
    else if (watch.isCut) this.#keeper.noteCut(reading);
    this.#keepLater({ reading, modes, settings }, taken.recalled.placements);
  }

  /**
   * Returns the body of a token count or a compaction, with the edits of earlier requests: the provider checks the
   * history in these requests too. Returns undefined if svc sends the client's own bytes.
   */
  async #repeat(relayed: ClientRequest): Promise<readonly Uint8Array[] | undefined> {
    const { route, body } = relayed;
    if (route.kind !== 'relay' || route.dialect === undefined || body === undefined)
      return undefined;
    if (!carriesHistory(relayed.target, route.dialect)) return undefined;
    try {
      const settings = this.#dependencies.settings();
      const request = { ...relayed, route: { kind: 'model', dialect: route.dialect } as const };
      const modes = this.#modesOf(request, settings, settings.compressionMode);
      const read = await this.#read(request);
      if (typeof read === 'string') return undefined;
      const reading = { ...read, identity: { ...read.identity, kind: 'count' as const } };
      return (await this.#change({ request, read: reading, modes, settings })).body;
    } catch {
      return undefined;
    }
  }

  /** Relays a request that is no model request. */
  async #relayBeside(context: RequestContext): Promise<void> {
    const { request: asked, record, gone } = context;
    const { choose, settings, memory, issuer, planned } = this.#dependencies;
    const { configured, body = asked.body } = await choose({ request: asked, read: 'relayed' });
    const request = { ...asked, body };
    const modes = modesToTell(request.headers, { ...settings(), supports: memory.supports });
    record.note({ upstream: configured.settings });
    record.hashes?.routed(body);
    await this.#admit(record);
    const changed = await this.#repeat(request);
    planned?.(record.known());
    const late = request.method === 'POST' ? undefined : AbortSignal.timeout(LIST_HEADERS_MS);
    const signal = late === undefined ? gone : AbortSignal.any([gone, late]);
    const answering = sendForm(changed, { configured, request, signal });
    record.hashes?.forwarded(changed);
    const answer = await answering.catch((cause: unknown) => {
      throw late?.aborted === true ? noList(cause) : cause;
    });
    record.answered(answer);
    // svc reads no text of these answers. It estimates their tokens, for the limits of a service, and notices a refusal
    // because of thinking.
    const watch = new AnswerWatch(request, answer, { onAnswer: () => undefined });
    const evidence = [
      ...relayedEvidence({ issuer, requestId: request.id, modes }),
      ...sourceHeaders(issuer, answer.status),
    ];
    await this.#relay(context, { answer, watch, configured, evidence });
  }

  /** Checks the limits of a service, if this is one, before anything is recalled. Throws to stop the request. */
  async #admit(record: RequestRecord): Promise<void> {
    const { admit } = this.#dependencies;
    if (admit === undefined) return;
    await admit(record.known());
    record.note({}, 'admit');
  }

  /** Relays the provider's answer to the client. Returns how it ended. */
  async #relay({ outgoing, record }: RequestContext, relayed: RelayedAnswer): Promise<string> {
    const { answer, watch, configured, evidence, holdBack } = relayed;
    const headers = [
      ...headersForClient(answer, configured, this.#dependencies.issuer),
      ...evidence,
    ];
    const end = await relay({
      answer,
      outgoing,
      watcher: watch,
      onChunk: record.hashes?.answering(),
      holdBack,
      head: { status: answer.status, headers },
    });
    const [lostThoughts, uncountedTokens] = [watch.lostThoughts(), watch.uncountedTokens()];
    record.note({ end, lostThoughts, uncountedTokens }, 'relay');
    return end;
  }

  #modesOf(
    request: ClientRequest,
    { memoryMode }: HandlerSettings,
    compressionMode: CompressionMode,
    hasSpace = true,
  ): Modes {
    const supports = hasSpace ? this.#dependencies.memory.supports : NO_MEMORY;
    return decideModes(request.headers, { memoryMode, compressionMode, supports });
  }

  /**
   * Reads the request and chooses its upstream, which may depend on the model. If the choice changes the body, reads
   * the new body.
   */
  async #readRouted(asked: ClientRequest) {
    const read = await this.#read(asked);
    const view = typeof read === 'string' ? read : read.view;
    const { configured, body } = await this.#dependencies.choose({ request: asked, read: view });
    if (body === undefined) return { request: asked, read, configured };
    const request = { ...asked, body };
    return { request, read: await this.#read(request), configured };
  }

  async #read(request: ClientRequest): Promise<Reading | Unread> {
    const { projects, placeIn } = this.#dependencies;
    const conversations = this.#conversations;
    const parsed = await this.#slices.run(readSteps(conversations, request, this.#dependencies));
    const read = await settleProject(parsed, projects);
    if (typeof read === 'string' || placeIn === undefined) return read;
    return placeReading(read, request, placeIn);
  }

  /** Plans the edits. If anything throws, the plan is to send the client's own bytes. */
  async #change(call: ChangeCall): Promise<Change> {
    try {
      const { request, read, modes } = call;
      if (typeof read === 'string') {
        const state = silenceOfModes(modes) ?? 'skipped_unsupported';
        const plan = untouchedPlan(modes, await this.#estimate(request), read);
        return { recalled: { placements: [], state }, plan, bond: undefined, body: undefined };
      }
      const asked = await this.#askMemory(call, read);
      const { recalled, shortening, cacheMarks, clearing, bond } = asked;
      const { placements } = recalled;
      const facts = { view: read.view, modes, placements, shortening, cacheMarks, clearing };
      const plan = makePlan(facts);
      const { body } = request;
      if (body === undefined || plan.edits.length === 0) {
        return { recalled, plan, bond, cacheMarks, body: undefined };
      }
      const fallbacks = () => fallbacksOf(body, facts, { recalled, bond });
      const changed = applyEdits(body, plan.edits);
      const beta = plan.asksToClear === true ? CLEARING_BETA : undefined;
      return { recalled, plan, bond, cacheMarks, fallbacks, body: changed, beta };
    } catch {
      const recalled = { placements: [], state: 'degraded_invalid' } as const;
      const tokens = await this.#estimate(call.request);
      const plan = untouchedPlan(call.modes, tokens, 'recall_degraded');
      return { recalled, plan, bond: undefined, body: undefined };
    }
  }

  /**
   * Asks memory and ledger what thinking is bound to, how long the conversation paused, which texts may be left out,
   * which blocks were placed earlier, which cache marks change, and what to recall now.
   */
  async #askMemory({ modes, settings, upstream }: ChangeCall, reading: Reading) {
    const { clock } = this.#dependencies;
    const deadline = new Deadline(clock, settings.recallMs);
    const bond = await this.#bonds.look(reading, deadline);
    // Half of the time, so that a ledger that does not answer leaves time for the recall.
    const pause = await this.#caches.pauseOf(reading, deadline.msLeft / 2);
    const call = { modes, settings, deadline, reading, bond, isCacheCold: pause.isCold };
    const finding = this.#shortener.findCandidates(call);
    // If `finding` rejects, Promise.all below throws; `leaving` and `clearing` then only say that nothing is left out.
    const leaving = () => finding.then(leavingOf).catch(() => NOTHING_LEAVES);
    const clearing = finding
      .then(() => upstream && this.#shortener.findClearing(call, upstream))
      .catch(() => undefined);
    const [candidates, replayed, cacheMarks] = await Promise.all([
      finding,
      this.#recaller.replay(call, leaving),
      this.#longCaches.edits({ ...call, idleMs: pause.idleMs }),
    ]);
    const recalled = await this.#recaller.recall(call, replayed);
    // The recall comes first: exchanges are left out for the first time only if the request has a recalled block.
    const settleCall = { ...call, firstUnsent: replayed.firstUnsent };
    const shortening = await this.#shortener.settle(settleCall, candidates, recalled);
    const state = shortening.isRecorded ? recalled.state : ('degraded_unavailable' as const);
    const facts = { shortening, cacheMarks, clearing: await clearing, bond };
    return { recalled: { ...recalled, state }, ...facts };
  }

  /** Records a finished answer, before the client has its last byte, or when the client has closed its connection. */
  #noteAnswer(record: RequestRecord, { reading, modes, said, taken, bond }: SaidAnswer): void {
    const { placements } = taken.recalled;
    this.#shortener.measured(reading, said.usage);
    this.#longCaches.measured(reading, said.usage);
    // No request waits for these ledger entries. Without them a later request may not find the blocks of this one.
    if (said.isComplete) {
      this.#bonds.answered(said, {
        reading,
        bond,
        placements,
        ...leftOutOf(taken),
      });
      this.#recaller.answered(reading, said, placements).catch(() => undefined);
    }
    if (!modes.writes) return;
    const { clock } = this.#dependencies;
    const began = clock.monotonic();
    const captured = this.#keeper.keepAnswer(reading, said, placements);
    record.note({ captured, captureMs: clock.monotonic() - began });
  }

  /**
   * Handles a refusal of the planned form. svc stops making a kind of change only if the provider accepted the request
   * without that change. `taken`: the form that the provider accepted; the planned one if it accepted none.
   */
  async #noteRefusal(reading: Reading, planned: Change, taken: TakenForm): Promise<void> {
    const isAtFault = taken !== planned;
    const kept = new Set(isAtFault ? taken.recalled.placements : []);
    const { placements } = planned.recalled;
    const refused = placements.filter((one) => (isAtFault ? !kept.has(one) : one.isNew === true));
    await this.#recaller.refused(reading, refused, isAtFault);
    const { shortening } = planned.plan;
    const isShortened = planned.plan.elidedItems > 0;
    const wasShortened = taken.plan.elidedItems === planned.plan.elidedItems;
    if (shortening !== undefined && isShortened) {
      await this.#shortener.refused(reading, shortening, isAtFault && !wasShortened);
    }
    if (isAtFault && (planned.cacheMarks ?? []).length > 0) await this.#longCaches.refused(reading);
    if (isAtFault && planned.plan.asksToClear === true) {
      await this.#shortener.refusedClearing(reading);
    }
  }

  /**
   * Queues the storing of outputs that later requests may leave out, and of earlier exchanges that are not stored yet.
   */
  #keepLater(call: KeepCall, placements: readonly Placement[]): void {
    const { reading, settings } = call;
    const bytes = heldBytes(reading.view);
    const keepOutputs = () => this.#shortener.keepAhead(call);
    this.#background.add(reading.place, { kind: 'outputs', doOne: keepOutputs, times: 1, bytes });
    const keepHistory = () => this.#keeper.keepHistory(reading, placements);
    const times = this.#keeper.hasHistory(reading) ? settings.elisionCaptureLimit : 0;
    this.#background.add(reading.place, { kind: 'history', doOne: keepHistory, times, bytes });
  }

  #keepWhole({ id, body }: ClientRequest, change: Change, most: number): void {
    if (most === 0) this.#dependencies.kept?.clear();
    else if (body !== undefined)
      this.#dependencies.kept?.add({ id, sent: body, went: change.body }, most);
  }

  #estimate({ body = NO_BYTES }: ClientRequest): Promise<number> {
    return this.#slices.run(estimateSteps(body, 0, body.length));
  }
}

/** The rights of a request that may use memory in no space. */
const NO_MEMORY = { read: false, write: false } as const;

interface RequestContext {
  readonly request: ClientRequest;
  readonly outgoing: ServerResponse;
  readonly record: RequestRecord;
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
}

interface RelayedAnswer {
  readonly answer: UpstreamAnswer;
  readonly watch: AnswerWatch;
  readonly configured: ConfiguredUpstream;
  readonly evidence: readonly string[];
  readonly holdBack?: HoldBack | undefined;
}

interface SaidAnswer {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly said: Answer;
  readonly taken: TakenForm;
  readonly bond: Bond | undefined;
}

interface ChangeCall {
  readonly request: ClientRequest;
  readonly read: Reading | Unread;
  readonly modes: Modes;
  readonly settings: HandlerSettings;
  /** The settings of the upstream; undefined for a token count or a compaction. */
  readonly upstream?: ConfiguredUpstream['settings'];
}

/** A version of the request that svc may send (see Form), with its recalled texts (blocks) and its plan. */
interface TakenForm extends Form {
  readonly recalled: Recalled;
  readonly plan: Plan;
}

function notedOf({ recalled: { state, placements } }: TakenForm) {
  return { memoryState: state, placements };
}

/** Returns what the sent request left out. In shadow mode that is nothing, whatever the plan counts. */
function leftOutOf({ body, plan }: TakenForm): Omit<Relayed, 'reading' | 'bond' | 'placements'> {
  const isShortened = body !== undefined && plan.elidedItems > 0;
  const { batches, whole } = plan.shortening ?? {};
  return isShortened ? { isShortened, batches, whole } : { isShortened, batches: [] };
}

interface Change extends TakenForm {
  readonly bond: Bond | undefined;
  /** Makes the forms to send if the provider refuses this one; undefined for the client's own bytes. */
  readonly fallbacks?: () => readonly TakenForm[];
  /** The edits of the client's cache marks; see longCacheEdits. */
  readonly cacheMarks?: readonly Edit[];
}

/**
 * Returns the forms to send if the provider refuses the planned one: first the form with only the edits of earlier
 * requests, if there are any and the planned form has more; then the client's own bytes. A form without the edits in
 * front of bound thinking loses that thinking (`breaksBond`).
 */
function fallbacksOf(
  body: Buffer,
  facts: PlanFacts,
  { recalled, bond }: Pick<Change, 'recalled' | 'bond'>,
): readonly TakenForm[] {
  const { view, modes, shortening } = facts;
  const before = recalled.placements.filter(({ isNew }) => isNew !== true);
  const elided = shortening.elided.filter(({ output }) => shortening.added?.has(output) !== true);
  const omitted = shortening.omitted.filter((omission) => shortening.added?.has(omission) !== true);
  const isShorter = elided.length + omitted.length > 0;
  const isAdding =
    before.length < recalled.placements.length ||
    elided.length < shortening.elided.length ||
    omitted.length < shortening.omitted.length ||
    facts.cacheMarks.length > 0 ||
    facts.clearing !== undefined;
  const outcome = isShorter ? shortening.outcome : 'provider_refused';
  const accepted = makePlan({
    view,
    modes,
    placements: before,
    shortening: { ...shortening, elided, omitted, outcome },
    cacheMarks: [],
  });
  const nothing = { ...shortening, elided: [], omitted: [], outcome: 'provider_refused' } as const;
  const own: TakenForm = {
    recalled: { ...recalled, placements: [], state: 'skipped_unsupported' },
    plan: makePlan({ view, modes, placements: [], shortening: nothing, cacheMarks: [] }),
    body: undefined,
  };
  if (accepted.edits.length === 0) return [own];
  const thoughtAt = view.items[bond?.thoughtAt ?? -1]?.start ?? 0;
  const breaksBond =
    bond?.isBound === true && accepted.edits.some(({ start }) => start < thoughtAt);
  const state = before.length > 0 ? recalled.state : ('skipped_unsupported' as const);
  const form = {
    recalled: { ...recalled, placements: before, state },
    plan: accepted,
    body: applyEdits(body, accepted.edits),
  };
  return isAdding ? [form, { ...own, breaksBond }] : [{ ...own, breaksBond }];
}

const NO_BYTES = Buffer.alloc(0);

/** Says whether the body of a relayed request is a conversation, as for count_tokens, input_tokens and compact. */
function carriesHistory(target: string, dialect: Dialect): boolean {
  return apiOf(dialect).helperPaths.includes(pathOf(target));
}

function setHeaders(outgoing: ServerResponse, headers: readonly string[]): void {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    outgoing.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }
}

// Deadline, in milliseconds, for the head of an answer to a relayed request that is no POST. Mostly a client asks for
// the list of models: Codex does so at its start, and would wait 10 seconds. Without a list clients continue at once.
const LIST_HEADERS_MS = 3_000;

function noList(cause: unknown): ProxyError {
  const message = 'The provider did not list its models in 3 seconds.';
  return new ProxyError('UPSTREAM_TIMEOUT', message, { cause });
}
