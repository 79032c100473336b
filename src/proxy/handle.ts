import type { ServerResponse } from 'node:http';
import { answerHeaders } from '../core/http/header-rules.ts';
import type { Placement } from '../core/recall/injections.ts';
import type { Verdict } from '../core/shortening/meter.ts';
import { decideModes, type Modes } from '../core/http/modes.ts';
import type { Edit } from '../core/plan/edits.ts';
import { makePlan, type Plan, type Unread, untouchedPlan } from '../core/plan/plan.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import { estimateSteps } from '../core/bytes/tokens.ts';
import { AnswerWatch } from './answer-watch.ts';
import { CaptureKeeper } from './capture-keeper.ts';
import type { ClientRequest, Handler } from './client-request.ts';
import { CacheWatch } from './cache-watch.ts';
import { Conversations } from './conversations.ts';
import { CostMeter } from './cost-meter.ts';
import { LongCacheWatch } from './long-cache-watch.ts';
import { findUpstream, forwardPlanned, upstreamFor } from './forward.ts';
import type { LiveSettings, ProxyParts } from './parts.ts';
import { type Reading, readSteps } from './read-request.ts';
import { RecallPlacer } from './recall-placer.ts';
import { RefusalWatch } from './refusal-watch.ts';
import { goneSignal } from './gone-signal.ts';
import { Hands, Pacer } from './pacer.ts';
import { relay } from './relay.ts';
import { relayUntouched } from './relay-untouched.ts';
import { RequestRecord } from './request-record.ts';
import { Slices } from './slices.ts';
import { type KeepCall, leftOutDigests, Shortener, type ShorteningCall } from './shortener.ts';

/**
 * The story of one request. The gate has let it in, its body is read and decoded (steps 1 to 3);
 * the rest is told here in order. Memory may fail at every step and then only its state changes:
 * nothing but a mode that does not exist, a missing upstream or a dead provider stops a request.
 */
export function createHandler(parts: ProxyParts): ProxyHandler {
  const story = new Story(parts);
  const handler: Handler = (request, outgoing) => story.tell(request, outgoing);
  return Object.assign(handler, { drain: (withinMs: number) => story.drain(withinMs) });
}

export interface ProxyHandler extends Handler {
  /**
   * Does now what nobody waited for: for the end, when no request comes any more. Takes
   * `withinMs` milliseconds at most. Never rejects.
   */
  drain(withinMs: number): Promise<void>;
}

/**
 * An exchange takes about 2 ms of this thread and up to 10 of the store's: a tenth of one core, on
 * a machine that has only one.
 */
const HISTORY_MS = 100;
/** Tools run longer, so what a request brought is kept before the next one comes. */
const AHEAD_MS = 20;

