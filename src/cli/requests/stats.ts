import { cacheShare, dollars, short } from '../../core/meter/figures.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import { thoughtSumsText } from '../../core/plan/states.ts';
import { type Money, moneyOf } from '../../core/settings/money.ts';
import { moneySum } from '../../core/settings/priced-share.ts';
import type { RequestSum } from '../../ports/request-log.ts';
import { count, limitOf, percent } from '../listing.ts';
import type { TrialMeasure, TrialReport } from '../../core/meter/trial-report.ts';
import { namesOf } from '../memory/named.ts';
import { readLog } from '../store.ts';
import { bar, table } from '../text-table.ts';
import { PRICES_READ_ON } from '../../core/settings/model-facts.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import type { Call } from '../context.ts';

/** Runs `svc stats`: sums the proxy's requests by day, client and project. */

interface StatsOptions {
  readonly days?: string;
  readonly json?: boolean;
}

/** The default and the maximum of --days. The request log keeps 90 days. */
const DAYS = { fallback: 30, max: 90, name: '--days' };
const BAR_COLUMNS = 20;
const ROWS_MAX = 30;

interface Total extends Omit<RequestSum, 'day' | 'client' | 'space' | 'model' | 'isLogin'> {
  /** US dollars, by list prices, for requests that a key paid; undefined if too few of their tokens have a price. */
  readonly money: Money | undefined;
  /** The tokens that a key paid: all of them, and those of models with a list price. */
  readonly keyTokens: { readonly all: number; readonly priced: number };
  /** Input and output tokens that a login paid. */
  readonly loginTokens: number;
}

interface Group extends Total {
  readonly name: string;
}

export async function showStats({ options, context }: Call<StatsOptions>): Promise<void> {
  const { terminal } = context;
  const days = limitOf(options.days, DAYS);
  // Begin at midnight, because half a day would look like a day with few requests.
  const since = new Date();
  since.setHours(0, 0, 0, 0);
  // Count days by the calendar, because a day with a clock change has 23 or 25 hours.
  since.setDate(since.getDate() - (days - 1));
  // Set no end: a request that a wrong clock has dated in the future was paid for too.
  const { sums, trial } = await readLog(context, async ({ requests }) => ({
    sums: await requests.sum({ since: since.getTime() }),
    trial: await requests.trial(since.getTime()),
  }));
  const total = totalOf(sums);
  const groups = {
    byDay: grouped(sums, ({ day }) => day),
    byClient: busiest(grouped(sums, ({ client }) => client)),
    byProject: busiest(grouped(sums, ({ space }) => space)),
  };
  if (options.json === true) {
    const rated = Object.entries(groups).map(([name, all]) => [name, all.map(withRates)] as const);
    const all = { days, total: withRates(total), ...Object.fromEntries(rated), holdOut: trial };
    terminal.json(all);
  } else if (sums.length === 0) terminal.note('svc handled no request in these days.');
  else {
    const names = namesOf(sums, context);
    const byProject = groups.byProject.map((one) => ({ ...one, name: names.wordsOf(one.name) }));
    show(days, total, { ...groups, byProject }, terminal);
    showTrial(trial, terminal);
  }
}

const INDENT = ' '.repeat(12);

/**
 * Returns the lines about money. Dollars are for requests that a key paid, and only if nearly all their tokens have a
 * list price. A login is paid by the month, so its line has tokens.
 */
function moneyLines({ money, keyTokens, loginTokens }: Total): string[][] {
  return [
    ...(keyTokens.all > 0 ? [['Money', moneyText(money, keyTokens)]] : []),
    ...(loginTokens > 0 ? [['Logins', `${short(loginTokens)} tokens with your logins`]] : []),
  ];
}

function moneyText(money: Total['money'], { all, priced }: Total['keyTokens']): string {
  if (money === undefined) {
    return priced === 0
      ? 'unknown: svc has no list price of these models'
      : `unknown: svc has list prices for ${percent(priced / all)} of the tokens that your keys paid`;
  }
  const { paid, direct } = money;
  const less = direct - paid;
  const rest = less < 0 ? `${dollars(-less)} more than` : `${dollars(less)} less than`;
  const what = Math.abs(less) < 0.005 ? 'about as much as' : rest;
  return `${dollars(paid)} to providers for requests with a key, by list prices of ${PRICES_READ_ON}, cache and answers included: ${what} without svc`;
}

const MEASURES: Readonly<Record<TrialMeasure, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  corrections: 'corrections',
  paid: 'cost of the input, in tokens at full price',
};

