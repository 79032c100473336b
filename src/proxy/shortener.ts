import {
  decideReading,
  type SightFacts,
  isShort,
  mayOmit,
  readFacts,
  recallObstacle,
  type Removal,
  removalOf,
  settle,
  type Settled,
  type ShorteningFacts,
  isElidable,
} from '../core/shortening/removal.ts';
import type { Usage } from '../core/dialects/dialect-answer.ts';
import {
  type ElisionKind,
  FoundEntries,
  isRefused,
  keyOf,
  type LedgerEntry,
  type LeftOut,
  markOf,
  refusalAddresses,
  refusalEntries,
  spaceKeyOf,
  type SpaceOwner,
} from '../core/ledger/entries.ts';
import {
  backMark,
  type Batch,
  batchesIn,
  batchPlaces,
  type BatchMoment,
  elisionEntries,
  elisionMark,
  type ElisionPlace,
  mayRepeat,
} from '../core/shortening/elisions.ts';
import { cacheLifetimeMs, cachePrices, inputRoom } from '../core/shortening/pricing.ts';
import { dialectOf } from '../core/dialects/dialects.ts';
import { answeredRounds, type Exchange, groupExchanges } from '../core/conversation/exchanges.ts';
import type { Item, RequestView } from '../core/conversation/view.ts';
import type { Modes } from '../core/http/modes.ts';
import {
  type ExchangeTexts,
  type Leaving,
  type Omission,
  readExchangeTexts,
} from '../core/shortening/omissions.ts';
import { obstacleOf, type Outcome } from '../core/plan/continuity.ts';
import type { Edit } from '../core/plan/item-edits.ts';
import type { Shortening } from '../core/plan/plan.ts';
import type { UpstreamSettings } from '../core/settings/settings.ts';
import { clearableOutputs, clearingEdit } from '../core/shortening/provider-clearing.ts';
import {
  replacementsOf,
  countReadings,
  itemToolsSteps,
  outputsOf,
  seenOutputsOf,
  type ToolOutput,
} from '../core/shortening/outputs.ts';
import { BOUND_MS } from './bonds.ts';
import type { Slices } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import { PossessionCheck, type Proof, provenUnasked, textsOf } from './possession.ts';
import { MASKING, type RecallCall, type Recalled } from './recall.ts';
import { Pace, type Steps } from '../core/bytes/steps.ts';
import type { Reading } from './conversations.ts';
import { Recent } from '../core/bytes/recent.ts';
import type { MemoryRecord } from '../ports/memory.ts';
import { OUTPUT_PLACE } from '../core/memory/reference.ts';

/**
 * Collects the facts for shortening a request: what was left out earlier, what the memory has and proves, and whether
 * the provider's cache is cold. The functions in core/shortening/removal.ts decide.
 */

interface ShorteningCall extends RecallCall {
  readonly isCacheCold: boolean;
}

/** A call after the recall. `firstUnsent`: the index of the first item that was never sent before. */
type SettleCall = ShorteningCall & Pick<BatchMoment, 'firstUnsent'>;

interface SettledShortening extends Shortening {
  /** False if the ledger could not record what is left out for the first time. Then svc leaves out nothing new. */
  readonly isRecorded: boolean;
}

/**
 * Says whether svc may ask the provider to clear outputs, which it does only in a long, bound conversation. The user
 * must have chosen that, and svc must have a key for the upstream: to a request with a login svc adds no member.
 */
function mayAskToClear(
  { reading, modes, settings, bond }: ShorteningCall,
  { apiStyle, auth }: UpstreamSettings,
): boolean {
  const isChosen = settings.boundShortening === 'provider' && settings.elisionEnabled;
  const isAllowed = modes.compression === 'deterministic' && modes.reads;
  const hasKey = auth === 'x-api-key' || auth === 'bearer';
  const isMain = reading.identity.kind === 'main' && reading.view.tokens > settings.inputBudget;
  const isBound = bond?.isBound === true && dialectOf(apiStyle).clearsOutputs;
  return isChosen && isAllowed && hasKey && isMain && isBound;
}

export type KeepCall = Pick<ShorteningCall, 'reading' | 'modes' | 'settings'>;

/** The texts that a request may leave out, before any proof; or the reason why it leaves out nothing. */
type Candidates = { readonly outcome: Outcome } | Found;

