import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Clock } from '../../ports/clock.ts';
import type { CostChange, LeaseAsk, LimitAnswer, LimitAsk, Limiter } from '../../ports/limiter.ts';

/**
 * The limiter of a service that runs as several nodes: Redis or Valkey counts for all of them. One
 * script judges and books all limits of a call at once, by the clock of that server, so neither two
 * nodes nor their clocks can disagree. It rejects when the server does not answer.
 */

export interface RedisLimiterOptions {
  /** `redis://…` or `rediss://…`. Holds a password: no error may quote it. */
  readonly url: string;
  /** Begins the name of every key: services that share a server differ in it. */
  readonly prefix?: string;
  /** One line for people; never with the address. */
  report(line: string): void;
  /** In tests: the script then takes this time for the server's own. */
  readonly clock?: Pick<Clock, 'now'>;
}

/** A limiter on the same network answers in a millisecond. */
const ANSWER_MS = 1000;
const RECONNECT_MAX_MS = 500;

/** One limit as the script reads it. */
type Limit =
  | {
      readonly kind: 'rate';
      readonly interval: number;
      readonly burst: number;
      readonly cost: number;
    }
  | {
      readonly kind: 'budget';
      readonly max: number;
      readonly cost: number;
      readonly known: number;
      readonly until: number;
    }
  | { readonly kind: 'lease'; readonly max: number; readonly lease: string; readonly ttl: number };

type Operation = 'take' | 'adjust' | 'renew' | 'release';

const MINUTE_MS = 60_000;

export class RedisLimiter implements Limiter {
  readonly #redis: Redis;
  readonly #clock: Pick<Clock, 'now'> | undefined;
  readonly #prefix: string;

  constructor(options: RedisLimiterOptions) {
    const { url, prefix = 'svc', clock } = options;
    this.#clock = clock;
    this.#prefix = prefix;
    this.#redis = new Redis(url, {
      commandTimeout: ANSWER_MS,
      connectTimeout: ANSWER_MS,
      // A call that cannot be counted is refused at once, not when the server is back.
      maxRetriesPerRequest: 0,
      retryStrategy: (attempts) => Math.min(attempts * 50, RECONNECT_MAX_MS),
    });
    let isAway = false;
    this.#redis.on('error', () => {
      if (!isAway) options.report('The limiter is away: calls with a limit are refused.');
      isAway = true;
    });
    this.#redis.on('ready', () => {
      if (isAway) options.report('The limiter is back.');
      isAway = false;
    });
  }

  async take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer> {
    if (asks.length === 0) return PASSED;
    const answer = await this.#run('take', asks, { limits: asks.map(limitOf), signal });
    const [place, waitMs] = Array.isArray(answer) ? answer.map(Number) : [];
    if (place === undefined || waitMs === undefined || Number.isNaN(waitMs)) {
      throw new TypeError('The limiter gave no answer.');
    }
    return place === 0 ? PASSED : { refusedBy: asks[place - 1]?.name, waitMs };
  }

  async adjust(changes: readonly CostChange[], signal: AbortSignal): Promise<void> {
    const asks = changes.map(({ ask }) => ask);
    const limits = changes.map(({ ask, more }) => ({ ...limitOf(ask), cost: more }));
    await this.#run('adjust', asks, { limits, signal });
  }

  async renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void> {
    await this.#run('renew', leases, { limits: leases.map(limitOf), signal });
  }

  async release(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void> {
    await this.#run('release', leases, { limits: leases.map(limitOf), signal });
  }

  /** Rejects where the server does not answer in time. */
  async ping(): Promise<void> {
    await this.#redis.ping();
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  async #run(
    operation: Operation,
    asks: readonly LimitAsk[],
    { limits, signal }: { readonly limits: readonly object[]; readonly signal: AbortSignal },
  ): Promise<unknown> {
    if (asks.length === 0) return undefined;
    signal.throwIfAborted();
    const keys = asks.map((ask) => this.#keyOf(ask));
    const now = this.#clock === undefined ? '' : String(this.#clock.now());
    const values = [...keys, operation, now, JSON.stringify(limits)];
    try {
      return await this.#redis.evalsha(SCRIPT_SHA, keys.length, ...values);
    } catch (error) {
      // A server that was started anew does not know the script.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#redis.eval(SCRIPT, keys.length, ...values);
    }
  }

  /** A cluster looks at the part in braces alone: the limits of one call lie on one server. */
  #keyOf({ tenant, kind, bucket }: LimitAsk): string {
    return `${this.#prefix}:{${tenant}}:${kind}:${bucket}`;
  }
}

