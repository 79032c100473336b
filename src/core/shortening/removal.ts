/**
 * Finds what may be left out of a request, asks `decide` whether to do it now, and settles what is really left out
 * once the memory has proven which texts it has. The proxy and the bench use the same functions.
 */
import { tellsExchanges } from '../recall/own-blocks.ts';
import { answeredRounds, type Exchange, groupExchanges } from '../conversation/exchanges.ts';
import type { RequestView, RequestKind } from '../conversation/view.ts';
import type { LeftOut } from '../ledger/entries.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import type { MemoryState, Outcome } from '../plan/continuity.ts';
import { newestPrompt, type Placement } from '../recall/injections.ts';
import { backMark, type Batch, repeatedOmissions, repeatedOutputs } from './elisions.ts';
import {
  type ExchangeTexts,
  findOmissions,
  isProven,
  isShortText,
  KEPT_EXCHANGES,
  type Omission,
} from './omissions.ts';
import { savedTokens, type ToolOutput } from './outputs.ts';
import { asList, asRecord, asText } from '../bytes/json-fields.ts';

/** What the caller knows about a request besides its bytes. */
export interface RequestFacts {
  readonly view: RequestView;
  /** Earlier batches of this conversation, from the ledger. */
  readonly batches: readonly LeftOut[];
  /** The result of seenOutputsOf() for the view. */
  readonly outputs: readonly ToolOutput[];
  readonly textsOf: (exchange: Exchange) => ExchangeTexts;
  /** Says whether the memory has ever reported that it has the text with this digest, or is assumed to have it. */
  readonly isStored: (digest: string) => boolean;
  /**
   * True if texts may be left out for the first time. Side calls, sub-agents, compactions and token counts only repeat
   * earlier batches.
   */
  readonly takesNew: boolean;
  readonly isBound: boolean;
  /** The names (see backMark) of the texts that were sent in full when the newest bound thinking was made. */
  readonly whole?: readonly string[] | undefined;
  readonly isCacheCold: boolean;
  readonly keepRounds: number;
  /** Estimated tokens of the whole request. */
  readonly tokens: number;
  readonly inputBudget: number;
  /** The tokens that the model's window has for this request; see BatchFacts. */
  readonly room: number | undefined;
  readonly prices: CachePrices;
}

/** The facts about a request, with those that readFacts() adds. */
export interface ShorteningFacts extends RequestFacts {
  /** The result of answeredRounds() for the items. */
  readonly rounds: readonly number[];
  /**
   * The texts that earlier batches left out. `repeated` and `omitted` have those that may leave this request too.
   */
  readonly named: readonly (ToolOutput | Omission)[];
  readonly repeated: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  /** Outputs that are old enough to be left out, stored or not. */
  readonly old: readonly ToolOutput[];
  /** Exchanges that may be left out for the first time; none if a tool was called. */
  readonly omittable: readonly Omission[];
}

/** The texts that a request leaves out if the memory proves that it holds them. */
export interface Removal extends Batch {
  readonly repeated: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  /** The outcome to report if nothing is left out. */
  readonly otherwise: Outcome;
}

/** Finds the texts of a request that earlier batches left out, and those that may be left out now. */
export function readFacts(request: RequestFacts): ShorteningFacts {
  const { view, batches, outputs } = request;
  const rounds = answeredRounds(view.items);
  const omissions = mayOmit(request)
    ? findOmissions(view, groupExchanges(view.items), request.textsOf)
    : [];
  const omitted = repeatedOmissions(omissions, batches);
  const repeated = repeatedOutputs(outputs, batches);
  const whole = new Set(request.isBound ? request.whole : []);
  const staysOut = (text: ToolOutput | Omission): boolean => !whole.has(backMark(text));
  const canRead = canReadMemory(view);
  return {
    ...request,
    rounds,
    named: [...repeated, ...omitted],
    repeated: [...repeated].filter(request.isBound ? staysOut : mayLeave),
    omitted: [...omitted].filter(staysOut),
    old: oldOutputs(request, rounds).filter((output) => !repeated.has(output)),
    omittable: callsTools(view)
      ? []
      : omissions.filter((it) => !omitted.has(it) && (canRead || isShortText(it))),
  };
}

/** Says whether exchanges may be left out. If a tool was called, only those that earlier batches left out may be. */
export function mayOmit({ view, batches }: Pick<RequestFacts, 'view' | 'batches'>): boolean {
  return batches.length > 0 || !callsTools(view);
}

function callsTools({ items }: RequestView): boolean {
  return items.some(({ toolCalls }) => toolCalls.length > 0);
}