interface Found {
  readonly outcome?: undefined;
  readonly facts: ShorteningFacts;
  /** The marks of the batches; see KnownBatches. */
  readonly marks: KnownBatches['marks'];
  readonly removal: Removal;
  /** The proof, which has begun; undefined if the choice of texts depends on what is recalled. */
  readonly proof: Proof | undefined;
  /**
   * The texts to leave out if recall finds nothing. Their proof has begun, because a late recall leaves no time for it.
   * Undefined if the choice does not depend on recall.
   */
  readonly rest?: Found;
}

/** Returns the exchanges that are left out; see Leaving. */
export function leavingOf(candidates: Candidates): Leaving {
  if (candidates.outcome !== undefined) return { gone: [], going: [] };
  return { gone: candidates.removal.omitted, going: candidates.removal.omissions };
}

/**
 * What earlier requests of the conversation left out. A batch is what one request was the first to leave out. It is
 * recorded at an item of that request.
 */
interface KnownBatches {
  readonly batches: readonly LeftOut[];
  /** The marks (see markOf) of the items at which the batches are recorded; undefined if the ledger did not answer. */
  readonly marks: readonly string[] | undefined;
  /**
   * True if new texts may be left out. For that all batches must be known, and none may be recorded at the newest item.
   * A batch at the newest item shows that this request was sent before.
   */
  readonly takesNew: boolean;
}

const NOTHING_FOUND = new FoundEntries([]);
const NO_BATCHES: KnownBatches = { batches: [], marks: [], takesNew: true };

export class Shortener {
  readonly #dependencies: ProxyDependencies;
  readonly #possession: PossessionCheck;
  readonly #keeper: OutputKeeper;
  /** The texts of exchanges, cached by the last item of each, because looking for secrets in them is slow. */
  readonly #texts = new WeakMap<Item, { readonly texts: ExchangeTexts }>();
  readonly #slices: Slices;

  constructor(dependencies: ProxyDependencies, slices: Slices) {
    this.#dependencies = dependencies;
    this.#slices = slices;
    this.#possession = new PossessionCheck(dependencies.memory, dependencies.clock);
    this.#keeper = new OutputKeeper(dependencies);
  }

  /** The estimated bytes of memory of what is known about outputs. */
  get heldBytes(): number {
    return this.#keeper.bytes;
  }

  /** Waits for the proof, and decides what is left out. `recalled`: the blocks of this request. */
  async settle(
    call: SettleCall,
    candidates: Candidates,
    recalled: Recalled,
  ): Promise<SettledShortening> {
    if (candidates.outcome !== undefined) return leavesNothing(candidates.outcome);
    const { removal } = candidates;
    // In shadow mode nothing is recalled. svc measures what it could leave out if something were.
    const isMeasured = call.modes.compression === 'shadow';
    if (removal.omissions.length === 0 || isMeasured) return this.#settleProven(call, candidates);
    const { rest = candidates } = candidates;
    const obstacle = recallObstacle(call.reading.view, recalled);
    if (obstacle === undefined) {
      const whole = await this.#settleProven(call, candidates);
      if (whole.outcome !== 'unanswered') return whole;
    }
    const settled = await this.#settleProven(call, rest);
    const isShorter = settled.elided.length + settled.omitted.length > 0;
    return isShorter ? settled : leavesNothing(obstacle ?? 'unanswered');
  }

