import type { Answer, Cleared } from '../core/dialects/answer.ts';
import { ProxyError } from '../core/errors.ts';
import { evidenceHeaders, NOTHING_PLANNED, sourceHeaders } from '../core/plan/evidence.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import { clientOfHeaders, kindOfPath } from '../core/request/identity.ts';
import type { Modes } from '../core/http/modes.ts';
import type { Plan } from '../core/plan/plan.ts';
import { CACHE_DEFAULT_MS } from '../core/conversation/cache-marks.ts';
import { isUnfit, type LostThoughts } from '../core/conversation/lost-thoughts.ts';
import { cacheLifetimeMs } from '../core/shortening/pricing.ts';
import { type Bond, type Placement, secondLooksIn } from '../core/recall/injections.ts';
import type { UpstreamSettings } from '../core/settings/settings.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';
import type {
  AnswerWatcher,
  BodyWatch,
  Captured,
  ClientRequest,
  KnownFacts,
  ProxyDependencies,
  RequestFacts,
} from './dependencies.ts';
import type { Comparison } from '../core/meter/cache-miss.ts';
import type { PrefixChanger, Reading } from './conversations.ts';
import type { RelayEnd } from './relay.ts';

/** A form of the request that the provider took. */
interface TakenForm {
  readonly recalled: Recalled;
  readonly plan: Plan;
  readonly body: readonly Uint8Array[] | undefined;
}

interface Recalled {
  readonly state: MemoryState;
  readonly placements: readonly Placement[];
  readonly generation?: string | undefined;
}

/** Notes what happens to one request, for its evidence headers and its row in the request log. */
export class RequestRecord {
  readonly #dependencies: ProxyDependencies;
  readonly #request: ClientRequest;
  readonly #at: number;
  readonly #ms: Record<string, number> = {};
  #lastMark: number;
  #modes: Modes | undefined;
  #reading: Reading | undefined;
  #memoryState: MemoryState = 'off';
  #memoryGeneration: string | undefined;
  #plan: Plan | undefined;
  #isBound = false;
  #isForeign = false;
  #status = 0;
  #end = 'INTERNAL';
  #answer: Answer | undefined;
  #lostThoughts: LostThoughts | undefined;
  #comparison: Comparison | undefined;
  #answeredAt = 0;
  #uncountedTokens: number | undefined;
  #placements: readonly Placement[] = [];
  #upstream: UpstreamSettings | undefined;
  #head: RequestFacts['head'];
  #error: unknown;
  #captured: Captured = 0;
  #captureMs: number | undefined;
  readonly #hashes: BodyWatch | undefined;