/** Prints the hold-out experiment: means per conversation with and without svc, and the range of the difference. */
function showTrial({ conversations, results }: TrialReport, terminal: Terminal): void {
  if (conversations.with + conversations.without === 0) return;
  terminal.out('');
  terminal.out(
    terminal.colors.bold(
      `Hold-out: ${conversations.with} conversations with svc's memory and shortening, ${conversations.without} without`,
    ),
  );
  for (const { measure, change, ...means } of results) {
    const told = change === undefined ? 'too few to tell' : rangeOf(change);
    const line = `  ${MEASURES[measure]}: ${mean(means.with)} with, ${mean(means.without)} without: ${told}`;
    terminal.row(line, '    ');
  }
}

function mean(value: number): string {
  return value < 10 ? value.toFixed(1) : short(value);
}

function rangeOf({ low, high }: { readonly low: number; readonly high: number }): string {
  const what = 'with svc (95 % interval)';
  if (high <= 0) return `${percent(-high)} to ${percent(-low)} less ${what}`;
  if (low >= 0) return `${percent(low)} to ${percent(high)} more ${what}`;
  return `no clear difference, ${percent(-low)} less to ${percent(high)} more ${what}`;
}

function show(
  days: number,
  total: Total,
  groups: Readonly<Record<'byDay' | 'byClient' | 'byProject', readonly Group[]>>,
  terminal: Terminal,
): void {
  const { usage } = total;
  const failed = total.failed === 0 ? '' : `, ${total.failed} failed or stopped`;
  const when = days === 1 ? 'Today' : `Last ${days} days`;
  terminal.out(`${when}: ${count(total.requests, 'request')}${failed}`);
  const lines = [
    ...moneyLines(total),
    ['Price', priceText(total)],
    [
      'Recall',
      `${total.recalled} of ${count(total.asked, 'request')} carried memories (${percent(recallRate(total))}), ` +
        `${total.briefs} more only the list of earlier sessions, ` +
        `${short(total.recalledTokens)} tokens added, memory failed ${count(total.degraded, 'time')}${lateText(total)}`,
    ],
    ...(total.looks === 0 ? [] : [['Second looks', secondLooksText(total)]]),
    ...(total.prompts === 0 ? [] : [['Used', usedText(total)]]),
    [
      'Requests',
      `${short(total.originalInputTokens)} tokens came in, ${short(total.forwardedInputTokens)} left ` +
        `(estimates), ${short(total.elidedTokens)} left out`,
    ],
    [
      'Provider',
      `${short(usage.input)} tokens at full price, ${short(usage.cacheRead)} from its cache ` +
        `(${percent(cacheShare([total]))}), ${short(usage.cacheWrite)} written to it, ${short(usage.output)} answered`,
    ],
    ['Again', `a model read left-out outputs again ${count(total.readings, 'time')}`],
  ];
  const thoughts = thoughtSumsText(total.thoughts);
  if (thoughts !== undefined) lines.push(['Thinking', thoughts]);
  for (const [name = '', text = ''] of lines) terminal.row(`  ${name.padEnd(9)} ${text}`, INDENT);
  showGroups('Day', groups.byDay, terminal);
  showGroups('Client', groups.byClient, terminal);
  showGroups('Project', groups.byProject, terminal);
}

function usedText({ prompts, promptsUsed }: Total): string {
  return (
    `the model used the memories of ${promptsUsed} of ${count(prompts, 'prompt')} that got some. ` +
    'svc counts that it read one in full, or named something that only the memories name'
  );
}

function lateText({ degraded, late }: Total): string {
  if (late === 0) return '';
  return late === degraded
    ? ', because it was too late'
    : `, ${late} of them because it was too late`;
}

function showGroups(title: string, groups: readonly Group[], terminal: Terminal): void {
  const most = Math.max(...groups.map((group) => group.originalInputTokens), 1);
  const shown: readonly (readonly [name: string, of: (group: Group) => string])[] = [
    [title, ({ name }) => oneLine(name, 44) || '(none)'],
    ['requests', ({ requests }) => String(requests)],
    ['in', (group) => short(group.originalInputTokens)],
    ['to provider', (group) => short(group.forwardedInputTokens)],
    ['answered', ({ usage }) => short(usage.output)],
    ['cached', (group) => percent(cacheShare([group]))],
    ['kept', kept],
    ['again', ({ readings }) => String(readings)],
    ['recalled', ({ recalled, asked }) => `${recalled}/${asked}`],
    ['', (group) => bar(group.originalInputTokens / most, BAR_COLUMNS)],
  ];
  const rows = groups.slice(0, ROWS_MAX).map((group) => shown.map(([, of]) => of(group)));
  const head = shown.map(([name]) => name);
  terminal.out('');
  const columns = terminal.columns(160);
  const [first = '', ...rest] = table([head, ...rows], { columns, left: [0, head.length - 1] });
  terminal.out(terminal.colors.bold(first));
  for (const line of rest) terminal.out(line);
  if (groups.length > ROWS_MAX) terminal.out(`… and ${groups.length - ROWS_MAX} more: --json`);
}