  /** Finds what may be left out, and begins the proof that the memory has it. */
  async findCandidates(call: ShorteningCall): Promise<Candidates> {
    const { view, identity } = call.reading;
    // Runs even if nothing may be left out. After the store was replaced, the outputs must be stored again.
    this.#keeper.refresh();
    const sight = await this.#look(call);
    const decision = decideReading(sight);
    if (decision !== 'reads') return { outcome: decision };
    const known = sight.hasBatches ? await this.#findBatches(call) : NO_BATCHES;
    if (known === undefined) return { outcome: 'unanswered' };
    const { marks } = known;
    const exchanges = mayOmit({ view, ...known }) ? groupExchanges(view.items) : [];
    await this.#slices.run(this.#candidateSteps(view, exchanges));
    const facts = this.#factsOf(call, {
      ...known,
      takesNew: known.takesNew && identity.kind === 'main',
    });
    const removal = removalOf(facts);
    if (removal.omissions.length === 0) return this.#begun(call, { facts, marks, removal });
    const without = { ...facts, omittable: [] };
    const rest = this.#begun(call, { facts: without, marks, removal: removalOf(without) });
    return { facts, marks, removal, proof: undefined, rest };
  }

  #begun(call: ShorteningCall, found: Omit<Found, 'proof'>): Found {
    return { ...found, proof: this.#prove(call, found) };
  }

  /** Collects what is known of a request before its old texts are read. */
  async #look(call: ShorteningCall): Promise<SightFacts> {
    const { reading, modes, settings, bond, isCacheCold } = call;
    const { view, place, state, hasProviderState } = reading;
    const { kind } = reading.identity;
    const elision = kindOf(modes);
    const isOverBudget = view.tokens > settings.inputBudget;
    const isBound = bond?.isBound === true;
    const { elisionEnabled: isElisionEnabled, elisionKeepRounds: keepRounds } = settings;
    const asked = { modes, isBound, isOverBudget, hasProviderState, isElisionEnabled };
    const obstacle = bond === undefined ? 'unanswered' : obstacleOf(asked);
    const mayRepeatMore = obstacle === undefined && mayRepeat(view) && bond?.batches?.length !== 0;
    const mark = mayRepeatMore ? elisionMark({ view, owner: place, elision }) : undefined;
    const mayLeave = obstacle === undefined && isOverBudget && kind === 'main';
    const refusals = refusalAddresses(view, place, 'shortening');
    const addresses = mark === undefined ? refusals : [...refusals, mark];
    const isAsked = mayLeave || mark !== undefined;
    const found = isAsked
      ? await this.#dependencies.ledger.find(addresses, ledgerMs(call))
      : NOTHING_FOUND;
    const hasBatches = mark !== undefined && (found.has(mark) || state.batches.has(keyOf(mark)));
    const isKnown = hasBatches || isBound || isCacheCold || state.wasRead;
    state.wasRead ||= isAsked;
    return {
      obstacle,
      kind,
      isOverBudget,
      hasBatches,
      isLedgerRead: found.missing === undefined,
      isReal: elision === 'real',
      isRefused: isRefused(refusals, found, this.#dependencies.clock.now()),
      isKnown,
      isShort: !isKnown && isShort({ view, rounds: answeredRounds(view.items), keepRounds }),
    };
  }

  /**
   * Reads everything that may be left out, in steps. The outputs of the newest item are not left out, because the model
   * has not seen them yet; most of these are read after the request was sent, see seenOutputsOf().
   */
  *#candidateSteps(view: RequestView, exchanges: readonly Exchange[]): Steps<void> {
    yield* itemToolsSteps(view, view.items.length - 1);
    const pace = new Pace();
    for (const exchange of exchanges) {
      const last = view.items[exchange.end - 1];
      if (exchange.hasToolState || last === undefined || this.#texts.has(last)) continue;
      this.#textsOf(view, exchange);
      if (pace.isDue(MASKING * (exchange.humanText.length + exchange.assistantText.length))) yield;
    }
  }

  #textsOf(view: RequestView, exchange: Exchange): ExchangeTexts {
    const last = view.items[exchange.end - 1];
    const known = last === undefined ? undefined : this.#texts.get(last);
    if (known !== undefined) return known.texts;
    const texts = readExchangeTexts(view, exchange, this.#dependencies.texts);
    if (last !== undefined) this.#texts.set(last, { texts });
    return texts;
  }

  /**
   * Returns the conversation's batches. If the ledger does not answer, these are the ones that this process knows, so
   * that their texts do not come back. Returns undefined if it knows none.
   */
  async #findBatches(call: ShorteningCall): Promise<KnownBatches | undefined> {
    const { modes, bond } = call;
    const { view, state, place: owner } = call.reading;
    const place: ElisionPlace = { view, owner, elision: kindOf(modes) };
    const mark = elisionMark(place);
    const key = mark === undefined ? '' : keyOf(mark);
    const places = batchPlaces(place);
    const addresses = places.flatMap(({ own, shared }) => [own, shared]);
    const found = await this.#dependencies.ledger.find(addresses, ledgerMs(call));
    const markAt = (at: number): string => markOf(view.items[at]?.fingerprint ?? '');
    // In front of bound thinking only those batches count that were left out when the thinking was made.
    const batches = batchesIn(found, places).filter(
      ({ at }) => bond?.batches?.includes(markAt(at)) !== false,
    );
    const all = batches.map(({ leftOut }) => leftOut);
    if (found.missing !== undefined) {
      const before = state.batches.get(key) ?? [];
      const known = before.length > all.length ? before : all;
      if (known.length === 0) return undefined;
      return { batches: known, marks: undefined, takesNew: false };
    }
    state.batches.set(key, all);
    // The ledger has only the first batch at an item, so the next request would not find a second one.
    const isSentAgain = batches.length > 0 && batches.at(-1)?.at === places.at(-1)?.at;
    const marks = batches.map(({ at }) => markAt(at));
    return { batches: all, marks, takesNew: !isSentAgain };
  }

  /**
   * Returns the edit that asks the provider to clear old outputs; undefined unless the user has chosen that, and the
   * memory proves that it has every output that may be cleared.
   */
  async findClearing(call: ShorteningCall, upstream: UpstreamSettings): Promise<Edit | undefined> {
    const { reading, settings, deadline } = call;
    const { view, place } = reading;
    if (!mayAskToClear(call, upstream)) return undefined;
    await this.#slices.run(itemToolsSteps(view, view.items.length - 1));
    const outputs = seenOutputsOf(view);
    const clearable = clearableOutputs(view, outputs, settings.elisionKeepRounds);
    const edit = clearable === undefined ? undefined : clearingEdit(view, clearable);
    if (clearable === undefined || edit === undefined) return undefined;
    const refusals = refusalAddresses(view, place, 'clearing');
    const found = await this.#dependencies.ledger.find(refusals, deadline.msLeft);
    const isOff = isRefused(refusals, found, this.#dependencies.clock.now());
    if (found.missing !== undefined || isOff) return undefined;
    const texts = clearable.outputs.map(({ digest, text }) => ({
      digest,
      role: 'tool' as const,
      text,
    }));
    const asked = { texts, space: place.space, deadlineMs: deadline.msLeft };
    const possession = await this.#possession.check(asked);
    if (possession.kind !== 'proven') return undefined;
    const missing = texts.filter(({ digest }) => !possession.digests.has(digest));
    for (const { digest } of missing) this.#keeper.lost(place, digest);
    return missing.length === 0 ? edit : undefined;
  }

  /**
   * Records that the provider accepted the request only without the edit that asks it to clear outputs. For an hour svc
   * then asks for no clearing in this conversation.
   */
  async refusedClearing({ view, place }: Reading): Promise<void> {
    const addresses = refusalAddresses(view, place, 'clearing');
    await this.#dependencies.ledger.record(
      refusalEntries(addresses, this.#dependencies.clock.now()),
    );
  }

  /** Notes that the model's window is at least as long as this request. */
  measured({ state }: Reading, usage: Usage | undefined): void {
    if (usage === undefined) return;
    const tokens = usage.input + usage.cacheRead + usage.cacheWrite;
    state.acceptedTokens = Math.max(state.acceptedTokens, tokens);
  }

  /** Stores the outputs that may be left out later. Never rejects; no request waits for it. */
  async keepAhead({ reading, modes, settings }: KeepCall): Promise<void> {
    const isWanted = modes.compression === 'deterministic' && modes.writes && modes.reads;
    const isMain = reading.identity.kind === 'main' && !reading.hasProviderState;
    if (!isWanted || !isMain || !settings.elisionEnabled) return;
    await this.#slices.run(itemToolsSteps(reading.view));
    const outputs = outputsOf(reading.view);
    // Short outputs are stored too if the provider may clear them.
    const keepsShort =
      settings.boundShortening === 'provider' && reading.state.boundFrom !== undefined;
    const limit = settings.elisionCaptureLimit;
    await this.#keeper.keep(reading, outputs, { limit, keepsShort });
  }

  /**
   * Takes back what a refused request was the first to leave out (its batch). `isAtFault`: the provider accepted the
   * request without that change. Then nothing is left out of the conversation for an hour, not even by earlier batches.
   */
  async refused(
    reading: Reading,
    { recorded = [] }: Shortening,
    isAtFault: boolean,
  ): Promise<void> {
    const at = this.#dependencies.clock.now();
    const leftOut = { before: 0, marks: [] };
    const taken = recorded.flatMap((entry) =>
      'leftOut' in entry ? [{ ...entry, leftOut, at, replaces: true as const }] : [],
    );
    const refusals = refusalAddresses(reading.view, reading.place, 'shortening');
    const entries = isAtFault ? refusalEntries(refusals, at) : [];
    await this.#dependencies.ledger.record([...taken, ...entries]);
  }

  #factsOf(
    { reading, modes, settings, isCacheCold, bond }: ShorteningCall,
    known: KnownBatches,
  ): ShorteningFacts {
    const { view, place } = reading;
    const { value } = view.shell;
    const model = typeof value['model'] === 'string' ? value['model'] : '';
    const facts = this.#dependencies.factsOf(model);
    const answerTokens =
      value['max_tokens'] ?? value['max_completion_tokens'] ?? value['max_output_tokens'];
    const room = inputRoom({ model, facts, isLong: reading.asksForLongWindow, answerTokens });
    const isBound = bond?.isBound === true;
    // Shadow mode, and a bound conversation, are measured as if everything were stored. If the cache is cold, another
    // process may have stored the outputs.
    const isAssumed = modes.compression === 'shadow' || isCacheCold || isBound;
    return readFacts({
      ...known,
      view,
      outputs: seenOutputsOf(view),
      textsOf: (exchange) => this.#textsOf(view, exchange),
      isStored: isAssumed ? () => true : this.#keeper.storedIn(place),
      isBound,
      whole: bond?.whole,
      isCacheCold,
      keepRounds: settings.elisionKeepRounds,
      tokens: view.tokens,
      inputBudget: settings.inputBudget,
      // If the provider has accepted a longer request, the published window is wrong.
      room: reading.state.acceptedTokens > (room ?? 0) ? undefined : room,
      prices: cachePrices({ dialect: view.dialect, facts, cacheMs: cacheLifetimeMs(view) }),
    });
  }

  #prove(
    { reading, modes, ...call }: ShorteningCall,
    { facts, removal }: Pick<Found, 'facts' | 'removal'>,
  ): Proof {
    // In a bound conversation texts that were left out earlier stay out without a proof, and no others are left out.
    const texts = facts.isBound ? [] : textsOf(removal);
    // Shadow mode leaves nothing out, and measures as if the memory had everything.
    if (modes.compression === 'shadow') return provenUnasked(texts);
    const { space } = reading.place;
    const asked = { texts, space, deadlineMs: call.deadline.msLeft };
    return { texts, possession: this.#possession.check(asked) };
  }

  async #settleProven(call: SettleCall, found: Found): Promise<SettledShortening> {
    const { facts, marks, removal, proof = this.#prove(call, found) } = found;
    const { view } = call.reading;
    const possession = await proof.possession;
    if (possession.kind === 'unproven') return leavesNothing('unproven');
    if (possession.kind === 'degraded') return leavesNothing('unanswered');
    const { digests } = possession;
    for (const { digest } of proof.texts) {
      if (!digests.has(digest)) this.#keeper.lost(call.reading.place, digest);
    }
    const settled = settle(facts, removal, digests);
    const recorded = this.#entriesOf(call, settled);
    const isRecorded = await this.#dependencies.ledger.commit(recorded);
    if (isRecorded) {
      const made = recorded.flatMap((it) => ('leftOut' in it ? [markOf(it.fingerprint)] : []));
      const batches = marks && [...new Set([...marks, ...made])];
      return { ...this.#leftOut(view, facts, settled), batches, recorded, isRecorded };
    }
    // Later requests could not repeat a new batch that the ledger did not record, so only earlier ones are left out.
    const nothingNew = { ...facts, takesNew: false };
    const earlier = settle(nothingNew, removalOf(nothingNew), digests);
    return { ...this.#leftOut(view, facts, earlier), batches: marks, isRecorded };
  }

  #leftOut(view: RequestView, { named }: ShorteningFacts, settled: Settled): Shortening {
    const { elided, omitted, outcome, batch, omissions } = settled;
    const { outputFolder, objectsUrl } = this.#dependencies;
    const readings = countReadings(view, elided);
    const replacements = replacementsOf(elided, { outputFolder, objectsUrl });
    const added = new Set([...batch, ...omissions]);
    const out = new Set<ToolOutput | Omission>([...elided, ...omitted]);
    const whole = named.filter((text) => !out.has(text)).map(backMark);
    return { elided: replacements, omitted, outcome, readings, added, whole };
  }

  /** Returns the ledger entries of a new batch, with which every later request repeats it. */
  #entriesOf({ reading, modes, firstUnsent }: SettleCall, chosen: Batch): readonly LedgerEntry[] {
    const { view, place: owner } = reading;
    if (chosen.batch.length + chosen.omissions.length === 0) return [];
    const place: ElisionPlace = { view, owner, elision: kindOf(modes) };
    const at = this.#dependencies.clock.now();
    return elisionEntries(chosen, place, { at, firstUnsent });
  }
}

