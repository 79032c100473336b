/**
 * Finds what may be left out of a request, asks `decide` whether to do it now, and settles what is really left out
 * once the memory has proven which texts it has. The proxy and the bench use the same functions.
 */
import { tellsExchanges } from '../recall/own-blocks.ts';
import { answeredRounds, type Exchange, groupExchanges } from '../conversation/exchanges.ts';
import type { RequestView } from '../conversation/view.ts';
import type { LeftOut } from '../ledger/entries.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import type { MemoryState, Outcome } from '../plan/continuity.ts';
import { newestPrompt, type Placement } from '../recall/injections.ts';
import { type BatchFacts, decide } from './decide.ts';
import { backMark, type Batch, repeatedOmissions, repeatedOutputs } from './elisions.ts';
import {
  type ExchangeTexts,
  findOmissions,
  isProven,
  isShortText,
  KEPT_EXCHANGES,
  type Omission,
} from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import { savedTokens } from './replacements.ts';
import { asList, asRecord, asText } from '../bytes/json-fields.ts';

/** What the caller knows about a request besides its bytes. */
export interface RequestFacts {
  readonly view: RequestView;
  /** Earlier batches of this conversation, from the ledger. */
  readonly batches: readonly LeftOut[];
  /** The result of seenOutputsOf() for the view. */
  readonly outputs: readonly ToolOutput[];
  readonly textsOf: (exchange: Exchange) => ExchangeTexts;
  /** Says whether the memory has once reported that it has the text with this digest. */
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
  /** The window for this request, as in BatchFacts. */
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

/** Returns the texts to leave out. The memory must prove that it has them. */
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
 * Decides finally what is left out. `proven`: the digests of texts that the memory has proved in this request. In a
 * bound conversation earlier batches stay out without a proof, because the provider checks the prefix of thinking.
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
 * it reads a third time is in use. On 96 real sessions, 0 costs 3 to 7 % more than 2, and a higher number saves nothing.
 */
const LEAVES_AGAIN_MAX = 2;

/** Says whether an output may be left out once it is old, if it has no secret. */
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