/** What outlives a request: caches and guards that every request of this process shares. */
class Story {
  readonly #parts: ProxyParts;
  readonly #conversations = new Conversations();
  readonly #slices: Slices;
  readonly #placer: RecallPlacer;
  readonly #shortener: Shortener;
  readonly #keeper: CaptureKeeper;
  readonly #hands = new Hands();
  readonly #history = new Pacer(this.#hands, HISTORY_MS);
  readonly #ahead = new Pacer(this.#hands, AHEAD_MS);
  readonly #caches: CacheWatch;
  readonly #meter: CostMeter;
  readonly #longCaches: LongCacheWatch;
  readonly #refusals: RefusalWatch;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#slices = new Slices(parts.clock);
    this.#placer = new RecallPlacer(parts);
    this.#shortener = new Shortener(parts);
    this.#keeper = new CaptureKeeper(parts);
    this.#caches = new CacheWatch(parts.clock);
    this.#meter = new CostMeter(parts);
    this.#longCaches = new LongCacheWatch(parts);
    this.#refusals = new RefusalWatch(parts.clock);
  }

  async drain(withinMs: number): Promise<void> {
    await Promise.all([this.#history.drain(withinMs), this.#ahead.drain(withinMs)]);
  }

  async tell(request: ClientRequest, outgoing: ServerResponse): Promise<void> {
    const record = new RequestRecord(this.#parts, this.#meter, request);
    const gone = goneSignal(outgoing);
    this.#parts.inFlight?.add(record);
    const letGo = this.#hands.hold();
    try {
      const scene = { request, outgoing, record, gone, letGo };
      if (request.route.kind === 'model') await this.#answer(scene);
      else record.ended(await relayUntouched(this.#parts, scene));
    } catch (error) {
      if (gone.aborted) record.ended('client-gone');
      else record.failed(error);
      // svc's own errors carry the evidence too, as far as it is known.
      if (!outgoing.headersSent) setHeaders(outgoing, record.evidence());
      throw error;
    } finally {
      this.#parts.inFlight?.delete(record);
      letGo();
      record.close();
    }
  }

  async #answer({ request, outgoing, record, gone, letGo }: Scene): Promise<void> {
    const live = this.#parts.live();

    // 5: modes. A wrong one is refused before anything was sent anywhere.
    const modes = this.#modesOf(request, live);
    record.decided(modes);
    const configured = upstreamFor(live, request.route);

    // 4 and 6: a typed view over the bytes, who asks, and the exchanges.
    const read = await this.#slices.run(readSteps(this.#conversations, request));
    const reading = typeof read === 'string' ? undefined : read;
    record.read(reading);

    // 7: recall, and the proofs of what may be left out.
    const asked = { modes, ...(await this.#look(reading, modes, live.proxy)) };
    const { cacheMarks } = asked;
    const { recalled, shortening } = await this.#askMemory(asked, reading);
    record.recalled(recalled.state);
    const { placements } = recalled;

    // 8: the plan, from facts alone.
    const plan =
      reading === undefined || shortening === undefined
        ? untouchedPlan(modes, await this.#estimate(request), unreadOf(read))
        : makePlan({ view: reading.view, modes, placements, shortening, cacheMarks });
    record.planned(plan, this.#shortener.rereads(reading, shortening));

    // 9 to 11: edits by span, headers with the credential last, one attempt at the provider.
    // A person who stops an answer, begun or not, has asked: that is theirs to keep.
    const sent = forwardPlanned({
      configured,
      request,
      plan,
      signal: gone,
      isTriedAgain: reading === undefined || this.#refusals.isTriedAgain(reading.place),
      onRefused: async (own) => {
        record.refused();
        if (reading === undefined || own === 'failed') return;
        if (own === 'refused') return this.#refusals.note(reading.place);
        await this.#changeRefused(reading, { plan, cacheMarks });
      },
    });
    letGo();
    const answer = await sent.catch((error: unknown) => {
      if (gone.aborted && reading !== undefined && modes.writes) this.#keeper.keepHuman(reading);
      throw error;
    });
    record.answered(answer.status);

    // 12 to 15: evidence, then the provider's bytes as they come, watched on the side; captures
    // are durable before the client has the last byte.
    const watch = new AnswerWatch(request, answer, (said) => {
      record.said(said);
      if (reading !== undefined) {
        this.#shortener.measured(reading, plan, said.usage);
        this.#longCaches.measured(reading, said.usage);
      }
      if (reading === undefined || !modes.writes) return;
      this.#keeper.keepAnswer(reading, said, placements);
    });
    const end = await relay({
      answer,
      outgoing,
      watcher: watch,
      head: {
        status: answer.status,
        headers: [...answerHeaders(answer.headers), ...record.evidence()],
      },
    });
    record.ended(end);
    if (reading === undefined || !modes.writes) return;
    if (end === 'client-gone' && !watch.endsEarly()) this.#keeper.keepHuman(reading);
    else if (watch.isCut) this.#keeper.noteCut(reading);
    this.#keepLater({ reading, modes, settings: live.proxy }, placements);
  }

  #modesOf(request: ClientRequest, live: LiveSettings): Modes {
    return decideModes(request.headers, {
      memoryMode: live.proxy.memoryMode,
      compressionMode:
        findUpstream(live, request.route)?.settings.compressionMode ?? live.proxy.compressionMode,
      supports: this.#parts.memory.supports,
    });
  }

  /** The provider does not say which change it refused: each kind that the request carried is off. */
  async #changeRefused(
    reading: Reading,
    { plan, cacheMarks }: { readonly plan: Plan; readonly cacheMarks: readonly Edit[] },
  ): Promise<void> {
    if (plan.recalledTokens > 0) await this.#placer.refused(reading);
    if (plan.elidedItems > 0) await this.#shortener.refused(reading);
    if (cacheMarks.length > 0) this.#longCaches.refused(reading);
  }

  #estimate({ body = NO_BYTES }: ClientRequest): Promise<number> {
    return this.#slices.run(estimateSteps(body, 0, body.length));
  }

  /** What stands in every request can wait until nobody does. */
  #keepLater(call: KeepCall, placements: readonly Placement[]): void {
    const { reading, settings } = call;
    const keepOutputs = async (): Promise<boolean> => {
      await this.#shortener.keepAhead(call);
      return false;
    };
    this.#ahead.add(reading.place, { doOne: keepOutputs, times: 1 });
    // What was said before svc came.
    const keepHistory = () => this.#keeper.keepHistory(reading, placements);
    const times = settings.elisionCaptureLimit;
    this.#history.add(reading.place, { doOne: keepHistory, times });
  }

  /** Both at once; an exchange is left out only where the request carries something recalled. */
  async #askMemory(asked: Omit<ShorteningCall, 'reading' | 'until'>, reading: Reading | undefined) {
    if (reading === undefined) {
      const recalled = await this.#placer.place({ ...asked, reading });
      return { recalled, shortening: undefined };
    }
    const until = this.#parts.clock.monotonic() + asked.settings.recallMs;
    const call = { ...asked, reading, until };
    const sought = this.#shortener.seek(call);
    const leavesOut = () => sought.then(leftOutDigests);
    const recalling = this.#placer.place({ ...asked, reading, leavesOut });
    const shortening = this.#shortener.shorten({ ...call, sought, recalled: recalling });
    const [recalled, left] = await Promise.all([recalling, shortening]);
    return { recalled, shortening: left };
  }

  /**
   * What earlier requests of this conversation came to: is the provider's cache cold, did it pay. All
   * that is asked has one deadline: `settings` have what is left of it for the others.
   */
  async #look(
    reading: Reading | undefined,
    modes: Modes,
    settings: ProxySettings,
  ): Promise<EarlierCost> {
    if (reading === undefined) {
      return { isCacheCold: false, verdict: 'goes_on', settings, cacheMarks: [] };
    }
    const { clock } = this.#parts;
    const until = clock.monotonic() + settings.recallMs;
    // Half of it: a log that hangs must not take what a recall needs.
    const { verdict, loggedAt } = await this.#meter.look(reading, modes, settings.recallMs / 2);
    const { idleMs, isCold: isCacheCold } = this.#caches.look(reading, loggedAt);
    const isAuto = settings.cacheTtl === 'auto' && modes.compression === 'deterministic';
    const withinMs = settings.recallMs / 4;
    const cacheMarks = isAuto ? await this.#longCaches.edits({ reading, idleMs, withinMs }) : [];
    const recallMs = Math.max(0, until - clock.monotonic());
    return { isCacheCold, verdict, settings: { ...settings, recallMs }, cacheMarks };
  }
}

interface EarlierCost {
  readonly isCacheCold: boolean;
  readonly verdict: Verdict;
  readonly settings: ProxySettings;
  /** Lifetimes for the client's own cache marks; none unless the setting asks for it. */
  readonly cacheMarks: readonly Edit[];
}

interface Scene {
  readonly request: ClientRequest;
  readonly outgoing: ServerResponse;
  readonly record: RequestRecord;
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
  /** To be called when the request is on its way, or will not be. */
  readonly letGo: () => void;
}

const NO_BYTES = Buffer.alloc(0);

function unreadOf(read: Reading | Unread): Unread {
  return typeof read === 'string' ? read : 'unparseable';
}

function setHeaders(outgoing: ServerResponse, headers: readonly string[]): void {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    outgoing.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }
}
