/**
 * The rules for what may leave a request, and when. `decide.ts` applies them.
 *
 * Outputs leave in batches and stay out. A window that slides by one output a request breaks the
 * provider's prompt cache each time: measured on real sessions it costs 111 to 154 % of doing
 * nothing.
 */
import type { Edit } from '../plan/edits.ts';
import type { Batch } from './elisions.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import type { Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import { batchProfit } from './pricing.ts';
import { NEWEST_FORM, type StubForm, stubOf, stubTokens, writeNote } from './stubs.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import type { Item } from '../conversation/view.ts';
import type { Fill } from './window.ts';

/** Facts about the request, and about what earlier requests of this conversation left out. */
export interface ShorteningFacts {
  readonly items: readonly Item[];
  readonly exchanges: readonly Exchange[];
  readonly outputs: readonly ToolOutput[];
  /** Outputs that earlier requests left out, from the ledger, with the form of their stubs. */
  readonly repeated: ReadonlyMap<ToolOutput, StubForm>;
  /** Whole exchanges that may be left out, and are not yet. */
  readonly omittable: readonly Omission[];
  /** Those that earlier requests of this conversation left out, by the ledger. */
  readonly omitted: readonly Omission[];
  /** Whether the memory once said that it holds this digest. */
  readonly isStored: (digest: string) => boolean;
  /** The memory will never hold this digest: it has a secret, or the person has forgotten it. */
  readonly isRefused: (digest: string) => boolean;
  readonly isCacheCold: boolean;
  readonly keepRounds: number;
  /** Estimated tokens of the whole request, and the number above which it is shortened. */
  readonly tokens: number;
  readonly inputBudget: number;
  readonly prices: CachePrices;
  /** How much of the model's window the whole would fill. */
  readonly fill: Fill;
  /** All came back in an earlier request: nothing is left out any more. */
  readonly isWholeAgain: boolean;
  /** The client compacts: its history goes whole where it fits, and is never shortened further. */
  readonly isCompaction: boolean;
  /** The meter has found this conversation dearer than direct: no batch is added. */
  readonly isOver: boolean;
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
// On a cold cache everything is written again anyway, so a batch costs nothing.
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
export function mayLeave({ isClients, timesRead }: ToolOutput): boolean {
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
export function answeredRounds({
  exchanges,
}: Pick<ShorteningFacts, 'exchanges'>): readonly number[] {
  const rounds = exchanges.flatMap((exchange) => exchange.rounds);
  return rounds.flatMap(({ results: [first] }) => (first === undefined ? [] : [first]));
}

/**
 * The outputs and exchanges that may leave together now. A batch on a warm cache writes the
 * messages again, so it waits until the memory holds nearly all that is old enough.
 *
 * Exchanges wait until the cache is cold: in real sessions one answer in five quotes an exchange
 * that was left out. A chat without tools has nothing else to leave out, so its exchanges leave by
 * the price of outputs, the oldest first.
 */
export function readyOf(facts: ShorteningFacts, old: readonly ToolOutput[]): Batch {
  const stored = old.filter(({ digest }) => facts.isStored(digest));
  if (facts.isCacheCold) return { batch: stored, omissions: facts.omittable };
  if (stored.length < old.length && isWaiting(facts, old, stored))
    return { batch: [], omissions: [] };
  const hasTools = facts.outputs.length > 0;
  return { batch: stored, omissions: hasTools ? [] : downToHalf(facts) };
}

// One output that the memory cannot take does not hold up all the others.
const PENDING_SHARE_MAX = 0.25;

/** More than a share of what is old enough is still on its way into the memory. */
function isWaiting(
  { isRefused }: ShorteningFacts,
  old: readonly ToolOutput[],
  stored: readonly ToolOutput[],
): boolean {
  const held = new Set(stored);
  let [pending, all] = [0, 0];
  for (const output of old) {
    const isHeld = held.has(output);
    if (!isHeld && isRefused(output.digest)) continue;
    const saved = savedTokens(output);
    all += saved;
    if (!isHeld) pending += saved;
  }
  return pending > PENDING_SHARE_MAX * all;
}

/** The oldest exchanges, as many as leave the request at least half of its budget. */
function downToHalf({ tokens, inputBudget, omitted, omittable }: ShorteningFacts): Omission[] {
  let left = tokens - sum(omitted.map((omission) => omission.tokens));
  const leaving: Omission[] = [];
  for (const omission of omittable) {
    left -= omission.tokens;
    if (left < inputBudget / 2) break;
    leaving.push(omission);
  }
  return leaving;
}

/** Tokens that leaving this output out saves in every request. */
export function savedTokens(output: ToolOutput, form: StubForm = NEWEST_FORM): number {
  return Math.max(0, output.tokens - stubTokens(output, form));
}

/** The stub that replaces an output. */
export interface Replacement {
  readonly output: ToolOutput;
  readonly text: string;
  /** The text in escaped form, as inside the quotes of a JSON string. */
  readonly bytes: Uint8Array;
  /** Estimated tokens that the request is shorter by. */
  readonly saved: number;
}

/** How the stubs of a request are written. */
export interface StubStyle {
  /** Where the left-out texts are files; undefined where none are. */
  readonly outputFolder: string | undefined;
  /** Where a service answers for a reference; undefined on a person's own machine. */
  readonly objectsUrl?: string | undefined;
  /** By the ledger; what leaves for the first time gets the newest form. */
  readonly forms: ReadonlyMap<ToolOutput, StubForm>;
}

/** In the order of the body. The first stub also explains stubs to the model. */
export function replacementsOf(
  elided: readonly ToolOutput[],
  { outputFolder, objectsUrl, forms }: StubStyle,
): readonly Replacement[] {
  const inOrder = elided.toSorted((one, other) => one.content.start - other.content.start);
  return inOrder.map((output, at) => {
    const form = forms.get(output) ?? NEWEST_FORM;
    const stub = stubOf(output, form);
    const own = Math.max(0, output.tokens - stub.tokens);
    if (at > 0) return { output, text: stub.text, bytes: stub.bytes, saved: own };
    const text = `${stub.text}${writeNote(outputFolder, form, objectsUrl)}`;
    const bytes = Buffer.from(JSON.stringify(text).slice(1, -1));
    return { output, text, bytes, saved: Math.max(0, output.tokens - estimateTextTokens(text)) };
  });
}

/** The bytes of each output's text, and no others, become those of its stub. */
export function elisionEdits(replacements: readonly Replacement[]): readonly Edit[] {
  return replacements.map(({ output: { content }, bytes }) => {
    return { start: content.start, end: content.end, bytes };
  });
}

export function isBatch(facts: ShorteningFacts, { batch, omissions }: Batch): boolean {
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
  const waited = waitedTokens(facts, batch);
  const price = { gain, messages, requests, growthLeft, comingBack, waited, isFirst, prices };
  return batchProfit(price) > 0;
}

/** Tokens times rounds for which these outputs could have been left out, and were sent. */
function waitedTokens(facts: ShorteningFacts, batch: readonly ToolOutput[]): number {
  const answered = answeredRounds(facts).toSorted((one, other) => one - other);
  const inOrder = batch.toSorted((one, other) => one.item - other.item);
  let [before, waited] = [0, 0];
  for (const output of inOrder) {
    while ((answered[before] ?? Infinity) <= output.item) before += 1;
    const kept = isLate(output) ? Math.max(facts.keepRounds, LATE_ROUNDS) : facts.keepRounds;
    waited += savedTokens(output) * Math.max(0, answered.length - before - kept);
  }
  return waited;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