/** Returns the texts to leave out if the memory proves them. In a bound conversation earlier batches need no proof. */
export function removalOf(facts: ShorteningFacts): Removal {
  const { repeated, omitted, old, omittable, takesNew } = facts;
  const again = { repeated, omitted, batch: [], omissions: [] };
  if (!takesNew) return { ...again, otherwise: 'side_call' };
  const batch = old.filter(({ digest }) => facts.isStored(digest));
  const decision = decide(batchFacts(facts, { batch, omissions: omittable }));
  if (decision === 'leaves') {
    return { ...again, batch, omissions: omittable, otherwise: 'not_worth_it' };
  }
  if (decision === 'within_budget' || batch.length + omittable.length > 0) {
    return { ...again, otherwise: decision };
  }
  if (old.length > 0) return { ...again, otherwise: 'not_stored' };
  return { ...again, otherwise: isShort(facts) ? 'nothing_old' : 'protected' };
}

export function batchFacts(facts: ShorteningFacts, { batch, omissions }: Batch): BatchFacts {
  const { view, rounds, repeated, omitted, keepRounds } = facts;
  const gone = sum(repeated.map(savedTokens)) + sum(omitted.map(({ tokens }) => tokens));
  const carriedOutputs = batch.map((output) => {
    const later = countFrom(rounds, output.item + 1);
    return savedTokens(output) * Math.max(0, later - keepRounds);
  });
  const exchanges = omissions.length === 0 ? [] : groupExchanges(view.items);
  const starts = exchanges.map(({ start }) => view.items[start]?.start ?? 0);
  const carriedExchanges = omissions.map(({ span, tokens }) => {
    const later = countFrom(starts, span.end);
    return tokens * Math.max(0, later - KEPT_EXCHANGES);
  });
  return {
    isBound: facts.isBound,
    isCacheCold: facts.isCacheCold,
    wholeTokens: facts.tokens,
    inputBudget: facts.inputBudget,
    room: facts.room,
    messages: (view.items.at(-1)?.soFar.tokens ?? 0) - gone,
    gain: sum(batch.map(savedTokens)) + sum(omissions.map(({ tokens }) => tokens)),
    carried: sum(carriedOutputs) + sum(carriedExchanges),
    prices: facts.prices,
  };
}

/** Says whether no exchange and no round is old enough to be left out. */
export function isShort({
  view,
  rounds,
  keepRounds,
}: Pick<ShorteningFacts, 'view' | 'rounds' | 'keepRounds'>): boolean {
  const exchanges = (view.items.at(-1)?.soFar.exchange.number ?? -1) + 1;
  return exchanges <= KEPT_EXCHANGES && rounds.length <= keepRounds;
}

export interface Settled extends Batch {
  /** All outputs and exchanges that are left out. Those in `batch` and `omissions` leave for the first time. */
  readonly elided: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  readonly outcome: Outcome;
}

/**
 * Decides finally what is left out. `proven`: the digests of texts that the memory has proved, in this request or in an
 * earlier one whose proof still counts. In a bound conversation earlier batches stay out without a proof, because the
 * provider checks the prefix of thinking.
 */
export function settle(
  facts: ShorteningFacts,
  removal: Removal,
  proven: ReadonlySet<string>,
): Settled {
  const isHeld = ({ digest }: ToolOutput): boolean => proven.has(digest);
  const areHeld = (omission: Omission): boolean => isProven(omission, proven);
  const repeated = facts.isBound ? removal.repeated : removal.repeated.filter(isHeld);
  const gone = facts.isBound ? removal.omitted : removal.omitted.filter(areHeld);
  const held = {
    batch: removal.batch.filter(isHeld),
    omissions: removal.omissions.filter(areHeld),
  };
  // The memory may prove only a part of the texts, which may be too small for a batch.
  const isAny = held.batch.length + held.omissions.length > 0;
  const leaves = isAny && decide(batchFacts(facts, held)) === 'leaves';
  const { batch, omissions } = leaves ? held : { batch: [], omissions: [] };
  const elided = [...repeated, ...batch];
  const omitted = [...gone, ...omissions];
  return { elided, omitted, batch, omissions, outcome: outcomeOf(removal, { elided, omitted }) };
}

function outcomeOf(
  removal: Removal,
  { elided, omitted }: Pick<Settled, 'elided' | 'omitted'>,
): Outcome {
  if (omitted.length > 0) return 'exchanges_left';
  if (elided.length > 0) return 'outputs_left';
  const { repeated, batch, omissions, omitted: gone, otherwise } = removal;
  const wasAsked = repeated.length + batch.length + omissions.length + gone.length > 0;
  return wasAsked ? 'not_stored' : otherwise;
}

