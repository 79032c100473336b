import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { within } from '../../../../src/adapters/within.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type {
  CallEnd,
  LeaseAsk,
  LimitAnswer,
  LimitAsk,
  Limiter,
  RateAsk,
} from '../../ports/limiter.ts';

/**
 * The limiter of a service with several nodes, on Redis or Valkey. One script checks and books all limits of a call at
 * once, by the clock of the Redis server, so neither nodes nor their clocks can disagree.
 */

export interface RedisLimiterOptions {
  /** `redis://…` or `rediss://…`. It may contain a password, so no error may quote it. */
  readonly url: string;
  /** The beginning of every key. Two services that share a Redis server need different beginnings. */
  readonly prefix?: string;
  /** Reports one line for people; the line never contains the address. */
  report(line: string): void;
  /** For tests: the script then uses this time instead of the server's. */
  readonly clock?: Pick<Clock, 'now'>;
}

/**
 * Deadline of connecting, of `ping`, and of giving back what was counted too late. A Redis server on the same network
 * needs a millisecond.
 */
const ANSWER_MS = 1000;
/**
 * A connection on which a command waits and nothing arrives for so long is replaced. A primary whose machine died
 * closes no connection, and the system would notice its death only after a quarter of an hour.
 */
const SILENCE_MS = 5000;
const RECONNECT_MAX_MS = 500;

type Operation = 'take' | 'settle' | 'renew';

const MINUTE_MS = 60_000;

export class RedisLimiter implements Limiter {
  readonly #redis: Redis;
  readonly #clock: Pick<Clock, 'now'> | undefined;
  readonly #prefix: string;
  /** By the id of a running call's lease: when it ends unless it is renewed, in milliseconds of this node's clock. */
  readonly #leaseEnds = new Map<string, number>();
  /** The number of calls that were refused because Redis did not answer in time, and that it has not answered yet. */
  #unanswered = 0;