  constructor(dependencies: ProxyDependencies, request: ClientRequest) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#at = dependencies.clock.now();
    this.#lastMark = request.startedAt;
    this.#hashes = dependencies.hashes?.(request.body);
    this.#mark('body');
  }

  decided(modes: Modes): void {
    this.#modes = modes;
  }

  /** The upstream that was chosen, with the one who pays: a key, or the client's own login. */
  sentTo(upstream: UpstreamSettings): void {
    this.#upstream = upstream;
  }

  /** The request as it is forwarded where nothing else is changed. */
  routed({ body }: ClientRequest): void {
    this.#hashes?.routed(body);
  }

  /** To be called when the request is on its way. `body`: undefined for the client's own bytes. */
  forwarded(body: readonly Uint8Array[] | undefined): void {
    this.#hashes?.forwarded(body);
  }

  /**
   * Hashes what was forwarded, once. No caller waits for that, so it is done while the provider thinks,
   * or behind the first byte of one that is swift.
   */
  count(): void {
    this.#hashes?.count();
    if (this.#reading === undefined || this.#comparison !== undefined) return;
    const { startedAt } = this.#request;
    this.#comparison = this.#dependencies.accounts.compare(this.#reading, startedAt);
  }

  /** Notes who changed something that thoughts of this conversation are bound to. The first one counts. */
  prefixChanged(by: PrefixChanger): void {
    if (this.#reading !== undefined) this.#reading.state.prefixChangedBy ??= by;
  }

  /** The watcher of the answer that notes what the facts need, too. */
  watching(watcher: AnswerWatcher | undefined): AnswerWatcher | undefined {
    return this.#hashes === undefined ? watcher : this.#hashes.watching(watcher);
  }

  read(reading: Reading | undefined): void {
    this.#reading = reading;
    this.#mark('read');
  }

  /** The limits allow it. */
  admitted(): void {
    this.#mark('admit');
  }

  recalled({ state, placements, generation }: Recalled): void {
    this.#memoryState = state;
    this.#memoryGeneration = generation;
    this.#placements = placements;
    this.#mark('recall');
  }

  /** `isForeign`: blocks stay out, because the conversation was continued without svc. */
  bound(bond: Bond | undefined, isForeign: boolean): void {
    this.#isBound = bond?.isBound === true;
    this.#isForeign = isForeign;
  }

  planned(plan: Plan): void {
    this.#plan = plan;
    this.#mark('plan');
  }

  /** The provider refused the planned form of the request, and took another one. */
  refused(taken: TakenForm): void {
    this.#hashes?.forwarded(taken.body);
    this.#memoryState = taken.recalled.state;
    this.#placements = taken.recalled.placements;
    this.#plan = taken.plan;
  }

  answered({ status, headers }: UpstreamAnswer): void {
    this.#status = status;
    this.#head = { status, headers };
    this.#answeredAt = this.#dependencies.clock.monotonic();
    this.#mark('head');
  }

  /** Notes the thoughts of the request that the provider did not use as they were sent. */
  lost(thoughts: LostThoughts | undefined): void {
    this.#lostThoughts = thoughts;
  }

  /** Runs `keep`, which stores what the answer says before the client has its last byte. */
  captures(keep: () => Captured): void {
    const { clock } = this.#dependencies;
    const began = clock.monotonic();
    this.#captured = keep();
    this.#captureMs = clock.monotonic() - began;
  }

  said(answer: Answer): void {
    this.#answer = answer;
  }

  /** `uncountedTokens`: output tokens by estimate, where the provider has not counted them. */
  ended(end: RelayEnd, uncountedTokens?: number): void {
    this.#end = end;
    this.#uncountedTokens = uncountedTokens;
    this.#mark('relay');
  }

  failed(error: unknown): void {
    this.#error = error;
    const known = error instanceof ProxyError ? error : undefined;
    this.#status = known?.status ?? 500;
    this.#end = known?.code ?? 'INTERNAL';
  }

  /** The evidence headers; none while the modes are unknown. `status`: of the provider's answer. */
  evidence(status = 0): string[] {
    const { issuer } = this.#dependencies;
    if (this.#modes === undefined) return [];
    const evidence = evidenceHeaders({
      issuer,
      requestId: this.#request.id,
      modes: this.#modes,
      memoryState: this.#memoryState,
      plan: this.#planSoFar(),
    });
    return [...evidence, ...sourceHeaders(issuer, status)];
  }

  /** The row with the facts known now; the answer has not ended. */
  soFar(): RequestRow {
    return { ...this.#row(), end: 'open' };
  }

  close(): void {
    this.count();
    const row = this.#dependencies.accounts.complete(this.#row(), {
      reading: this.#reading,
      plan: this.#planSoFar(),
      placements: this.#placements,
      text: this.#answer?.text ?? '',
      startedAt: this.#request.startedAt,
      answeredAt: this.#answeredAt,
      comparison: this.#comparison,
    });
    this.#dependencies.note(this.facts(row));
  }

  /** The facts with a row, as they are now. */
  facts(row = this.#row()): RequestFacts {
    return { ...this.known(), row };
  }

  known(): KnownFacts {
    return {
      request: this.#request,
      place: this.#reading?.place,
      modes: this.#modes,
      plan: this.#planSoFar(),
      memoryState: this.#memoryState,
      memoryGeneration: this.#memoryGeneration,
      captured: this.#captured,
      captureMs: this.#captureMs,
      recalledBlocks: this.#placements.length,
      isStreamed: this.#reading?.view.shell.value['stream'] === true,
      upstream: this.#upstream,
      head: this.#head,
      answer: this.#answer,
      uncountedTokens: this.#uncountedTokens,
      error: this.#error,
      hashes: this.#hashes?.known(),
    };
  }

  /** A request that is refused before it is planned has a size all the same, and forwards nothing. */
  #planSoFar(): Plan {
    if (this.#plan !== undefined || this.#reading === undefined)
      return this.#plan ?? NOTHING_PLANNED;
    return { ...NOTHING_PLANNED, originalTokens: this.#reading.view.tokens };
  }

  #row(): RequestRow {
    const { route, id, headers } = this.#request;
    const reading = this.#reading;
    const plan = this.#planSoFar();
    const model = reading?.view.shell.value['model'];
    const usage = this.#answer?.usage;
    const readings = plan.shortening?.readings ?? 0;
    return {
      id,
      at: this.#at,
      client: reading?.identity.client ?? clientOfHeaders(headers),
      kind: reading?.identity.kind ?? kindUnread(this.#request),
      dialect: ('dialect' in route ? route.dialect : undefined) ?? 'openai_responses',
      model: typeof model === 'string' ? model.slice(0, MODEL_CHARS_MAX) : '',
      space: reading?.place.space ?? '',
      conversation: reading?.place.conversation ?? '',
      status: this.#status,
      end: this.#end,
      memoryMode: this.#modes?.memory ?? '',
      memoryState: this.#memoryState,
      compressionMode: plan.compressionMode,
      continuityState: plan.continuityState,
      originalInputTokens: plan.originalTokens,
      forwardedInputTokens: plan.forwardedTokens,
      recalledTokens: plan.recalledTokens,
      elidedItems: plan.elidedItems,
      elidedTokens: plan.elidedTokens,
      ...(plan.elidedRefs.length === 0 ? {} : { elidedRefs: plan.elidedRefs }),
      ...secondLooksOf(this.#placements, plan),
      ...(this.#upstream?.auth === 'client' ? { isLogin: true } : {}),
      ...(usage === undefined ? {} : { usage }),
      ...clearedIn(plan, this.#answer),
      ...(this.#isBound ? { isBound: true } : {}),
      ...(this.#isForeign ? { isForeign: true } : {}),
      ...cacheOf(reading),
      ...this.#lost(),
      ...(readings > 0 ? { readings } : {}),
      ms: this.#ms,
    };
  }

  #lost(): Pick<RequestRow, 'lostThoughts' | 'prefixChangedBy'> {
    const lostThoughts = this.#lostThoughts;
    if (lostThoughts === undefined) return {};
    const by = isUnfit(lostThoughts) ? this.#reading?.state.prefixChangedBy : undefined;
    return { lostThoughts, ...(by === undefined ? {} : { prefixChangedBy: by }) };
  }

  #mark(step: string): void {
    const now = this.#dependencies.clock.monotonic();
    // Microseconds are noise in a log that a person reads.
    this.#ms[step] = Math.round((now - this.#lastMark) * 100) / 100;
    this.#lastMark = now;
  }
}

/** The kind of a request that svc could not read, or had no reason to. */
function kindUnread({ route, target }: ClientRequest): string {
  return route.kind === 'model' ? 'main' : (kindOfPath(target) ?? 'relayed');
}

/** Shadow sends none of them. */
function secondLooksOf(
  placements: readonly Placement[],
  { recalledTokens }: Plan,
): Pick<RequestRow, 'secondLooks'> {
  const secondLooks = secondLooksIn(placements);
  return secondLooks.tokens === 0 || recalledTokens === 0 ? {} : { secondLooks };
}

function clearedIn(plan: Plan, answer: Answer | undefined): { readonly cleared?: Cleared } {
  const nothing = plan.asksToClear === true ? { outputs: 0, tokens: 0 } : undefined;
  const cleared = answer?.cleared ?? nothing;
  return cleared === undefined ? {} : { cleared };
}

/** Said where it is not the default. */
function cacheOf(reading: Reading | undefined): Pick<RequestRow, 'cacheMs'> {
  const cacheMs = reading === undefined ? CACHE_DEFAULT_MS : cacheLifetimeMs(reading.view);
  return cacheMs === CACHE_DEFAULT_MS ? {} : { cacheMs };
}

// The longest model names of real providers are under 100 characters.
const MODEL_CHARS_MAX = 128;
