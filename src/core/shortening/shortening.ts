/**
 * Decides which tool outputs and exchanges a request leaves out. Pure: the same request, the same ledger and the
 * same proofs give the same answer.
 *
 * Outputs go in batches and stay gone. A window that slides by one output a request breaks the
 * provider's prompt cache each time: measured on real sessions it costs 111 to 154 % of doing nothing.
 */
import type { Edit } from '../plan/edits.ts';
import type { Batch } from './elisions.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import { isProven, type Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import { batchProfit } from './pricing.ts';
import { NEWEST_FORM, type StubForm, stubTokens, writeNote, writeStub } from './stubs.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import type { Item } from '../conversation/view.ts';
import type { Fill } from './window.ts';

/** What the request says, and what was done to this conversation before. */
export interface ShorteningFacts {
  readonly items: readonly Item[];
  readonly exchanges: readonly Exchange[];
  readonly outputs: readonly ToolOutput[];
  /** What earlier requests of this conversation left out, by the ledger, and the form of its stubs. */
  readonly repeated: ReadonlyMap<ToolOutput, StubForm>;
  /** Whole exchanges that may be left out, and are not yet. */
  readonly omittable: readonly Omission[];
  /** Those that earlier requests of this conversation left out, by the ledger. */
  readonly omitted: readonly Omission[];
  /** Whether the memory once said that it holds this digest. */
  readonly isStored: (digest: string) => boolean;
  readonly isCacheCold: boolean;
  readonly keepRounds: number;
  readonly prices: CachePrices;
  /** How much of the model's window the whole would fill. */
  readonly fill: Fill;
  /** All came back in an earlier request: nothing is left out any more. */
  readonly isWholeAgain: boolean;
  /** The client compacts: its history goes whole where it fits, and is never shortened further. */
  readonly isCompaction: boolean;
}

/** What this request may leave out once the memory has proven that it holds it. */
export interface Wanted {
  /** Left out before: they stay out. */
  readonly repeated: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
  /** Left out from this request on; empty when a batch does not pay yet. */
  readonly batch: readonly ToolOutput[];
  readonly omissions: readonly Omission[];
  /** What was left out comes back with this request, for good. */
  readonly comesBack: boolean;
  /** Why there is no batch, and nothing to repeat either. */
  readonly reason: 'nothing_old' | 'not_stored' | 'not_worth_it' | 'near_window';
}

// Under this a stub saves little more than itself.
const OUTPUT_TOKENS_MIN = 120;
/**
 * Two in three of what these answer are quoted soon, and leaving them out has them fetched again. After
 * LATE_ROUNDS it is fewer than half, as with any other large output.
 */
const LATE_TOOLS: ReadonlySet<string> = new Set(['task', 'agent', 'glob', 'spawn_agent', 'wait']);
const LATE_ROUNDS = 12;

// From 2,000 to 8,000 the measured cost is the same; below, batches become frequent.
const BATCH_TOKENS_MIN = 4_096;
// On a cold cache all is written anew anyway, and a batch costs nothing.
const COLD_BATCH_TOKENS_MIN = 1_024;

/**
 * A text that was left out and read again may leave again, at most so often. Each time but the last
 * the model was done with it soon; one that it reads a third time it works with. Measured on 96 real
 * sessions with every need fetched: never again costs 3 to 7 % more, and more often saves nothing.
 */
const LEAVES_AGAIN_MAX = 2;

/** Whether an output may ever be left out, whatever its age. A secret in it is looked for later. */
export function isElidable(output: ToolOutput): boolean {
  return output.tokens >= OUTPUT_TOKENS_MIN && output.isStorable && mayLeave(output);
}

/** Depends on what precedes the output and on nothing behind it: what left stays out. */
function mayLeave({ isClients, timesRead }: ToolOutput): boolean {
  return !isClients && timesRead <= LEAVES_AGAIN_MAX;
}

/** Elidable outputs of rounds older than the last `keepRounds`. */
export function findCandidates(facts: ShorteningFacts): readonly ToolOutput[] {
  const answered = answeredRounds(facts);
  // Keeping none, everything but the newest item may go: the model has not seen that one yet.
  const endBefore = (kept: number): number =>
    Math.min(facts.items.length - 1, ...answered.slice(Math.max(0, answered.length - kept)));
  const before = endBefore(facts.keepRounds);
  const lateBefore = endBefore(Math.max(facts.keepRounds, LATE_ROUNDS));
  return facts.outputs.filter((output) => {
    const isOld = output.item < (isLate(output) ? lateBefore : before);
    return isOld && !facts.repeated.has(output) && isElidable(output);
  });
}

function isLate({ tool }: ToolOutput): boolean {
  return LATE_TOOLS.has(tool.toLowerCase());
}

/** For each round that is answered, the item where its answers begin. */
function answeredRounds({ exchanges }: ShorteningFacts): readonly number[] {
  const rounds = exchanges.flatMap((exchange) => exchange.rounds);
  return rounds.flatMap(({ results }) => (results.length > 0 ? [Math.min(...results)] : []));
}

const NOTHING = { repeated: [], omitted: [], batch: [], omissions: [] } as const;
const NEAR_WINDOW = { ...NOTHING, comesBack: false, reason: 'near_window' } as const;