  constructor(options: RedisLimiterOptions) {
    const { url, prefix = 'svc', clock } = options;
    this.#clock = clock;
    this.#prefix = prefix;
    this.#redis = new Redis(url, {
      connectTimeout: ANSWER_MS,
      socketTimeout: SILENCE_MS,
      // A call that cannot be counted is refused at once instead of waiting for the server.
      maxRetriesPerRequest: 0,
      retryStrategy: (attempts) => Math.min(attempts * 50, RECONNECT_MAX_MS),
      // After a failover the former primary is a replica, and keeps its connections. The address leads to the new one.
      reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    });
    let isAway = false;
    this.#redis.on('error', () => {
      if (!isAway)
        options.report('The limiter does not answer, so calls with a limit are refused.');
      isAway = true;
    });
    this.#redis.on('ready', () => {
      if (isAway) options.report('The limiter answers again.');
      isAway = false;
    });
  }

  /**
   * Counts a call. If Redis counts it only after `signal` aborted, the call was refused by then, so what was counted is
   * given back. Until Redis has answered such a call, further calls with a limit are refused without being sent.
   */
  async take(asks: readonly LimitAsk[], signal: AbortSignal): Promise<LimitAnswer> {
    if (asks.length === 0) return PASSED;
    signal.throwIfAborted();
    if (this.#unanswered > 0) throw new Error('The limiter still owes an answer.');
    const onAbort = (): void => void (this.#unanswered += 1);
    signal.addEventListener('abort', onAbort, { once: true });
    const askedAt = this.#now();
    try {
      const answer = answerOf(asks, await this.#run('take', asks.map(countOf), signal));
      const isCounted = answer.refusedBy === undefined && answer.uncounted === undefined;
      if (isCounted && signal.aborted) await this.#giveBack(asks);
      else if (isCounted) this.#noteLeases(asks.filter(isLease), askedAt);
      return answer;
    } finally {
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted) this.#unanswered -= 1;
    }
  }

  /**
   * Renews leases. A lease that is missing although it cannot have ended was lost by the server, for example in a
   * restart, so the call takes its place again.
   */
  async renew(leases: readonly LeaseAsk[], signal: AbortSignal): Promise<void> {
    const askedAt = this.#now();
    const running = new Set(
      leases.filter(({ leaseId }) => askedAt < (this.#leaseEnds.get(leaseId) ?? 0)),
    );
    const counts = leases.map((ask) => {
      const note = running.has(ask) ? 'running' : '';
      return { ask, facts: [...countOf(ask).facts.slice(0, -1), note] };
    });
    try {
      await this.#run('renew', counts, signal);
    } catch (error) {
      // Nobody knows whether the server still has these leases, so the next renewal takes a missing one again.
      for (const { leaseId } of leases) this.#noteEnd(leaseId, Number.POSITIVE_INFINITY);
      throw error;
    }
    for (const { leaseId, ttlMs } of running) this.#noteEnd(leaseId, askedAt + ttlMs);
  }

  async settle({ leases, changes }: CallEnd, signal: AbortSignal): Promise<void> {
    const booked = changes.map(({ ask, more }) => {
      return countOf(ask.kind === 'lease' ? ask : { ...ask, cost: more });
    });
    for (const { leaseId } of leases) this.#leaseEnds.delete(leaseId);
    await this.#run('settle', [...leases.map(countOf), ...booked], signal);
  }

  /**
   * Counts one call against the limit PING, to check that Redis can count. The Redis command PING would not show that:
   * a full server and a replica answer it, but count nothing.
   */
  async ping(): Promise<void> {
    const counting = this.#run('take', [countOf(PING)], AbortSignal.timeout(ANSWER_MS));
    if ((await within(ANSWER_MS, counting)) === undefined) {
      throw new Error('The limiter did not answer in time.');
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  #now(): number {
    return this.#clock?.now() ?? performance.now();
  }

  async #giveBack(asks: readonly LimitAsk[]): Promise<void> {
    const changes = asks.flatMap((ask) => (ask.kind === 'lease' ? [] : { ask, more: -ask.cost }));
    await this.settle({ leases: asks.filter(isLease), changes }, AbortSignal.timeout(ANSWER_MS));
  }

  #noteLeases(leases: readonly LeaseAsk[], askedAt: number): void {
    for (const { leaseId, ttlMs } of leases) this.#leaseEnds.set(leaseId, askedAt + ttlMs);
  }

  /**
   * Notes when the lease of a running call ends. Ignores a lease that was given back meanwhile, or that never began on
   * this node.
   */
  #noteEnd(leaseId: string, endsAt: number): void {
    if (this.#leaseEnds.has(leaseId)) this.#leaseEnds.set(leaseId, endsAt);
  }

  async #run(operation: Operation, counts: readonly Count[], signal: AbortSignal) {
    if (counts.length === 0) return undefined;
    signal.throwIfAborted();
    const keys = counts.map(({ ask }) => this.#keyOf(ask));
    const now = this.#clock === undefined ? '' : String(this.#clock.now());
    const values = [...keys, operation, now, ...counts.flatMap(({ facts }) => facts)];
    try {
      return await this.#redis.evalsha(SCRIPT_SHA, keys.length, ...values);
    } catch (error) {
      // After a restart the server does not have the script.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#redis.eval(SCRIPT, keys.length, ...values);
    }
  }

  /** Returns a limit's key. Redis Cluster hashes only the part in braces, so one server has all limits of a tenant. */
  #keyOf({ tenant, kind, bucket }: LimitAsk): string {
    return `${this.#prefix}:{${tenant}}:${kind}:${bucket}`;
  }
}

const PASSED: LimitAnswer = { refusedBy: undefined, waitMs: 0 };

/** A limit for `ping`, so high that it refuses nothing. */
const PING: RateAsk = {
  kind: 'rate',
  name: 'ping',
  tenant: 'service',
  bucket: 'ping',
  rate: { perMinute: 1e6, burst: 1e6 },
  cost: 1,
};

function isLease(ask: LimitAsk): ask is LeaseAsk {
  return ask.kind === 'lease';
}

/** Reads the script's answer to a call. */
function answerOf(asks: readonly LimitAsk[], answer: unknown): LimitAnswer {
  const [place, waitMs, ...uncounted] = Array.isArray(answer) ? answer.map(Number) : [];
  if (uncounted.length > 0) {
    return { ...PASSED, uncounted: uncounted.map((at) => asks[at - 1]?.bucket ?? '') };
  }
  if (place === undefined || waitMs === undefined || Number.isNaN(waitMs)) {
    throw new TypeError('The limiter did not answer.');
  }
  return place === 0 ? PASSED : { refusedBy: asks[place - 1]?.name, waitMs };
}

/** A limit, and what the script needs of it. `facts`: its kind and four values. */
interface Count {
  readonly ask: LimitAsk;
  readonly facts: readonly (string | number)[];
}

/** Makes the script's values for a limit. */
function countOf(ask: LimitAsk): Count {
  switch (ask.kind) {
    case 'rate': {
      const { rate, cost } = ask;
      return { ask, facts: ['rate', cost, MINUTE_MS / rate.perMinute, rate.burst, ''] };
    }
    case 'budget':
      return { ask, facts: ['budget', ask.cost, ask.max, ask.known ?? '', ask.until] };
    case 'lease':
      return { ask, facts: ['lease', ask.leaseId, ask.max, ask.ttlMs, ''] };
  }
}

// The script reads all rates and budgets with one MGET, because each Redis command takes one or two microseconds. It
// writes numbers with 17 digits, so that they are read back exactly. A key expires a minute after its limit no longer
// needs the value.
const SCRIPT = `
local call, operation = redis.call, ARGV[1]
local now = tonumber(ARGV[2])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function exactly(value) return string.format('%.17g', value) end

local function place(key, mark, lease, ttl)
  call('ZADD', key, mark, exactly(now + ttl), lease)
  call('PEXPIRE', key, string.format('%.0f', ttl + 60000))
end

local function keep(key, value, ending)
  local lasts = math.ceil(math.max(ending - now, 0)) + 60000
  call('SET', key, exactly(value), 'PX', string.format('%.0f', lasts))
end

local worst, wait = 0, 0
local function refuse(at, ms)
  if ms > wait then worst, wait = at, ms end
end

local counted, places = {}, {}
for at, key in ipairs(KEYS) do
  if ARGV[at * 5 - 2] ~= 'lease' then
    counted[#counted + 1], places[#places + 1] = key, at
  end
end
local held = {}
if #counted > 0 then
  for at, value in ipairs(call('MGET', unpack(counted))) do held[places[at]] = tonumber(value or nil) end
end

local values, ends, uncounted, floors, lost = {}, {}, {}, {}, {}
for at, key in ipairs(KEYS) do
  local from = at * 5 - 2
  local kind, cost = ARGV[from], ARGV[from + 1]
  if kind == 'rate' then
    local interval, burst = tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3])
    local due = held[at] or now
    if operation == 'take' then
      due = math.max(due, now)
      refuse(at, due - now - interval * (burst - math.min(cost, burst)))
    end
    values[at] = due + interval * cost
    ends[at] = values[at]
  elseif kind == 'budget' then
    local max, ending = tonumber(ARGV[from + 2]), tonumber(ARGV[from + 4])
    local known = tonumber(ARGV[from + 3])
    if held[at] or known then
      local spent = math.max(held[at] or 0, known or 0)
      if not held[at] then floors[at] = spent end
      if operation == 'take' and (spent >= max or spent + cost > max) then
        refuse(at, math.max(1, ending - now))
      end
      values[at] = math.max(0, spent + cost)
      ends[at] = ending
    elseif operation == 'take' then
      uncounted[#uncounted + 1] = tostring(at)
    end
  elseif operation == 'take' then
    local max = tonumber(ARGV[from + 2])
    local isFull = call('ZCARD', key) >= max
    -- Expired leases of dead processes are removed only when a place is needed.
    if isFull and call('ZREMRANGEBYSCORE', key, '-inf', exactly(now)) > 0 then
      isFull = call('ZCARD', key) >= max
    end
    if isFull then refuse(at, 1000) end
  elseif operation == 'settle' then
    call('ZREM', key, cost)
  else
    -- A server that was restarted has lost the places of running calls: each takes its place again.
    if lost[key] == nil then lost[key] = call('EXISTS', key) == 0 end
    local standing = call('ZSCORE', key, cost)
    local isLost = lost[key] or (ARGV[from + 4] == 'running' and not standing)
    if isLost then place(key, 'NX', cost, ARGV[from + 3])
    elseif standing and tonumber(standing) > now then place(key, 'XX', cost, ARGV[from + 3]) end
  end
end
if #uncounted > 0 then return { '0', '0', unpack(uncounted) } end
if worst > 0 then
  -- The known spending is stored, or each refused call would read it from the receipts again.
  for at, spent in pairs(floors) do keep(KEYS[at], spent, ends[at]) end
  return { tostring(worst), exactly(wait) }
end

for at, key in ipairs(KEYS) do
  if values[at] then
    keep(key, values[at], ends[at])
  elseif operation == 'take' then
    place(key, 'NX', ARGV[at * 5 - 1], ARGV[at * 5 + 1])
  end
end
return { '0', '0' }
`;

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');
