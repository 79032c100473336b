import { TEXTS } from '../../src/adapters/texts.ts';
import {
  FoundEntries,
  keyOf,
  type LedgerEntry,
  LOCAL_TENANT,
} from '../../src/core/ledger/entries.ts';
import { batchesIn, batchPlaces, elisionEntries } from '../../src/core/shortening/elisions.ts';
import {
  isElidable,
  readFacts,
  type Removal,
  removalOf,
  settle,
  type ShorteningFacts,
} from '../../src/core/shortening/removal.ts';
import {
  isOmitted,
  type Omission,
  readExchangeTexts,
  writeOmissionNote,
} from '../../src/core/shortening/omissions.ts';
import { cachePrices, inputRoom } from '../../src/core/shortening/pricing.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import { maskSecrets } from '../../src/core/redaction/redaction.ts';
import { viewRequest } from '../../test/support/view-of.ts';
import { stubOf } from '../../src/core/shortening/stubs.ts';
import {
  replacementsOf,
  outputsOf,
  type ToolOutput,
  seenOutputsOf,
} from '../../src/core/shortening/outputs.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { factsOfModel } from '../../src/core/settings/model-facts.ts';
import { SessionBodies } from './bodies.ts';
import type { Session } from './sessions.ts';

/** What leaves a request now: the product's own function, or one to compare it with. */
export type Rule = (facts: ShorteningFacts) => Removal;

/** For each elided session item the provider's tokens that the request is shorter by. */
export type Elided = ReadonlyMap<number, number>;

// The settings' defaults.
const KEEP_ROUNDS = 4;
const CAPTURE_LIMIT = 8;
const INPUT_BUDGET = 8_192;
// What the recorded Claude Code asks for; Codex asks for nothing.
const ANSWER_TOKENS = { 'claude-code': 32_000, codex: undefined } as const;

// As long as the real ones are.
const OUTPUT_FOLDER = '/home/someone/.local/share/svc/outputs';

/** Outputs, and whole exchanges of plain text, by the session's items. */
interface Left {
  readonly elided: readonly ToolOutput[];
  readonly omitted: readonly Omission[];
}

/** No session meets another one in its ledger. */
const BENCH = { tenant: LOCAL_TENANT, scope: 'bench', conversation: 'bench' };

/**
 * What each call of a session leaves out: the same functions as in the proxy, on the same bodies, with
 * a memory that holds everything it was given, recalls something for each prompt, and a ledger that
 * forgets nothing.
 */
export class SessionPlanner {
  /** Estimated tokens of each output's stub, the note behind the first of a request not counted. */
  get stubs(): readonly number[] {
    return [...this.#stubTokens.values()];
  }

  /** How many whole exchanges some request left out. */
  get exchanges(): number {
    return this.#omitted.size;
  }

  readonly #session: Session;
  readonly #bodies: SessionBodies;
  readonly #indexById: ReadonlyMap<string, number>;
  readonly #stubTokens = new Map<string, number>();
  /** Fingerprints. */
  readonly #omitted = new Set<string>();
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
  plan(rule: Rule, cacheMs: number): readonly Elided[] {
    const run: Run = { rule, ledger: new Map(), stored: new Set() };
    let lastTs = Infinity;
    return this.#session.calls.map(({ ts }, call) => {
      const isCacheCold = ts - lastTs > cacheMs;
      lastTs = ts;
      const view = this.#views[call];
      if (view === undefined) return new Map();
      return this.#saved(call, view, this.#planCall(view, run, isCacheCold));
    });
  }

  #planCall(view: RequestView, run: Run, isCacheCold: boolean): Left {
    const place = { view, owner: BENCH, elision: 'real' } as const;
    const found = batchesIn(new FoundEntries(run.ledger.values()), batchPlaces(place));
    const { model, kind, dialect } = this.#session;
    const facts = readFacts({
      view,
      batches: found.map(({ leftOut }) => leftOut),
      outputs: seenOutputsOf(view),
      textsOf: (exchange) => readExchangeTexts(view, exchange, TEXTS),
      isStored: (digest) => run.stored.has(digest),
      takesNew: true,
      isBound: false,
      isCacheCold,
      keepRounds: KEEP_ROUNDS,
      tokens: this.#estimate(view),
      inputBudget: INPUT_BUDGET,
      room: inputRoom({
        model,
        facts: factsOfModel(model),
        isLong: false,
        answerTokens: ANSWER_TOKENS[kind],
      }),
      prices: cachePrices({ dialect, facts: factsOfModel(model) }),
    });
    const removal = run.rule(facts);
    const asked = [...removal.repeated, ...removal.batch];
    const texts = [...removal.omitted, ...removal.omissions].flatMap((it) => it.texts);
    const proven = new Set([...asked, ...texts].map(({ digest }) => digest));
    const chosen =
      run.rule === removalOf
        ? settle(facts, removal, proven)
        : { ...removal, elided: asked, omitted: [...removal.omitted, ...removal.omissions] };
    if (chosen.batch.length + chosen.omissions.length > 0) {
      for (const entry of elisionEntries(chosen, place, { at: 0 })) {
        if (!run.ledger.has(keyOf(entry))) run.ledger.set(keyOf(entry), entry);
      }
    }
    this.#capture(outputsOf(view), run.stored);
    return chosen;
  }

  /** Of the whole request: the bodies here have no system prompt and no tools. */
  #estimate(view: RequestView): number {
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    return view.tokens + this.#session.staticTokens / tokenRatio;
  }

  #capture(outputs: readonly ToolOutput[], stored: Set<string>): void {
    const fresh = outputs.filter(
      (output) => !stored.has(output.digest) && isElidable(output) && !this.#isMasked(output),
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

  #saved(call: number, view: RequestView, { elided, omitted }: Left): Elided {
    const { position } = this.#session;
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    const saved = new Map<number, number>();
    const note = (index: number, text: string): void => {
      const tokens = (position[index + 1] ?? 0) - (position[index] ?? 0);
      saved.set(index, Math.max(0, tokens - Math.ceil(estimateTextTokens(text) * tokenRatio)));
    };
    for (const { output, text } of replacementsOf(elided, { outputFolder: OUTPUT_FOLDER })) {
      const index = this.#indexById.get(output.callId);
      if (index === undefined) continue;
      this.#stubTokens.set(output.callId, stubOf(output).tokens);
      // What the client glued to the output's end stays.
      const whole = this.#session.items[index]?.text ?? '';
      note(index, `${text}${whole.slice(output.text.length)}`);
    }
    for (const { fingerprint } of omitted) this.#omitted.add(fingerprint);
    const gone = this.#itemsOf(call, view, omitted);
    // The note stands elsewhere in the request; its tokens are the same.
    for (const [at, index] of gone.entries()) {
      note(index, at === 0 ? writeOmissionNote(omitted.length) : '');
    }
    return saved;
  }

  /** The session's items that these exchanges hold, ascending. */
  #itemsOf(call: number, view: RequestView, omitted: readonly Omission[]): readonly number[] {
    const made = this.#session.calls[call];
    if (made === undefined || omitted.length === 0) return [];
    const starts = this.#bodies.startsOf(made.a, made.b);
    return view.items.flatMap((item, at) => {
      const [start = 0, end = 0] = starts.slice(at);
      const isGone = isOmitted(item, omitted);
      return isGone ? Array.from({ length: end - start }, (_, index) => start + index) : [];
    });
  }
}

interface Run {
  readonly rule: Rule;
  readonly ledger: Map<string, LedgerEntry>;
  readonly stored: Set<string>;
}
