/**
 * Limits the rate of a caller by the generic cell rate algorithm (GCRA), which stores one number for each caller. A
 * call that comes after the returned wait is accepted if no other call was counted meanwhile.
 */
export interface Rate {
  readonly perMinute: number;
  /** Calls, or units of cost, that may come at once after a pause. */
  readonly burst: number;
}

export interface Turn {
  /** The number to store: when the next call is due, in milliseconds by the clock of `now`. */
  readonly dueAt: number;
  /** Milliseconds to wait; 0 if this call may pass. */
  readonly waitMs: number;
}

const MINUTE_MS = 60_000;
/** Bound on a process's counters for one kind of limit: about 10 MB. The least recently used counter is dropped. */
export const BUCKETS_MAX = 100_000;

/** Counts one call if it may pass. `dueAt`: the value that the last call returned; undefined for the first call. */
export function takeTurn(rate: Rate, dueAt: number | undefined, now: number): Turn {
  return takeCost(rate, { dueAt, now, cost: 1 });
}

/**
 * Counts `cost` units at once if they may pass. A cost above the burst passes once the caller has paused, and delays
 * later calls.
 */
export function takeCost(rate: Rate, { dueAt, now, cost }: CostTurn): Turn {
  const interval = MINUTE_MS / rate.perMinute;
  const due = Math.max(dueAt ?? now, now);
  const wait = due - now - interval * (rate.burst - Math.min(cost, rate.burst));
  if (wait > 0) return { dueAt: due, waitMs: wait };
  return { dueAt: due + interval * cost, waitMs: 0 };
}

export interface CostTurn {
  readonly dueAt: number | undefined;
  readonly now: number;
  readonly cost: number;
}

/** Returns the number to store after `more` further units were used. With a negative `more` units are given back. */
export function bookCost(rate: Rate, dueAt: number, more: number): number {
  return dueAt + (MINUTE_MS / rate.perMinute) * more;
}

/** Returns the address in an entry of X-Forwarded-For, without its port. Undefined if it is no address. */
export function forwardedAddress(entry: string): string | undefined {
  const text = entry.trim().replace(/^"(.*)"$/, '$1');
  const [, four] = /^(\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?$/.exec(text) ?? [];
  if (four !== undefined) return four;
  const six = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? text;
  return /^[\da-f:]*:[\da-f:.]*(?:%\w+)?$/i.test(six) ? six : undefined;
}

/** Returns the address block of one sender: an IPv4 address, or the first 64 bits of IPv6, which one household has. */
export function addressBlock(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? [];
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array.from({ length: zeros }, () => '0'), ...last];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
