import { createHash, hash, type Hash } from 'node:crypto';

/**
 * Identifies signed thinking. A provider signs or encrypts what a model thought, and the client sends it back word
 * for word. So the signature alone identifies a thought.
 */

/** Characters of an id. They hold 132 bits, so two thoughts practically never have the same id by chance. */
const ID_CHARS = 22;

/** Returns the id of a thought. `signature`: the provider's signature, or the encrypted text. */
export function thoughtId(signature: string): string {
  return hash('sha256', signature, 'base64url').slice(0, ID_CHARS);
}

/** Bound on the thoughts of one answer; further ones are ignored. Long answers of models of 2026 have some twenty. */
const THOUGHTS_MAX = 1_024;

/** Collects the thoughts of one answer, whose signatures may arrive in pieces. */
export class ThoughtCollector {
  readonly #onThought: (id: string) => void;
  readonly #ids = new Set<string>();
  /** The hashes of the signatures that are not complete yet. */
  readonly #open = new Map<unknown, Hash>();

  /** `onThought` is called once per thought, while the piece that completes it is read. */
  constructor(onThought: (id: string) => void) {
    this.#onThought = onThought;
  }

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  /** Adds a piece to the signature with this key. A piece that repeats the whole signature so far is ignored. */
  append(key: unknown, piece: unknown): void {
    if (typeof piece !== 'string' || piece === '') return;
    const before = this.#open.get(key);
    if (before !== undefined) {
      if (idOf(before.copy()) !== thoughtId(piece)) before.update(piece);
    } else if (this.#open.size < THOUGHTS_MAX) {
      this.#open.set(key, createHash('sha256').update(piece));
    }
  }

  /** Completes the thought with this key, if there is one. */
  complete(key: unknown): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#add(idOf(open));
  }

  completeAll(): void {
    for (const key of this.#open.keys()) this.complete(key);
  }

  add(signature: unknown): void {
    if (typeof signature === 'string' && signature !== '') this.#add(thoughtId(signature));
  }

  #add(id: string): void {
    if (this.#ids.has(id) || this.#ids.size >= THOUGHTS_MAX) return;
    this.#ids.add(id);
    this.#onThought(id);
  }
}

function idOf(sum: Hash): string {
  return sum.digest('base64url').slice(0, ID_CHARS);
}

/**
 * Says which models may bind their thinking to its prefix, so that the provider checks that nothing before a thought
 * has changed. The tables list the models that are known not to bind. Every other model counts as binding, because
 * providers have so far added models with the check, and removed it from none.
 * Sources: platform.claude.com, preserved thinking and prefix checks (2026-11: Fable 5.1 and 5.2, Mythos 5.1 and
 * 5.2, Opus 5.5, Sonnet 5.5, Haiku 5.5 check; Opus 5, Sonnet 5, Fable 5, Haiku 4.5 and older do not);
 * developers.openai.com, keep prefix unchanged (2026-11: "newer frontier models", none is named).
 */

/** For each Claude family the newest version that does not bind its thinking, times ten: 50 is version 5.0. */
const CLAUDE_UNBOUND: Readonly<Record<string, number>> = {
  opus: 50,
  sonnet: 50,
  fable: 50,
  haiku: 45,
};

// Matches `claude-opus-4-5-20251101`, `us.anthropic.claude-opus-5-v1:0`, `claude-sonnet-5@20260901` and
// `claude-opus-5[1m]`.
const CLAUDE = /claude-([a-z]+)-(\d)(?:[-.](\d))?(?![\d])/;
// Matches names before Claude 4, which begin with the version: `claude-3-5-sonnet-20241022`, `claude-2.1`,
// `claude-instant-1.2`.
const OLD_CLAUDE = /claude-(?:[123](?:[-.]|$)|instant)/;
/**
 * The newest GPT version that does not bind its thinking, times ten. GPT-5.6 may be one of the "newer frontier models":
 * its documents are the first that mention reasoning which is kept between requests.
 */
const GPT_UNBOUND = 55;
const GPT = /(?:^|[/.])gpt-(\d+)(?:\.(\d))?/;
const OLD_OPENAI = /(?:^|[/.])(?:o[134](?:-|$)|chatgpt-4|codex-mini|gpt-oss)/;

/** Says whether a model may bind its thinking. A request without a model counts as binding. */
export function bindsThinking(model: string | undefined): boolean {
  const name = (model ?? '').toLowerCase();
  const [, family = '', major = '', minor = '0'] = CLAUDE.exec(name) ?? [];
  const newest = CLAUDE_UNBOUND[family];
  if (newest !== undefined) return Number(major) * 10 + Number(minor) > newest;
  if (OLD_CLAUDE.test(name) || OLD_OPENAI.test(name)) return false;
  const [, gpt, point = '0'] = GPT.exec(name) ?? [];
  return gpt === undefined || Number(gpt) * 10 + Number(point) > GPT_UNBOUND;
}