function leavesNothing(outcome: Outcome): SettledShortening {
  return { elided: [], omitted: [], outcome, isRecorded: true };
}

/**
 * Returns the deadline of the ledger, in milliseconds. A bound conversation has longer, because without the ledger's
 * batches its thinking is lost.
 */
function ledgerMs({ bond, deadline: { msLeft } }: ShorteningCall): number {
  return bond?.isBound === true ? Math.max(BOUND_MS, msLeft) : msLeft;
}

function kindOf({ compression }: Modes): ElisionKind {
  return compression === 'shadow' ? 'shadow' : 'real';
}

// Deadline for storing outputs, in milliseconds. No request waits for that.
const KEEP_MS = 10_000;
// Bound on the outputs whose state is remembered, of 200 bytes each: some days of work. An output whose state was
// dropped is offered to the memory again.
const KNOWN_MAX = 10_000;
const KNOWN_BYTES = 200;

/**
 * Stores tool outputs in the memory, so that later requests may leave them out. It does so after the request was sent.
 * If it fails, the next request tries again.
 */
class OutputKeeper {
  readonly #dependencies: Pick<ProxyDependencies, 'memory' | 'clock' | 'ledger'>;
  /**
   * The state of each output, by space and digest. 'refused': the memory did not take it, mostly because of a secret.
   */
  readonly #fates = new Recent<string, 'underway' | 'stored' | 'refused'>(KNOWN_MAX);
  #generation: number;

