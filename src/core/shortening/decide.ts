/**
 * Decides what a request leaves out. Pure, in three steps that the proxy, its warm-up and the bench
 * share. `readFacts` reads the request, `decide` names what is worth a proof, and `settle` takes
 * what the memory has proven. The same request, ledger and proofs give the same answer.
 */
import { tellsExchanges } from '../recall/agent-block.ts';
import { type Exchange, groupExchanges } from '../conversation/exchanges.ts';
import type { RequestView } from '../conversation/view.ts';
import type { LeftOut } from '../ledger/entries.ts';
import type { Outcome } from '../plan/continuity.ts';
import type { MemoryState } from '../plan/memory-state.ts';
import { newestPrompt, type Placement } from '../recall/injections.ts';
import { type Batch, isWholeAgain, repeatedOmissions, repeatedOutputs } from './elisions.ts';
import {
  type ExchangeTexts,
  findOmissions,
  isProven,
  isShortText,
  KEPT_EXCHANGES,
  type Omission,
} from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import { canReadMemory } from './reading-tools.ts';
import {
  answeredRounds,
  findCandidates,
  isBatch,
  mayLeave,
  readyOf,
  type ShorteningFacts,
} from './shortening.ts';

/**
 * The facts that the request itself does not show; the caller knows them. `readFacts` reads the
 * rest.
 */
export interface FactsRequest extends Pick<
  ShorteningFacts,
  | 'isStored'
  | 'isRefused'
  | 'isCacheCold'
  | 'keepRounds'
  | 'inputBudget'
  | 'prices'
  | 'fill'
  | 'isCompaction'
  | 'isOver'
> {
  readonly view: RequestView;
  /** Estimated tokens of the whole request. */
  readonly tokens: number;
  /** Earlier batches of this conversation, from the ledger. */
  readonly batches: readonly LeftOut[];
  /** seenOutputsOf() of the view. */
  readonly outputs: readonly ToolOutput[];
  readonly textsOf: (exchange: Exchange) => ExchangeTexts;
}

export function readFacts(request: FactsRequest): ShorteningFacts {
  const { view, batches, outputs } = request;
  const exchanges = groupExchanges(view.items);
  const omissions = findOmissions(view, exchanges, request.textsOf);
  const omitted = repeatedOmissions(omissions, batches);
  const canRead = canReadMemory(view);
  return {
    items: view.items,
    exchanges,
    outputs,
    repeated: repeatedOutputs(outputs, batches),
    omittable: omissions.filter((it) => !omitted.has(it) && (canRead || isShortText(it))),
    omitted: [...omitted],
    isStored: request.isStored,
    isRefused: request.isRefused,
    isCacheCold: request.isCacheCold,
    keepRounds: request.keepRounds,
    tokens: request.tokens,
    inputBudget: request.inputBudget,
    prices: request.prices,
    fill: request.fill,
    isWholeAgain: isWholeAgain(batches),
    isCompaction: request.isCompaction,
    isOver: request.isOver,
  };
}

/** The texts that this request may leave out once the memory has proven that it holds them. */
export interface Removal extends Batch {
  /** Left out before: they stay out. `batch` and `omissions` leave from this request on. */
  readonly repeated: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  /** Every text left out before comes back with this request, for good. */
  readonly comesBack: boolean;
  /** The outcome to report when in the end nothing is left out. */
  readonly otherwise: Outcome;
}

const NOTHING = { repeated: [], omitted: [], batch: [], omissions: [], comesBack: false } as const;

/** Names what is worth a proof: the memory is not asked about what would stay anyway. */
export function decide(facts: ShorteningFacts): Removal {
  const { fill, isCompaction, omitted, omittable } = facts;
  const otherwise = isCompaction ? 'compaction' : 'near_window';
  if (facts.isWholeAgain || (isCompaction && !fill.mayNotFit)) return { ...NOTHING, otherwise };
  const repeated = facts.outputs.filter((output) => facts.repeated.has(output) && mayLeave(output));
  if (fill.isAtEdge && !isCompaction && repeated.length + omitted.length > 0) {
    return { ...NOTHING, comesBack: true, otherwise };
  }
  const found = { ...NOTHING, repeated, omitted };
  if (!fill.hasRoom || isCompaction) return { ...found, otherwise };
  if (facts.tokens <= facts.inputBudget) return { ...found, otherwise: 'within_budget' };
  if (facts.isOver) return { ...found, otherwise: 'not_worth_it' };
  const old = findCandidates(facts);
  const ready = readyOf(facts, old);
  if (isBatch(facts, ready)) return { ...found, ...ready, otherwise: 'not_worth_it' };
  if (ready.batch.length + omittable.length > 0) return { ...found, otherwise: 'not_worth_it' };
  if (old.length > 0) return { ...found, otherwise: 'not_stored' };
  return { ...found, otherwise: isShort(facts) ? 'nothing_old' : 'protected' };
}

/** Nothing of the conversation is old enough to be left out, of whatever kind it is. */
export function isShort(facts: Pick<ShorteningFacts, 'exchanges' | 'keepRounds'>): boolean {
  const isRecent = facts.exchanges.length <= KEPT_EXCHANGES;
  return isRecent && answeredRounds(facts).length <= facts.keepRounds;
}

/** The texts that are left out, and the outcome to report. */
export interface Settled extends Batch {
  /** All that is left out; `batch` and `omissions` are what leaves for the first time. */
  readonly elided: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  readonly outcome: Outcome;
}

/** `proven`: the digests that the memory has proven in this very request. */
export function settle(
  facts: ShorteningFacts,
  removal: Removal,
  proven: ReadonlySet<string>,
): Settled {
  const repeated = removal.repeated.filter(({ digest }) => proven.has(digest));
  const gone = removal.omitted.filter((omission) => isProven(omission, proven));
  const batch = removal.batch.filter(({ digest }) => proven.has(digest));
  const omissions = removal.omissions.filter((omission) => isProven(omission, proven));
  // The memory may prove less than was wanted, and the rest may not be worth a batch any more.
  const added = isBatch(facts, { batch, omissions }) ? { batch, omissions } : NOTHING;
  const elided = [...repeated, ...added.batch];
  const omitted = [...gone, ...added.omissions];
  const { batch: left, omissions: out } = added;
  const outcome = outcomeOf(removal, { elided, omitted });
  return { elided, omitted, batch: left, omissions: out, outcome };
}

function outcomeOf(
  removal: Removal,
  { elided, omitted }: Pick<Settled, 'elided' | 'omitted'>,
): Outcome {
  if (omitted.length > 0) return 'exchanges_left';
  if (elided.length > 0) return 'outputs_left';
  const { repeated, batch, omissions, omitted: gone, otherwise } = removal;
  const wasAsked = repeated.length + batch.length + omissions.length + gone.length > 0;
  return wasAsked && otherwise !== 'compaction' ? 'not_stored' : otherwise;
}

/**
 * Says why exchanges may not leave a request with this recall; undefined when they may. Only blocks
 * at the newest prompt can replace them: an earlier prompt's block answers another question.
 */
export function recallObstacle(
  view: RequestView,
  recalled: { readonly placements: readonly Placement[]; readonly state: MemoryState },
): Outcome | undefined {
  if (recalled.state.startsWith('degraded_')) return 'recall_degraded';
  const newest = newestPrompt(view);
  // A brief only names sessions and does not quote them.
  const hasRecall = recalled.placements.some(
    ({ item, block }) => item === newest && tellsExchanges(block),
  );
  return hasRecall ? undefined : 'recall_empty';
}