/** What is worth a proof: the memory is not asked about what would not be left out anyway. */
export function wantedOutputs(facts: ShorteningFacts): Wanted {
  const { fill, isCompaction } = facts;
  if (facts.isWholeAgain || (isCompaction && !fill.mayNotFit)) return NEAR_WINDOW;
  const repeated = facts.outputs.filter((output) => facts.repeated.has(output) && mayLeave(output));
  const { omitted, omittable } = facts;
  if (fill.isAtEdge && !isCompaction && repeated.length + omitted.length > 0) {
    return { ...NEAR_WINDOW, comesBack: true };
  }
  if (!fill.hasRoom || isCompaction) return { ...NEAR_WINDOW, repeated, omitted };
  const old = findCandidates(facts);
  const stored = old.filter(({ digest }) => facts.isStored(digest));
  const found = { ...NOTHING, repeated, omitted, comesBack: false } as const;
  const all = { batch: stored, omissions: omittable };
  if (isBatch(facts, all)) return { ...found, ...all, reason: 'not_worth_it' };
  if (stored.length + omittable.length > 0) return { ...found, reason: 'not_worth_it' };
  return { ...found, reason: old.length > 0 ? 'not_stored' : 'nothing_old' };
}

export interface Chosen extends Batch {
  /** All that is left out; `batch` and `omissions` are what goes for the first time. */
  readonly elided: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
}

/** What is left out, given the digests that the memory has proven in this very request. */
export function chooseOutputs(
  facts: ShorteningFacts,
  wanted: Wanted,
  proven: ReadonlySet<string>,
): Chosen {
  const repeated = wanted.repeated.filter(({ digest }) => proven.has(digest));
  const omitted = wanted.omitted.filter((omission) => isProven(omission, proven));
  const batch = wanted.batch.filter(({ digest }) => proven.has(digest));
  const omissions = wanted.omissions.filter((omission) => isProven(omission, proven));
  // What is proven may be less than what was wanted, and then not be worth a batch any more.
  if (!isBatch(facts, { batch, omissions })) {
    return { elided: repeated, omitted, batch: [], omissions: [] };
  }
  return {
    elided: [...repeated, ...batch],
    omitted: [...omitted, ...omissions],
    batch,
    omissions,
  };
}

/** Tokens that leaving this output out saves in every request. */
export function savedTokens(output: ToolOutput, form: StubForm = NEWEST_FORM): number {
  return Math.max(0, output.tokens - stubTokens(output, form));
}

/** What stands for an output that is left out. */
export interface Replacement {
  readonly output: ToolOutput;
  readonly text: string;
  /** Estimated tokens that the request is shorter by. */
  readonly saved: number;
}

/** How the stubs of a request are written. */
export interface StubStyle {
  /** Where the left-out texts are files; undefined where none are. */
  readonly outputFolder: string | undefined;
  /** By the ledger; what leaves for the first time gets the newest form. */
  readonly forms: ReadonlyMap<ToolOutput, StubForm>;
}

/** In the order of the body. The first one also tells the model what such lines are. */
export function replacementsOf(
  elided: readonly ToolOutput[],
  { outputFolder, forms }: StubStyle,
): readonly Replacement[] {
  const inOrder = elided.toSorted((one, other) => one.content.start - other.content.start);
  return inOrder.map((output, at) => {
    const form = forms.get(output) ?? NEWEST_FORM;
    const stub = writeStub(output, form);
    if (at > 0) return { output, text: stub, saved: savedTokens(output, form) };
    const text = `${stub}${writeNote(outputFolder, form)}`;
    return { output, text, saved: Math.max(0, output.tokens - estimateTextTokens(text)) };
  });
}

/** The bytes of each output's text, and no others, become those of its stub. */
export function elisionEdits(replacements: readonly Replacement[]): readonly Edit[] {
  return replacements.map(({ output, text }) => ({
    ...output.content,
    bytes: Buffer.from(JSON.stringify(text).slice(1, -1)),
  }));
}

function isBatch(facts: ShorteningFacts, { batch, omissions }: Batch): boolean {
  const gain =
    sum(batch.map((output) => savedTokens(output))) + sum(omissions.map(({ tokens }) => tokens));
  if (facts.isCacheCold) return gain >= COLD_BATCH_TOKENS_MIN;
  if (gain < BATCH_TOKENS_MIN) return false;
  const whole = sum(facts.items.map(({ tokens }) => tokens));
  const gone =
    sum([...facts.repeated].map(([output, form]) => savedTokens(output, form))) +
    sum(facts.omitted.map(({ tokens }) => tokens));
  const messages = whole - gone;
  const { exchanges, prices, fill } = facts;
  const requests = exchanges.length + sum(exchanges.map(({ rounds }) => rounds.length));
  const { growthLeft } = fill;
  const isFirst = facts.repeated.size + facts.omitted.length === 0;
  const comingBack = isFirst ? whole : 0;
  const waited = isFirst ? undefined : waitedTokens(facts, batch);
  return batchProfit({ gain, messages, requests, growthLeft, comingBack, waited, prices }) > 0;
}

/** Tokens times rounds for which these outputs could have been left out, and were sent. */
function waitedTokens(facts: ShorteningFacts, batch: readonly ToolOutput[]): number {
  const answered = answeredRounds(facts);
  const roundsWaited = (output: ToolOutput): number => {
    const since = answered.filter((item) => item > output.item).length;
    const kept = isLate(output) ? Math.max(facts.keepRounds, LATE_ROUNDS) : facts.keepRounds;
    return Math.max(0, since - kept);
  };
  return sum(batch.map((output) => savedTokens(output) * roundsWaited(output)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