  constructor(dependencies: Pick<ProxyDependencies, 'memory' | 'clock' | 'ledger'>) {
    this.#dependencies = dependencies;
    this.#generation = dependencies.ledger.generation();
  }

  /**
   * Forgets which outputs are stored if the ledger's generation has changed: the store was replaced, or texts were
   * forgotten. Call it for each request.
   */
  refresh(): void {
    const generation = this.#dependencies.ledger.generation();
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#fates.clear();
  }

  /**
   * Returns a function that says whether this process has seen the memory store an output. Whether the memory still has
   * the output is proven later.
   */
  storedIn(owner: SpaceOwner): (digest: string) => boolean {
    const space = spaceKeyOf(owner);
    return (digest) => this.#fates.get(space + digest) === 'stored';
  }

  /** Notes that the memory did not prove an output, so that it is stored again. */
  lost(owner: SpaceOwner, digest: string): void {
    const key = spaceKeyOf(owner) + digest;
    if (this.#fates.get(key) === 'stored') this.#fates.delete(key);
  }

  get bytes(): number {
    return KNOWN_BYTES * this.#fates.size;
  }

  /**
   * Stores at most `limit` outputs, oldest first, that this process has not offered to the memory yet; with
   * `keepsShort` also those that are too short to be left out. All go in one call, because each call is one message to
   * the memory, and one sync of its disk. Never rejects.
   */
  async keep(
    { place, identity: { client } }: Reading,
    outputs: readonly ToolOutput[],
    { limit, keepsShort }: { readonly limit: number; readonly keepsShort: boolean },
  ): Promise<void> {
    const { space, conversation } = place;
    const spaceKey = spaceKeyOf(place);
    const tokensMin = keepsShort ? 0 : undefined;
    const fresh = new Map<string, ToolOutput>();
    for (const output of outputs) {
      if (fresh.size === limit) break;
      if (!isElidable(output, tokensMin) || this.#fates.has(spaceKey + output.digest)) continue;
      fresh.set(output.digest, output);
    }
    if (fresh.size === 0) return;
    const chosen = [...fresh.values()];
    for (const { digest } of chosen) this.#fates.set(spaceKey + digest, 'underway');
    const { memory, clock } = this.#dependencies;
    const shared = { ...OUTPUT_PLACE, space, conversation, client, at: clock.now() };
    const records = chosen.map(({ digest, text }): MemoryRecord => ({ ...shared, digest, text }));
    try {
      const states = await memory.capture(records, AbortSignal.timeout(KEEP_MS));
      for (const [index, { digest }] of chosen.entries()) {
        const kept = states[index];
        const isStored = kept === 'stored' || kept === 'duplicate';
        this.#fates.set(spaceKey + digest, isStored ? 'stored' : 'refused');
      }
    } catch {
      // The next request tries again.
      for (const { digest } of chosen) this.#fates.delete(spaceKey + digest);
    }
  }
}