/**
 * Returns why no exchange may be left out of a request with this recall; undefined if exchanges may. They may only if
 * the newest prompt has a block that quotes memories.
 */
export function recallObstacle(
  view: RequestView,
  recalled: { readonly placements: readonly Placement[]; readonly state: MemoryState },
): Outcome | undefined {
  if (recalled.state.startsWith('degraded_')) return 'recall_degraded';
  const newest = newestPrompt(view);
  const hasRecall = recalled.placements.some(
    ({ item, block }) => item === newest && tellsExchanges(block),
  );
  return hasRecall ? undefined : 'recall_empty';
}

// Fewest tokens of an output that may be left out: a stub saves little of a smaller one.
const OUTPUT_TOKENS_MIN = 120;
/**
 * Tools whose outputs are never left out. The model soon quotes two in three of them, and without the output it would
 * call the tool again.
 */
const KEPT_TOOLS: ReadonlySet<string> = new Set(['task', 'agent', 'glob', 'spawn_agent', 'wait']);
/**
 * How many times the model may have read a left-out text again so that svc still leaves it out once more. A text that
 * it reads a third time is in use. On 96 real sessions, 0 costs 3 to 7 % more than 2, and a higher number saves
 * nothing.
 */
const LEAVES_AGAIN_MAX = 2;

/** Says whether an output may be left out. It checks neither the output's age nor whether it has a secret. */
export function isElidable(output: ToolOutput, tokensMin = OUTPUT_TOKENS_MIN): boolean {
  return output.tokens >= tokensMin && output.isStorable && mayLeave(output);
}

/**
 * Says whether the tool, the number of readings and the client allow an output to be left out. The result depends only
 * on the items up to the output, and on whether the client refers to the output later (see `isClients`).
 */
function mayLeave({ isClients, timesRead, tool }: ToolOutput): boolean {
  return !isClients && timesRead <= LEAVES_AGAIN_MAX && !isKeptTool(tool);
}

export function isKeptTool(tool: string): boolean {
  return KEPT_TOOLS.has(tool.toLowerCase());
}

/** Returns the outputs before the last `keepRounds` rounds that may be left out. */
function oldOutputs(
  { view, outputs, keepRounds }: Pick<RequestFacts, 'view' | 'outputs' | 'keepRounds'>,
  rounds: readonly number[],
): readonly ToolOutput[] {
  const before = keptFrom(view, rounds, keepRounds);
  return outputs.filter((output) => output.item < before && isElidable(output));
}

/** Returns the index of the first item whose outputs stay, because it is in the last `keepRounds` rounds. */
export function keptFrom(
  { items }: RequestView,
  rounds: readonly number[],
  keepRounds: number,
): number {
  // The newest item always stays, because the model has not seen it yet.
  const kept = rounds.slice(Math.max(0, rounds.length - keepRounds));
  return Math.min(items.length - 1, ...kept);
}

