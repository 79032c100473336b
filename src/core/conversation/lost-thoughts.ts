import { asList, asRecord, asText } from '../bytes/json-fields.ts';

/**
 * Thoughts of a request that the provider did not use as they were sent. Providers bind thinking to
 * everything before it, and report in the answer what they made of thoughts that no longer fit.
 *
 * Anthropic: preserved thinking, 2026-11, and the types of its SDK. OpenAI: "Keep the prefix unchanged",
 * 2026-11. Both ask to ignore entries of unknown kinds, so those are only counted.
 */

/** Counts by reason; a reason without a thought is absent. */
export interface LostThoughts {
  /** Dropped, because something before them has changed. */
  readonly prefix?: number;
  /** Dropped, because another model cannot read them. */
  readonly model?: number;
  /** Dropped, because they were made in another account. */
  readonly account?: number;
  /** Used and billed, although something before them has changed. */
  readonly allowed?: number;
  /** Reported in a way that svc does not know. */
  readonly other?: number;
  /** The provider refused the whole request, because something before its thoughts has changed. */
  readonly refused?: 1;
}

/** Bounds what is counted. A request of today's largest window has fewer items. */
const ENTRIES_MAX = 10_000;

/** Reads a list of `input_transformations`. Undefined where no thought was lost. */
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
  // OpenAI's entries name the reason and the item. Its name for their type is not published.
  if (reason === 'prefix_mismatch') return 'prefix';
  if (type !== 'thinking_dropped') return 'other';
  return Object.hasOwn(DROPPED, asText(reason)) ? (DROPPED[asText(reason)] ?? 'other') : 'other';
}

/** The sentence of the error that names the cause; a word of it may change. */
const REFUSAL = /\bbound to (?:a|an|the)? ?(?:different|another|other) (?:\w+ )?conversation/i;

/**
 * Whether the body of a 400 says that thinking is bound to another conversation. Only such a request can
 * succeed without its thinking; a damaged signature is refused with the same words before that sentence.
 */
export function isThoughtRefusal(body: string): boolean {
  return REFUSAL.test(body);
}

/** Sums over the requests of the log. */
export interface ThoughtSums {
  /** Thoughts that the provider dropped, and those among them that no longer fit what is before them. */
  readonly dropped: number;
  readonly unfit: number;
  /** Requests that the provider refused because thoughts no longer fit. */
  readonly refused: number;
  /** The part of `unfit` and `refused` where svc was the first to change something. */
  readonly bySvc: number;
}

/** Whether thoughts no longer fit what is before them, so that it matters who changed that. */
export function isUnfit({ prefix, allowed, refused }: LostThoughts): boolean {
  return prefix !== undefined || allowed !== undefined || refused !== undefined;
}

/** Tells a person what became of the thoughts of one request. `by`: who changed something first. */
export function lostThoughtsText(lost: LostThoughts, by?: 'client' | 'svc'): string {
  const { prefix = 0, model = 0, account = 0, allowed = 0, other = 0, refused } = lost;
  const deeds = [
    ...(refused === undefined ? [] : [`refused the request, because ${CHANGED}`]),
    ...(prefix === 0 ? [] : [`dropped ${blocks(prefix)}, because ${CHANGED}`]),
    ...(model === 0 ? [] : [`dropped ${blocks(model)} that another model had made`]),
    ...(account === 0 ? [] : [`dropped ${blocks(account)} that another account had made`]),
    ...(allowed === 0 ? [] : [`used ${blocks(allowed)}, although ${CHANGED}`]),
    ...(other === 0 ? [] : [`reported ${other} in a way that svc does not know`]),
  ];
  const who = isUnfit(lost) ? ` ${WHO[by ?? 'unknown']}` : '';
  return `The provider ${deeds.join(', and ')}.${who}`;
}

const CHANGED = 'something before the thinking had changed';
const WHO = {
  client: 'The client changed it first.',
  svc: 'svc changed it first.',
  unknown: 'svc does not know who changed it.',
} as const;

function blocks(count: number): string {
  return count === 1 ? '1 thinking block' : `${count} thinking blocks`;
}

/** The same for many requests; undefined where nothing was lost. */
export function thoughtSumsText(sums: ThoughtSums): string | undefined {
  const { dropped, unfit, refused, bySvc } = sums;
  if (dropped + refused === 0) return undefined;
  const requests = refused === 1 ? '1 request' : `${refused} requests`;
  return (
    `Providers dropped ${blocks(dropped)}, ${unfit} of them because something before them had changed, ` +
    `and refused ${requests} for that reason. svc had changed something first in ${bySvc} of these cases.`
  );
}
