/**
 * `npm run bench:sessions`: what shortening would have cost on real agent sessions, beside doing
 * nothing. See README.md. Without the sessions it says so and ends well.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { batchFacts, type Removal, removalOf } from '../../src/core/shortening/removal.ts';
import { type Cost, type Needs, priceSession } from './cost.ts';
import { type Rule, SessionPlanner } from './planner.ts';
import { loadSessions, NotASessionError, type Session, type SessionKind } from './sessions.ts';

const USAGE = `npm run bench:sessions -- [options]
  --data FOLDER   sessions in FOLDER/claude-code and FOLDER/codex, either may be missing; see bench/README.md
  --policy NAME   this policy alone
`;

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    policy: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

const KINDS = ['claude-code', 'codex'] as const;
const OWN_FOLDER = '../shared/data/sessions-dev';

const COLUMNS = ['price', 'fetched', 'in parts', 'breaks', 'needs', '>101 %', 'worst'];

interface Policy {
  readonly name: string;
  readonly cacheTtl?: 'auto';
  readonly rule: Rule;
}

const ALL_POLICIES: readonly Policy[] = [
  { name: 'svc', rule: removalOf },
  { name: 'svc, cacheTtl auto', rule: removalOf, cacheTtl: 'auto' },
  { name: 'half of messages', rule: halfRule },
  { name: 'threshold of 84,000', rule: thresholdRule },
  { name: 'cold cache only', rule: coldRule },
  { name: 'sliding window', rule: slidingRule },
];

const POLICIES = ALL_POLICIES.filter(({ name }) => name === (values.policy ?? name));

// A conversation may cost so much of what it would cost directly.
const WORSE_MAX = 1.01;
const LIFE_MS = 300_000;

process.exitCode = run();

/** The exit code: 2 for wrong usage. */
function run(): number {
  if (values.help) {
    print(USAGE);
    return 0;
  }
  if (POLICIES.length === 0) {
    return refuse(`Known policies: ${ALL_POLICIES.map(({ name }) => name).join('; ')}.`);
  }
  const folder = values.data ?? OWN_FOLDER;
  if (values.data !== undefined && !KINDS.some((kind) => existsSync(join(folder, kind)))) {
    return refuse(`${folder} has neither a folder "claude-code" nor "codex".`);
  }
  try {
    for (const kind of KINDS) {
      const sessions = loadSessions(folder, kind);
      if (sessions === undefined)
        print(`SKIPPED: no ${kind} sessions in ${folder} (--data FOLDER)`);
      else report(kind, sessions);
    }
  } catch (error) {
    if (error instanceof NotASessionError) return refuse(error.message);
    throw error;
  }
  return 0;
}

function refuse(message: string): number {
  process.stderr.write(`${message}\n`);
  return 2;
}

function report(kind: SessionKind, sessions: readonly Session[]): void {
  const planners = sessions.map((session) => new SessionPlanner(session));
  print(`\n${kind}: ${sessions.length} sessions; % of forwarding everything; one policy a row`);
  print(row(['policy', 'cache', 'tokens', ...COLUMNS]));
  for (const [cacheName, cacheMs] of [
    ['alive', Infinity],
    ['real gaps', LIFE_MS],
  ] as const) {
    const direct = sessions.map((it) => priceSession(it, [], { cacheMs, needs: 'ignored' }));
    for (const { name, rule, cacheTtl = 'client' } of POLICIES) {
      const replays = sessions.flatMap((session, at): Replay[] => {
        const elided = planners[at]?.plan(rule, cacheMs);
        const directly = direct[at];
        if (elided === undefined || directly === undefined) return [];
        const price = (needs: Needs): Cost =>
          priceSession(session, elided, { cacheMs, needs, cacheTtl });
        const calls = session.calls.length;
        const [without, whole, parts] = [price('ignored'), price('whole'), price('parts')];
        return [
          { calls, isLong: hasLongRequest(session), direct: directly, without, whole, parts },
        ];
      });
      print(row([name, cacheName, ...figures(replays)]));
      const long = replays.filter(({ isLong }) => isLong);
      if (rule === removalOf && long.length > 0) {
        print(row([`  the ${long.length} past 200,000 tokens`, cacheName, ...figures(long)]));
      }
      if (rule !== removalOf) continue;
      // A rule that holds must hold on both.
      const halves = [0, 1].map((half) => replays.filter((_, at) => at % 2 === half));
      for (const [at, half] of halves.entries()) {
        print(row([`  ${at === 0 ? 'one half' : 'other half'}`, cacheName, ...figures(half)]));
      }
    }
  }
  const stubs = planners.flatMap((planner) => planner.stubs);
  const mean = stubs.reduce((sum, tokens) => sum + tokens, 0) / Math.max(1, stubs.length);
  print(`A stub is ${mean.toFixed(1)} tokens of o200k on average.`);
  const exchanges = planners.reduce((sum, planner) => sum + planner.exchanges, 0);
  print(`Whole exchanges that were left out: ${exchanges}.`);
}