const PASSED: LimitAnswer = { refusedBy: undefined, waitMs: 0 };

function limitOf(ask: LimitAsk): Limit {
  switch (ask.kind) {
    case 'rate': {
      const { rate, cost } = ask;
      return { kind: 'rate', interval: MINUTE_MS / rate.perMinute, burst: rate.burst, cost };
    }
    case 'budget': {
      const { max, cost, known, until } = ask;
      return { kind: 'budget', max, cost, known, until };
    }
    case 'lease':
      return { kind: 'lease', max: ask.max, lease: ask.leaseId, ttl: ask.ttlMs };
  }
}

// A number is written with 17 digits: then it is read as the very same. Keys outlive what they say by
// a minute, and vanish by themselves.
const SCRIPT = `
local operation, given, limits = ARGV[1], ARGV[2], cjson.decode(ARGV[3])
local time = redis.call('TIME')
local now = given ~= '' and tonumber(given) or time[1] * 1000 + math.floor(time[2] / 1000)

local function write(key, value, lasts)
  local ms = math.ceil(math.max(lasts, 0)) + 60000
  redis.call('SET', key, string.format('%.17g', value), 'PX', string.format('%.0f', ms))
end

local function dueAt(key, limit)
  return math.max(tonumber(redis.call('GET', key) or now), operation == 'take' and now or 0)
end

local function spent(key, limit)
  return math.max(tonumber(redis.call('GET', key) or 0), limit.known)
end

local function waitFor(key, limit)
  if limit.kind == 'rate' then
    return dueAt(key) - now - limit.interval * (limit.burst - math.min(limit.cost, limit.burst))
  end
  if limit.kind == 'budget' then
    local used = spent(key, limit)
    local isOver = used >= limit.max or used + limit.cost > limit.max
    return isOver and math.max(1, limit['until'] - now) or 0
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.17g', now))
  return redis.call('ZCARD', key) < limit.max and 0 or 1000
end

local function place(key, limit, mark)
  redis.call('ZADD', key, mark, string.format('%.17g', now + limit.ttl), limit.lease)
  redis.call('PEXPIRE', key, string.format('%.0f', limit.ttl + 60000))
end

local function book(key, limit)
  if limit.kind == 'rate' then
    local due = dueAt(key) + limit.interval * limit.cost
    write(key, due, due - now)
  elseif limit.kind == 'budget' then
    write(key, math.max(0, spent(key, limit) + limit.cost), limit['until'] - now)
  elseif operation == 'take' then
    place(key, limit, 'NX')
  end
end

if operation == 'take' then
  local worst, wait = 0, 0
  for at, limit in ipairs(limits) do
    local own = waitFor(KEYS[at], limit)
    if own > wait then worst, wait = at, own end
  end
  if worst > 0 then return { tostring(worst), string.format('%.17g', wait) } end
  for at, limit in ipairs(limits) do book(KEYS[at], limit) end
  return { '0', '0' }
end

for at, limit in ipairs(limits) do
  if operation == 'adjust' then
    book(KEYS[at], limit)
  elseif operation == 'release' then
    redis.call('ZREM', KEYS[at], limit.lease)
  else
    local ends = redis.call('ZSCORE', KEYS[at], limit.lease)
    if ends and tonumber(ends) > now then place(KEYS[at], limit, 'XX') end
  end
end
return { '0', '0' }
`;

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');
