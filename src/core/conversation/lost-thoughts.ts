import { asList, asRecord, asText } from '../bytes/json-fields.ts';

/**
 * Counts the thinking blocks of a request that the provider dropped, flagged or refused. A provider may bind thinking
 * to everything before it. Its answers then report the blocks before which something has changed.
 * Sources: Anthropic, preserved thinking (2026-11), and the types of its SDK; OpenAI, "Keep the prefix unchanged"
 * (2026-11). Both may add kinds of entries; svc counts an unknown kind as `other`.
 */

/** How many thinking blocks were dropped or flagged, by reason, or if the request was refused; undefined for none. */
export interface LostThoughts {
  /** Dropped, because something before them has changed. */
  readonly prefix?: number;
  /** Dropped, because another model cannot read them. */
  readonly model?: number;
  /** Dropped, because they were made in another account. */
  readonly account?: number;
  /** Only flagged: used and billed, although something before them has changed. */
  readonly allowed?: number;
  /** Reported in a way that svc does not know. */
  readonly other?: number;
  /** The provider refused the whole request, because the text before its thinking has changed. */
  readonly refused?: 1;
}

/** Bound on the entries that are counted. A window of a million tokens has some 10,000 messages and tool results. */
const ENTRIES_MAX = 10_000;

/** Counts the lost thoughts that a list of `input_transformations` reports. Undefined for an empty list. */
export function lostThoughtsIn(transformations: unknown): LostThoughts | undefined {
  const counts: Partial<Record<Counted, number>> = {};
  const entries = asList(transformations).slice(0, ENTRIES_MAX);
  for (const entry of entries) {
    const kind = kindOf(asRecord(entry));
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return entries.length === 0 ? undefined : counts;
}

type Counted = Exclude<keyof LostThoughts, 'refused'>;

const DROPPED: Readonly<Record<string, Counted>> = {
  prefix_binding_mismatch: 'prefix',
  model_binding_mismatch: 'model',
  organization_binding_mismatch: 'account',
};

function kindOf({ type, reason }: Readonly<Record<string, unknown>>): Counted {
  if (type === 'thinking_mismatch_allowed') return 'allowed';
  // OpenAI's entries name the reason and the item. Their `type` is not published.
  if (reason === 'prefix_mismatch') return 'prefix';
  if (type !== 'thinking_dropped') return 'other';
  return Object.hasOwn(DROPPED, asText(reason)) ? (DROPPED[asText(reason)] ?? 'other') : 'other';
}

/** Matches the sentence of Anthropic's error message that names the cause, even if some of its words change. */
const REFUSAL = /\bbound to (?:a|an|the)? ?(?:different|another|other) (?:\w+ )?conversation/i;

/**
 * Says whether the body of an answer with status 400 blames thinking from another conversation. svc sends a form that
 * loses the thinking (`breaksBond`) only after such a refusal. The error for a damaged signature does not have this
 * sentence.
 */
export function isThoughtRefusal(body: string): boolean {
  return REFUSAL.test(body);
}

/** Says whether the provider reports that something before a thought has changed. svc then finds out who changed it. */
export function isUnfit({ prefix, allowed, refused }: LostThoughts): boolean {
  return prefix !== undefined || allowed !== undefined || refused !== undefined;
}