/** Describes the price of the requests' input, with svc and without it, in tokens at full price. */
function priceText(total: Total): string {
  const { paid, direct } = total.price;
  if (direct === 0) return 'unknown: no provider sent token counts';
  const difference = direct - paid;
  const what = difference < 0 ? `${short(-difference)} more` : `${short(difference)} kept`;
  return (
    `that of ${short(paid)} input tokens at full price; direct about ${short(direct)}: ` +
    `${what} (${percent(Math.abs(difference) / direct)}). ${rangeText(total)}`
  );
}

/**
 * Describes the range of the price, as shares of the direct price. Without svc no call would read left-out texts again,
 * so for the upper end the price of such calls is subtracted from the direct price.
 */
function rangeText({ price: { paid, direct }, againPrice }: Total): string {
  const [low, high] = [paid / direct, paid / Math.max(1, direct - againPrice)];
  return low.toFixed(2) === high.toFixed(2)
    ? `${percent(low)} of direct`
    : `${percent(low)} of direct, or ${percent(high)} with all calls that read left-out text again`;
}

/** Returns the share of the direct price that svc saved, as text: negative if svc cost more, a dash if unknown. */
function kept({ price: { paid, direct } }: Total): string {
  return percent(direct === 0 ? undefined : (direct - paid) / direct);
}

function recallRate({ asked, recalled }: Total): number | undefined {
  return asked === 0 ? undefined : recalled / asked;
}

/** Adds rates to a total. `keptPrice`: tokens at full price that svc saved; negative if it cost more. */
function withRates(total: Total) {
  return {
    ...total,
    cacheRate: cacheShare([total]) ?? null,
    recallRate: recallRate(total) ?? null,
    keptPrice: total.price.direct - total.price.paid,
  };
}

function secondLooksText({ looks, lookTokens, lookTokensRepeated }: Total): string {
  return `${looks} found something, ${short(lookTokens)} tokens written, ${short(lookTokensRepeated)} read again by later requests`;
}

function busiest(groups: readonly Group[]): readonly Group[] {
  return groups.toSorted((one, other) => other.originalInputTokens - one.originalInputTokens);
}

function grouped(
  sums: readonly RequestSum[],
  nameOf: (sum: RequestSum) => string,
): readonly Group[] {
  return [...groupBy(sums, nameOf)].map(([name, members]) => ({ name, ...totalOf(members) }));
}

function totalOf(sums: readonly RequestSum[]): Total {
  const add = (valueOf: (sum: RequestSum) => number): number =>
    sums.reduce((total, sum) => total + valueOf(sum), 0);
  return {
    requests: add(({ requests }) => requests),
    failed: add(({ failed }) => failed),
    originalInputTokens: add((sum) => sum.originalInputTokens),
    forwardedInputTokens: add((sum) => sum.forwardedInputTokens),
    recalledTokens: add((sum) => sum.recalledTokens),
    elidedTokens: add((sum) => sum.elidedTokens),
    asked: add(({ asked }) => asked),
    recalled: add(({ recalled }) => recalled),
    briefs: add(({ briefs }) => briefs),
    looks: add(({ looks }) => looks),
    lookTokens: add(({ lookTokens }) => lookTokens),
    lookTokensRepeated: add((sum) => sum.lookTokensRepeated),
    degraded: add(({ degraded }) => degraded),
    late: add(({ late }) => late),
    usage: {
      input: add(({ usage }) => usage.input),
      cacheRead: add(({ usage }) => usage.cacheRead),
      cacheWrite: add(({ usage }) => usage.cacheWrite),
      output: add(({ usage }) => usage.output),
    },
    price: { paid: add(({ price }) => price.paid), direct: add(({ price }) => price.direct) },
    readings: add(({ readings }) => readings),
    thoughts: {
      dropped: add(({ thoughts }) => thoughts.dropped),
      unfit: add(({ thoughts }) => thoughts.unfit),
      refused: add(({ thoughts }) => thoughts.refused),
      bySvc: add(({ thoughts }) => thoughts.bySvc),
    },
    againPrice: add(({ againPrice }) => againPrice),
    prompts: add(({ prompts }) => prompts),
    promptsUsed: add(({ promptsUsed }) => promptsUsed),
    ...moneyIn(sums.filter(({ isLogin }) => isLogin === 0)),
    loginTokens: add(({ isLogin, usage }) => (isLogin === 0 ? 0 : tokensOf(usage))),
  };
}

function tokensOf({ input, cacheRead, cacheWrite, output }: RequestSum['usage']): number {
  return input + cacheRead + cacheWrite + output;
}

function moneyIn(sums: readonly RequestSum[]): Pick<Total, 'money' | 'keyTokens'> {
  const parts = sums.map(({ model, price, usage }) => {
    return { money: moneyOf(model, price, usage), tokens: tokensOf(usage) };
  });
  const { money, tokens } = moneySum(parts);
  return { money, keyTokens: tokens };
}
