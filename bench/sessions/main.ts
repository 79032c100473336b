/**
 * `npm run bench:sessions`: what shortening would have cost on real agent sessions, beside doing
 * nothing. See README.md. Without the sessions it says so and ends well.
 */
import { parseArgs } from 'node:util';
import { findCandidates, savedTokens } from '../../src/core/shortening.ts';
import { type Cost, priceSession } from './cost.ts';
import { type Elided, productRule, type Rule, SessionPlanner } from './planner.ts';
import { loadSessions, type Session, type SessionKind } from './sessions.ts';

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '../shared/data/sessions-dev' },
    policy: { type: 'string' },
  },
});

interface Policy {
  readonly name: string;
  readonly rule: Rule;
  readonly leavesSafely: boolean;
}

const ALL_POLICIES: readonly Policy[] = [
  { name: 'svc', rule: productRule, leavesSafely: true },
  // What the bars are about: the history is shortened up to the model's window.
  { name: 'svc, no safe leave', rule: productRule, leavesSafely: false },
  { name: 'half of messages', rule: halfRule, leavesSafely: false },
  // Whatever has become old goes at once.
  { name: 'sliding window', rule: (facts) => findCandidates(facts), leavesSafely: false },
];

const POLICIES = ALL_POLICIES.filter(({ name }) => name === (values.policy ?? name));

// A conversation may cost so much of what it would cost directly.
const WORSE_MAX = 1.01;
const LIFE_MS = 300_000;

for (const kind of ['claude-code', 'codex'] as const) {
  const sessions = loadSessions(values.data, kind);
  if (sessions === undefined)
    print(`SKIPPED: no ${kind} sessions in ${values.data} (--data FOLDER)`);
  else report(kind, sessions);
}

function report(kind: SessionKind, sessions: readonly Session[]): void {
  const planners = sessions.map((session) => new SessionPlanner(session));
  const calls = sessions.reduce((sum, session) => sum + session.calls.length, 0);
  print(`\n${kind}: ${sessions.length} sessions, ${calls} calls; % of forwarding everything`);
  print(
    row(['policy', 'cache', 'tokens', 'price', 'with needs', 'breaks', 'needs', '>101 %', 'worst']),
  );
  for (const [cacheName, cacheMs] of [
    ['alive', Infinity],
    ['real gaps', LIFE_MS],
  ] as const) {
    const direct = sessions.map((it) => priceSession(it, [], { cacheMs, countsNeeds: false }));
    for (const { name, rule, leavesSafely } of POLICIES) {
      const plans = planners.map((planner) => planner.plan(rule, { cacheMs, leavesSafely }));
      print(row([name, cacheName, ...figures({ sessions, plans, direct, cacheMs })]));
    }
  }
}

interface Run {
  readonly sessions: readonly Session[];
  readonly plans: readonly (readonly Elided[])[];
  readonly direct: readonly Cost[];
  readonly cacheMs: number;
}

function figures({ sessions, plans, direct, cacheMs }: Run): string[] {
  const priced = (countsNeeds: boolean): Cost[] =>
    sessions.map((it, at) => priceSession(it, plans[at] ?? [], { cacheMs, countsNeeds }));
  const [without, withNeeds] = [priced(false), priced(true)];
  const shares = without.map(({ price }, at) => price / (direct[at]?.price ?? price));
  const calls = sessions.reduce((sum, session) => sum + session.calls.length, 0);
  return [
    percent(total(without, 'tokens'), total(direct, 'tokens')),
    percent(total(without, 'price'), total(direct, 'price')),
    percent(total(withNeeds, 'price'), total(direct, 'price')),
    (total(without, 'breaks') / sessions.length).toFixed(1),
    `${percent(total(withNeeds, 'needs'), calls)} %`,
    String(shares.filter((share) => share > WORSE_MAX).length),
    percent(Math.max(...shares), 1),
  ];
}

/** The rule from which svc's own was developed. */
function halfRule(facts: Parameters<Rule>[0]): ReturnType<Rule> {
  const old = findCandidates(facts);
  const gain = old.reduce((sum, output) => sum + savedTokens(output), 0);
  const all = facts.items.reduce((sum, { tokens }) => sum + tokens, 0);
  const messages = [...facts.repeated].reduce((sum, it) => sum - savedTokens(it), all);
  const isEnough = facts.isCacheCold ? gain >= 1024 : gain >= Math.max(4096, messages / 2);
  return isEnough ? old : [];
}

function total(costs: readonly Cost[], name: keyof Cost): number {
  return costs.reduce((sum, cost) => sum + cost[name], 0);
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
