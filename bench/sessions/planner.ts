import { elisionEntries, elisionKeys, repeatedOutputs } from '../../src/core/elisions.ts';
import { groupExchanges } from '../../src/core/exchanges.ts';
import type { InjectionEntry } from '../../src/core/injections.ts';
import {
  type ItemTools,
  outputsOf,
  readItemTools,
  referencesRead,
  type ToolOutput,
} from '../../src/core/outputs.ts';
import { cachePrices, tokensUntilEdge } from '../../src/core/pricing.ts';
import { maskSecrets } from '../../src/core/redaction.ts';
import { viewRequest } from '../../src/core/request-view.ts';
import {
  chooseOutputs,
  isElidable,
  type ShorteningFacts,
  wantedOutputs,
} from '../../src/core/shortening.ts';
import { stubTokens } from '../../src/core/stubs.ts';
import type { Item, RequestView } from '../../src/core/view.ts';
import { SessionBodies } from './bodies.ts';
import type { Session } from './sessions.ts';

/** Which of the old outputs go now. The product's own rule, or one to compare it with. */
export type Rule = (facts: ShorteningFacts) => readonly ToolOutput[];

export const productRule: Rule = (facts) => wantedOutputs(facts).batch;

/** For each elided session item the provider's tokens that the request is shorter by. */
export type Elided = ReadonlyMap<number, number>;

// The settings' defaults.
const KEEP_ROUNDS = 4;
const CAPTURE_LIMIT = 8;
const INPUT_BUDGET = 8_192;

/**
 * What each call of a session leaves out: the same functions as in the proxy, on the same bodies, with
 * a memory that holds everything it was given and a ledger that forgets nothing.
 */
export class SessionPlanner {
  readonly #session: Session;
  readonly #bodies: SessionBodies;
  readonly #tools = new WeakMap<Item, ItemTools>();
  readonly #indexById: ReadonlyMap<string, number>;
  readonly #maskedDigests = new Map<string, boolean>();
  readonly #views: readonly (RequestView | undefined)[];

  constructor(session: Session) {
    this.#session = session;
    this.#bodies = new SessionBodies(session);
    this.#indexById = new Map(
      session.items.flatMap(({ kind, tid }, index) =>
        kind === 'tool_result' && tid !== undefined ? [[tid, index]] : [],
      ),
    );
    let previous: RequestView | undefined;
    this.#views = session.calls.map(({ a, b }) => {
      previous = viewRequest(this.#bodies.body(a, b), session.dialect, previous);
      // Only the items are needed later: a hundred bodies of a session need not be held.
      return previous === undefined ? undefined : { ...previous };
    });
  }

  /** What each call leaves out. */
  plan(rule: Rule, { cacheMs, leavesSafely }: PlanOptions): readonly Elided[] {
    const ledger = new Map<string, InjectionEntry>();
    const stored = new Set<string>();
    let lastTs = Infinity;
    return this.#session.calls.map(({ ts }, call) => {
      const isCacheCold = ts - lastTs > cacheMs;
      lastTs = ts;
      const view = this.#views[call];
      return view === undefined
        ? new Map()
        : this.#planCall(view, { rule, leavesSafely, ledger, stored, isCacheCold });
    });
  }

  #planCall(view: RequestView, run: Run): Elided {
    const toolsOf = (item: Item): ItemTools => this.#toolsOf(view, item);
    const outputs = outputsOf(view, toolsOf);
    const keys = elisionKeys(view, 'bench', 'real');
    const known = keys.flatMap((key) => run.ledger.get(key) ?? []);
    const prices = cachePrices(view.dialect, false);
    const tokens = view.tokens + this.#session.staticTokens / prices.tokenRatio;
    const tokensLeft = run.leavesSafely
      ? tokensUntilEdge(this.#session.model, tokens, prices)
      : Infinity;
    if (tokens <= INPUT_BUDGET || tokensLeft <= 0) return new Map();
    const facts: ShorteningFacts = {
      items: view.items,
      exchanges: groupExchanges(view.items),
      outputs,
      reread: referencesRead(view, toolsOf),
      repeated: repeatedOutputs(outputs, known),
      isStored: (digest) => run.stored.has(digest),
      isCacheCold: run.isCacheCold,
      keepRounds: KEEP_ROUNDS,
      prices,
      tokensLeft,
    };
    const wanted = { ...wantedOutputs(facts), batch: run.rule(facts) };
    const proven = new Set([...wanted.repeated, ...wanted.batch].map(({ digest }) => digest));
    const chosen =
      run.rule === productRule
        ? chooseOutputs(facts, wanted, proven)
        : { elided: [...wanted.repeated, ...wanted.batch], batch: wanted.batch };
    if (chosen.batch.length > 0) {
      const place = { view, space: 'bench', kind: 'real' } as const;
      for (const entry of elisionEntries(chosen.batch, place, 0)) run.ledger.set(entry.key, entry);
    }
    this.#capture(facts, run.stored);
    return new Map(chosen.elided.flatMap((output) => this.#saved(output, facts)));
  }

  #capture({ outputs, reread }: ShorteningFacts, stored: Set<string>): void {
    const fresh = outputs.filter(
      (output) =>
        !stored.has(output.digest) && isElidable(output, reread) && !this.#isMasked(output),
    );
    for (const { digest } of fresh.slice(0, CAPTURE_LIMIT)) stored.add(digest);
  }

  #isMasked({ digest, text }: ToolOutput): boolean {
    const known = this.#maskedDigests.get(digest);
    if (known !== undefined) return known;
    const isMasked = maskSecrets(text).masked > 0;
    this.#maskedDigests.set(digest, isMasked);
    return isMasked;
  }

  #saved(output: ToolOutput, { prices }: ShorteningFacts): [number, number][] {
    const index = this.#indexById.get(output.callId);
    if (index === undefined) return [];
    const { position } = this.#session;
    const tokens = (position[index + 1] ?? 0) - (position[index] ?? 0);
    return [[index, Math.max(0, tokens - Math.ceil(stubTokens(output) * prices.tokenRatio))]];
  }

  #toolsOf(view: RequestView, item: Item): ItemTools {
    const known = this.#tools.get(item);
    if (known !== undefined) return known;
    const tools = readItemTools(view, item);
    this.#tools.set(item, tools);
    return tools;
  }
}

export interface PlanOptions {
  /** After such a pause the provider's cache is cold. */
  readonly cacheMs: number;
  /** Near the model's window everything is forwarded, as the proxy does. */
  readonly leavesSafely: boolean;
}

interface Run {
  readonly leavesSafely: boolean;
  readonly rule: Rule;
  readonly ledger: Map<string, InjectionEntry>;
  readonly stored: Set<string>;
  readonly isCacheCold: boolean;
}
