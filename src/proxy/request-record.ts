import type { Answer, Cleared } from '../core/dialects/dialect-answer.ts';
import { ProxyError } from '../core/errors.ts';
import { evidenceHeaders, sourceHeaders, NOTHING_PLANNED, type Plan } from '../core/plan/plan.ts';
import { clientOfHeaders, kindOfPath } from '../core/request/identity.ts';
import type { Trial } from '../core/meter/hold-out.ts';
import { CACHE_DEFAULT_MS } from '../core/dialects/common.ts';
import { isUnfit, type LostThoughts } from '../core/conversation/lost-thoughts.ts';
import { cacheLifetimeMs } from '../core/shortening/pricing.ts';
import { type Placement, secondLooksIn } from '../core/recall/injections.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';
import type { BodyWatch, ClientRequest, KnownFacts, ProxyDependencies } from './dependencies.ts';
import type { Reading } from './conversations.ts';

interface Noted extends Omit<
  KnownFacts,
  'request' | 'place' | 'plan' | 'recalledBlocks' | 'isStreamed' | 'hashes'
> {
  readonly reading: Reading | undefined;
  /** The conversation's group in the hold-out experiment (core/meter/hold-out.ts); undefined if that is off. */
  readonly trial: Trial | undefined;
  readonly placements: readonly Placement[];
  readonly plan: Plan | undefined;
  readonly isBound: boolean;
  /** True if the newest thinking was made without svc. Then no recalled text (block) may stand in front of it. */
  readonly isForeign: boolean;
  readonly status: number;
  /** When the answer began, by the monotonic clock. */
  readonly answeredAt: number;
  /** The numbers of thinking blocks that the provider dropped or flagged; undefined if none. */
  readonly lostThoughts: LostThoughts | undefined;
  readonly end: string;
}

