import { type Fate, type Judged, withoutNotes } from './judge.ts';

/** The law of the provider's cache: what an earlier request of the conversation sent stays as it was. */

export interface Sent {
  readonly judged: Judged;
  /** Nothing was decided for its newest prompt: the next request may place a block there. */
  readonly isUndecided: boolean;
  /** The evidence says that something was left out. */
  readonly isBatchTold: boolean;
}

export interface Compared {
  readonly compared: number;
  readonly isBatch: boolean;
}

/**
 * Compares with the earlier requests that share most with this one. A person who went back has several
 * of them, and the provider may have any of them in its cache: one must fit.
 */
export function expectPricedPrefix(earlier: readonly Sent[], now: Sent): Compared {
  const shares = earlier.map((sent) => shared(sent.judged, now.judged));
  const most = Math.max(0, ...shares);
  const problems: string[] = [];
  for (const [index, sent] of [...earlier.entries()].toReversed()) {
    if (shares[index] !== most || most === 0) continue;
    const result = compare(sent, now, most);
    if (typeof result !== 'string') return result;
    problems.push(result);
  }
  if (problems[0] !== undefined) throw new Error(`prefix break: ${problems[0]}`);
  return { compared: 0, isBatch: false };
}

function shared(one: Judged, other: Judged): number {
  const differs = one.client.findIndex((said, at) => other.client[at] !== said);
  return differs === -1 ? one.client.length : differs;
}

/**
 * The least that any batch takes out: 1,024 tokens, of which the texts here have over 3 characters each.
 * Less than that leaves by mistake, and the cache is written anew for nothing.
 */
const BATCH_CHARS_MIN = 3_000;

/**
 * How many of the shared items the provider may have in its cache. That an item left shows only in the
 * next one that stayed. Where the client has changed that one, the cached prefix ends in front of the gap:
 * the provider reads everything behind it anew, whether the gap stays or not.
 */
function cachedItems({ judged }: Sent, most: number): number {
  return judged.fates.slice(0, most).findLastIndex(({ kind }) => kind === 'kept') + 1;
}

/** Claude Code refers by this to what it has read before, so an output that was left out comes back. */
export const UNCHANGED = 'File unchanged since last read';

/** How many items were compared, or what broke. */
function compare(before: Sent, now: Sent, most: number): Compared | string {
  const changes: string[] = [];
  let [left, notes, returned] = [0, 0, 0];
  const cached = cachedItems(before, most);
  for (let at = 0; at < cached; at += 1) {
    const [was, is] = [before.judged.fates[at], now.judged.fates[at]];
    if (was === undefined || is === undefined) continue;
    if (before.isUndecided && at === before.judged.client.length - 1) continue;
    const [one, other] = [saidBy(was), saidBy(is)];
    // A prompt that was a part of the history is asked again: it had no block, and may get one now.
    const isAskedAgain =
      at === now.judged.client.length - 1 && at < before.judged.client.length - 1;
    if (one === other || (isAskedAgain && !one.includes('<svc-memory '))) continue;
    if (leftBy(is) > leftBy(was)) left += one.length - (is.kind === 'left' ? 0 : other.length);
    else if (was.kind === 'left' && at >= now.judged.newest) {
      // After a step back it is one of the two newest exchanges, which are always kept. Behind it the
      // provider reads everything anew.
      returned += 1;
      break;
    } else if (leftBy(is) < leftBy(was) && now.judged.client.some((it) => it.includes(UNCHANGED))) {
      returned += 1;
      break;
    } else if (withoutNotes(one) === withoutNotes(other)) notes += 1;
    else changes.push(`item ${at} was ${around(one, other)} and is ${around(other, one)}`);
  }
  if (changes.length > 0) return changes.join('\n');
  if (notes > 0 && left + returned === 0) return 'a note moved although nothing left';
  if (left > 0 && !now.isBatchTold) return 'a batch left and was not told';
  const all = left + leftBehind(now.judged, most);
  if (left > 0 && all < BATCH_CHARS_MIN) return `${all} characters left, which no batch pays for`;
  return { compared: most, isBatch: left > 0 };
}

/**
 * The characters that left behind the shared items. Where a client edits its history, a batch takes texts in
 * front of the edit and behind it, and all of them pay for it.
 */
function leftBehind({ client, fates }: Judged, most: number): number {
  return fates.slice(most).reduce((sum, fate, at) => {
    if (fate.kind === 'left') return sum + (client[most + at]?.length ?? 0);
    return fate.stubs.reduce((rest, { text, stub }) => rest + text.length - stub.length, sum);
  }, 0);
}

function saidBy(fate: Fate): string {
  return fate.kind === 'left' ? '(left out)' : fate.said;
}

function leftBy(fate: Fate): number {
  return fate.kind === 'left' ? 1 : fate.stubs.length;
}

/** Items are long: the place where they differ says enough. */
function around(text: string, other: string): string {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  return JSON.stringify(text.slice(Math.max(0, at - 30), at + 250));
}