/** A request of it was longer than the windows of most models until 2025. */
function hasLongRequest({ calls }: Session): boolean {
  return calls.some(({ usage }) => usage.in + usage.cw + usage.cr > 200_000);
}

interface Replay {
  readonly calls: number;
  readonly isLong: boolean;
  readonly direct: Cost;
  readonly without: Cost;
  /** With every need read again, whole and in parts. */
  readonly whole: Cost;
  readonly parts: Cost;
}

function figures(replays: readonly Replay[]): string[] {
  const total = (value: (replay: Replay) => number): number =>
    replays.reduce((sum, replay) => sum + value(replay), 0);
  const shares = replays.map(({ without, parts, direct }) => {
    return Math.max(without.price, parts.price) / direct.price;
  });
  const price = total(({ direct }) => direct.price);
  return [
    percent(
      total(({ without }) => without.tokens),
      total(({ direct }) => direct.tokens),
    ),
    percent(
      total(({ without }) => without.price),
      price,
    ),
    percent(
      total(({ whole }) => whole.price),
      price,
    ),
    percent(
      total(({ parts }) => parts.price),
      price,
    ),
    (total(({ without }) => without.breaks) / replays.length).toFixed(1),
    `${percent(
      total(({ parts }) => parts.needs),
      total(({ calls }) => calls),
    )} %`,
    String(shares.filter((share) => share > WORSE_MAX).length),
    percent(Math.max(...shares), 1),
  ];
}

/** Leaves when half of the messages can leave: the rule from which svc's own was developed. */
function halfRule(facts: Parameters<Rule>[0]): Removal {
  const ready = readyIn(facts);
  const { gain, messages } = batchFacts(facts, ready);
  const isEnough = facts.isCacheCold ? gain >= 1024 : gain >= Math.max(4096, messages / 2);
  return isEnough ? ready : { ...ready, batch: [] };
}

/** Leaves when the request has grown past a fixed length. */
function thresholdRule(facts: Parameters<Rule>[0]): Removal {
  const ready = readyIn(facts);
  const { gain, messages } = batchFacts(facts, ready);
  const forwarded = facts.tokens - (tokensIn(facts.view.items) - messages);
  const isPast = forwarded * facts.prices.tokenRatio > 84_000;
  return gain >= 1024 && (facts.isCacheCold || isPast) ? ready : { ...ready, batch: [] };
}

function tokensIn(items: readonly { readonly tokens: number }[]): number {
  return items.reduce((total, { tokens }) => total + tokens, 0);
}

function coldRule(facts: Parameters<Rule>[0]): Removal {
  const ready = readyIn(facts);
  const { gain } = batchFacts(facts, ready);
  return facts.isCacheCold && gain >= 1024 ? ready : { ...ready, batch: [] };
}

/** Whatever has become old goes at once. */
function slidingRule(facts: Parameters<Rule>[0]): Removal {
  return { ...readyIn(facts), batch: facts.old };
}

function readyIn({ repeated, omitted, old, isStored }: Parameters<Rule>[0]): Removal {
  const batch = old.filter(({ digest }) => isStored(digest));
  return { repeated, omitted, batch, omissions: [], otherwise: 'not_worth_it' };
}

function percent(part: number, whole: number): string {
  return ((100 * part) / whole).toFixed(1);
}

function row([first = '', second = '', ...rest]: readonly string[]): string {
  return [first.padEnd(28), second.padEnd(10), ...rest.map((cell) => cell.padStart(10))].join(' ');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