/** Collects what happens to a request, for its evidence headers and its row in the request log. */
export class RequestRecord {
  /** Hashes the bodies, if a receipt needs that. */
  readonly hashes: BodyWatch | undefined;
  readonly #dependencies: ProxyDependencies;
  readonly #request: ClientRequest;
  readonly #at: number;
  readonly #ms: Record<string, number> = {};
  #lastMark: number;
  readonly #noted: Noted = {
    modes: undefined,
    upstream: undefined,
    reading: undefined,
    trial: undefined,
    memoryState: 'off',
    memoryGeneration: undefined,
    placements: [],
    plan: undefined,
    isBound: false,
    isForeign: false,
    status: 0,
    head: undefined,
    answeredAt: 0,
    answer: undefined,
    captured: 0,
    captureMs: undefined,
    lostThoughts: undefined,
    uncountedTokens: undefined,
    end: 'INTERNAL',
    error: undefined,
  };

  constructor(dependencies: ProxyDependencies, request: ClientRequest) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#at = dependencies.clock.now();
    this.#lastMark = request.startedAt;
    this.hashes = dependencies.hashes?.(request.body);
    this.note({}, 'body');
  }

  /** Notes facts. `step`: the name of the step that ends now; the row gets the step's duration in milliseconds. */
  note(facts: Partial<Noted>, step?: string): void {
    Object.assign(this.#noted, facts);
    if (step === undefined) return;
    const now = this.#dependencies.clock.monotonic();
    this.#ms[step] = Math.round((now - this.#lastMark) * 100) / 100;
    this.#lastMark = now;
  }

  answered({ status, headers }: UpstreamAnswer): void {
    const answeredAt = this.#dependencies.clock.monotonic();
    this.note({ status, head: { status, headers }, answeredAt }, 'head');
  }

  failed(error: unknown): void {
    const known = error instanceof ProxyError ? error : undefined;
    this.note({ error, status: known?.status ?? 500, end: known?.code ?? 'INTERNAL' });
  }

  /** Returns the evidence headers; none before the modes are known. `status`: that of the provider's answer. */
  evidence(status = 0): string[] {
    const { issuer } = this.#dependencies;
    if (this.#noted.modes === undefined) return [];
    const evidence = evidenceHeaders({
      issuer,
      requestId: this.#request.id,
      modes: this.#noted.modes,
      memoryState: this.#noted.memoryState,
      plan: this.#planSoFar(),
    });
    return [...evidence, ...sourceHeaders(issuer, status)];
  }

  /** Returns the row as far as it is known, before the answer has ended. */
  soFar(): RequestRow {
    return { ...this.#row(), end: 'open' };
  }

  close(): void {
    const { accounts } = this.#dependencies;
    const { reading } = this.#noted;
    const comparison = reading && accounts.compare(reading, this.#request.startedAt);
    const row = accounts.complete(this.#row(), {
      reading,
      plan: this.#planSoFar(),
      placements: this.#noted.placements,
      text: this.#noted.answer?.text ?? '',
      startedAt: this.#request.startedAt,
      answeredAt: this.#noted.answeredAt,
      comparison,
    });
    this.#dependencies.note({ ...this.known(), row });
  }

  known(): KnownFacts {
    const { reading, placements } = this.#noted;
    return {
      ...this.#noted,
      request: this.#request,
      place: reading?.place,
      plan: this.#planSoFar(),
      recalledBlocks: placements.length,
      isStreamed: reading?.view.shell.value['stream'] === true,
      hashes: this.hashes?.known(),
    };
  }

  /** Returns the plan. Before there is a plan, returns one that has only the request's size. */
  #planSoFar(): Plan {
    const { plan, reading } = this.#noted;
    if (plan !== undefined) return plan;
    return { ...NOTHING_PLANNED, originalTokens: reading?.view.tokens ?? 0 };
  }

  #row(): RequestRow {
    const { route, id, headers } = this.#request;
    const reading = this.#noted.reading;
    const plan = this.#planSoFar();
    const model = reading?.view.shell.value['model'];
    const usage = this.#noted.answer?.usage;
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
      status: this.#noted.status,
      end: this.#noted.end,
      memoryMode: this.#noted.modes?.memory ?? '',
      memoryState: this.#noted.memoryState,
      compressionMode: plan.compressionMode,
      continuityState: plan.continuityState,
      originalInputTokens: plan.originalTokens,
      forwardedInputTokens: plan.forwardedTokens,
      recalledTokens: plan.recalledTokens,
      elidedItems: plan.elidedItems,
      elidedTokens: plan.elidedTokens,
      ...(plan.elidedRefs.length === 0 ? {} : { elidedRefs: plan.elidedRefs }),
      ...secondLooksOf(this.#noted.placements, plan),
      ...(this.#noted.trial === undefined ? {} : { trial: this.#noted.trial }),
      ...(this.#noted.upstream?.auth === 'client' ? { isLogin: true } : {}),
      ...(usage === undefined ? {} : { usage }),
      ...clearedIn(plan, this.#noted.answer),
      ...(this.#noted.isBound ? { isBound: true } : {}),
      ...(this.#noted.isForeign ? { isForeign: true } : {}),
      ...cacheOf(reading),
      ...this.#lost(),
      ...(readings > 0 ? { readings } : {}),
      ms: this.#ms,
    };
  }

  #lost(): Pick<RequestRow, 'lostThoughts' | 'prefixChangedBy'> {
    const lostThoughts = this.#noted.lostThoughts;
    if (lostThoughts === undefined) return {};
    const by = isUnfit(lostThoughts) ? this.#noted.reading?.state.prefixChangedBy : undefined;
    return { lostThoughts, ...(by === undefined ? {} : { prefixChangedBy: by }) };
  }
}

/** Returns the kind of a request whose body svc did not read. */
function kindUnread({ route, target }: ClientRequest): string {
  return route.kind === 'model' ? 'main' : (kindOfPath(target) ?? 'relayed');
}

/** Returns the tokens of the texts (blocks) from second looks; nothing if none was sent, as in shadow mode. */
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

/** Returns the cache lifetime if it differs from the default. */
function cacheOf(reading: Reading | undefined): Pick<RequestRow, 'cacheMs'> {
  const cacheMs = reading === undefined ? CACHE_DEFAULT_MS : cacheLifetimeMs(reading.view);
  return cacheMs === CACHE_DEFAULT_MS ? {} : { cacheMs };
}

// Characters of a model's name in the log. Providers' names have fewer than 100.
const MODEL_CHARS_MAX = 128;