/** Returns how many numbers of an ascending list are `least` or more. */
function countFrom(ascending: readonly number[], least: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return ascending.length - low;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Words in the names of tools that can run `svc memory get`. */
const SHELLS: ReadonlySet<string> = new Set(['bash', 'shell', 'powershell', 'terminal', 'exec']);
/** Matches names of other tools that can run `svc memory get`, and those of the tools of `svc mcp`. */
const READERS =
  /(?:^|[^a-z])(?:(?:exec|execute|run)_(?:shell_|terminal_)?commands?|memory_(?:get|search))$/;

/** Says whether a request offers the model a tool that can read the memory. */
export function canReadMemory({ shell }: Pick<RequestView, 'shell'>): boolean {
  return asList(shell.value['tools']).some(reads);
}

/** Says whether a tool can read the memory. Its name may be in the tool, in its `function`, or in its type. */
function reads(tool: unknown): boolean {
  const { name, type, function: own } = asRecord(tool);
  return [name, type, asRecord(own)['name']].some((value) => {
    const words = asText(value)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
      .toLowerCase();
    return READERS.test(words) || words.split(/[^a-z]+/).some((word) => SHELLS.has(word));
  });
}

/**
 * Decides when old texts are left out of a conversation, by the rule of renting or buying. Each request that has them
 * pays rent: the price of reading them from the provider's cache. Leaving them out costs once: the provider must write
 * the rest of the messages to its cache again. When the rent so far equals that cost, all old texts are left out at
 * once. So svc pays at most about twice the price of the best decision, which would have to know how long the
 * conversation lasts.
 * Outputs are left out in batches and stay out. Leaving out one output per request would break the cache each time: on
 * real sessions that costs 137 to 163 % of the price without svc.
 */

/** The facts that decide about a batch. Tokens are svc's estimates; prices are in units of one input token. */
export interface BatchFacts {
  /** True if the provider binds thinking to its prefix, so that nothing before it may change. */
  readonly isBound: boolean;
  /** True if the provider's cache has expired, so that everything is written again anyway. */
  readonly isCacheCold: boolean;
  /** Tokens of the whole request. */
  readonly wholeTokens: number;
  /** If the request has no more tokens than this, nothing new is left out. */
  readonly inputBudget: number;
  /** The tokens that the model's window has for this request, as the provider counts them; undefined if unknown. */
  readonly room: number | undefined;
  /** Tokens of the messages if no new batch is made. */
  readonly messages: number;
  /** Tokens that a new batch saves in each later request. */
  readonly gain: number;
  /** Tokens that were old enough to leave out but were sent, summed over the requests so far. */
  readonly carried: number;
  readonly prices: CachePrices;
}

export type Decision = 'leaves' | 'protected' | 'within_budget' | 'near_window' | 'not_worth_it';

// Fewest tokens of a batch: a smaller one saves less than its stubs and later look-ups cost.
const GAIN_MIN = 1_024;
// Share of the window above which no batch is made: the client would compact before the batch has paid for itself.
const ROOM_SHARE_MAX = 0.8;

/** Decides whether all texts that are old enough are left out now. */
export function decide(facts: BatchFacts): Decision {
  const { gain, messages, prices, room = Infinity } = facts;
  if (facts.wholeTokens <= facts.inputBudget) return 'within_budget';
  if (messages * prices.tokenRatio > ROOM_SHARE_MAX * room) return 'near_window';
  if (gain < GAIN_MIN || !pays(facts)) return 'not_worth_it';
  return facts.isBound ? 'protected' : 'leaves';
}

/** Says whether the rent so far has reached the cost of leaving the texts out. With a cold cache that costs nothing. */
function pays({ isCacheCold, gain, messages, carried, prices }: BatchFacts): boolean {
  if (isCacheCold) return true;
  // An unknown price of a cache read may be as low as a hundredth of the full price. A batch would then hardly ever
  // pay, so none is made.
  if (!prices.isKnown) return false;
  const rent = prices.read * carried;
  const cost = (prices.write - prices.read) * Math.max(0, messages - gain);
  return rent >= cost;
}

/** What svc knows about a request before it reads the request's old texts. */
export interface SightFacts {
  /** Why nothing may be left out of this request; undefined if something may. */
  readonly obstacle: Outcome | undefined;
  readonly kind: RequestKind;
  readonly isOverBudget: boolean;
  /** True if this conversation, or another one with the same beginning, has earlier batches. */
  readonly hasBatches: boolean;
  /** True if the ledger answered or was not asked. Otherwise it is unknown whether earlier batches exist. */
  readonly isLedgerRead: boolean;
  /** True if the mode shortens; in shadow mode svc only measures. */
  readonly isReal: boolean;
  /** True if the provider refused a shortened request of this conversation within the last hour. */
  readonly isRefused: boolean;
  /**
   * True if reading the old texts can have a result. The memory may have them, because svc has checked an earlier
   * request of the conversation or left something out. If the cache is cold, another process may have stored them. If
   * the conversation is bound, svc only measures them.
   */
  readonly isKnown: boolean;
  /** True if no exchange and no round is old enough to be left out. It is set only if `isKnown` is false. */
  readonly isShort: boolean;
}

/** Returns 'reads' if svc reads the old texts of a request, and otherwise the outcome to report. */
export function decideReading(facts: SightFacts): Outcome | 'reads' {
  const { obstacle, kind, hasBatches, isReal } = facts;
  if (obstacle !== undefined) return obstacle;
  const isDue = facts.isOverBudget && kind === 'main';
  if (!isDue && !hasBatches) {
    if (kind === 'main') return 'within_budget';
    return kind === 'compaction' ? 'compaction' : 'side_call';
  }
  if (isReal && facts.isRefused) return 'provider_refused';
  // Without the ledger svc does not know which texts it left out before. Leaving out others would change the prefix.
  if (!hasBatches && !facts.isLedgerRead) return 'unanswered';
  // At a conversation's first request the memory most likely has none of its texts, so do not read a long history.
  if (isReal && !facts.isKnown) return facts.isShort ? 'nothing_old' : 'not_stored';
  return 'reads';
}
