import {
  elementsOf,
  firstMember,
  isSpace,
  keyIs,
  memberValue,
  nextMember,
  opensList,
  opensObject,
  parseSpan,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { asRecord } from '../bytes/json-fields.ts';
import { CACHE_DEFAULT_MS, lifetimeMs } from '../dialects/common.ts';
import type { RequestView } from '../conversation/view.ts';
import type { LongCache } from '../ledger/entries.ts';
import { type Edit, insertAt } from '../plan/item-edits.ts';

/**
 * Decides whether the provider should cache tools and system prompt for an hour, and writes that into the client's own
 * cache marks. This needs the setting `cacheTtl: "auto"`.
 * Writing such an entry costs 2 times the price of an input token instead of 1.25 times. After a pause that an ordinary
 * entry does not survive, the long-lived one is read for 0.1 times instead of written again for 1.25 times. So one
 * such pause pays for the write.
 */

const HOUR_MS = 3_600_000;

const NOT_YET: LongCache = { isLong: false, bridged: 0, isOver: false };

/**
 * Returns the decision after a pause of `idleMs` milliseconds; undefined if it does not change. The first pause between
 * the default lifetime and an hour switches the long lifetime on, because the provider must write the prefix again
 * anyway. Three in four of 64 real sessions with such a pause have another one before a pause of more than an hour.
 * After more than an hour everything is written again, so the long lifetime stays only if it has bridged a pause since
 * the last write.
 */
export function afterPause(before = NOT_YET, idleMs: number): LongCache | undefined {
  if (before.isOver || idleMs <= CACHE_DEFAULT_MS) return undefined;
  const { isLong, bridged } = before;
  if (idleMs <= HOUR_MS) {
    return { isLong: true, bridged: isLong ? bridged + 1 : 0, isOver: false };
  }
  return isLong ? { isLong: bridged > 0, bridged: 0, isOver: false } : undefined;
}

/** Share of the prefix that must be read from the cache, so that the long-lived entry counts as found. */
const SERVED_SHARE = 0.5;

/** Says whether the provider found the long-lived entry. `cacheRead`: the tokens that it read from its cache. */
export function wasServed(cacheRead: number, prefixTokens: number): boolean {
  return cacheRead >= SERVED_SHARE * prefixTokens;
}

/**
 * Returns edits that give the cache marks on tools and system prompt a lifetime of an hour, unless a mark states one.
 * The provider refuses a long lifetime after a short one, so the edits end at the first mark with a shorter lifetime.
 */
export function longCacheEdits(view: RequestView): readonly Edit[] {
  const edits: Edit[] = [];
  for (const mark of prefixMarks(view)) {
    const said = asRecord(parseSpan(view.bytes, mark));
    if (said['type'] !== 'ephemeral') return edits;
    if ('ttl' in said) {
      if (lifetimeMs(said['ttl']) < HOUR_MS) return edits;
      continue;
    }
    // Insert after the last member, in front of white space and the closing brace.
    let end = mark.end - 1;
    while (isSpace(view.bytes[end - 1])) end -= 1;
    edits.push(insertAt(end, `,"ttl":"1h"`));
  }
  return edits;
}

/** Returns the values of `cache_control`: first those of tools, then those of the system prompt. */
function prefixMarks({ bytes, list, isTextInput }: RequestView): readonly Span[] {
  const found = new Map<string, Span>();
  const open = bytes.indexOf('{');
  if (isTextInput || open === -1) return [];
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    const start = member.valueStart;
    // Skip the conversation, which may have megabytes; its end is known.
    const end = start === list.start ? list.end : valueEnd(bytes, start);
    for (const name of PREFIX) if (keyIs(bytes, member.key, name)) found.set(name, { start, end });
    member = nextMember(bytes, end);
  }
  return PREFIX.flatMap((name) => {
    const value = found.get(name);
    return value === undefined ? [] : marksIn(bytes, value);
  });
}

const PREFIX = ['tools', 'system'] as const;

function marksIn(bytes: Buffer, value: Span): readonly Span[] {
  if (!opensList(bytes, value.start)) return [];
  return elementsOf(bytes, value).flatMap((start) => {
    const mark = opensObject(bytes, start) ? memberValue(bytes, start, 'cache_control') : undefined;
    return mark !== undefined && opensObject(bytes, mark.start) ? [mark] : [];
  });
}
