import type { Readable } from 'node:stream';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { moneyOf } from '../../core/settings/money.ts';
import { isPriced } from '../../core/settings/priced-share.ts';
import type { QuotaReading } from '../../core/meter/quota.ts';
import type { SessionSum } from '../../ports/request-log.ts';
import type { CommandContext } from '../context.ts';
import { short } from '../text-table.ts';

/**
 * Runs `svc statusline`: prints one short text for Claude Code's status line. Claude Code runs it repeatedly and
 * writes JSON about the session to its stdin. Every error becomes an empty line, because a status line is no place
 * for errors.
 */

/** Claude Code writes 2 kB. */
const INPUT_BYTES_MAX = 256 * 1024;
/** It writes at once; a terminal never does. */
const INPUT_MS = 1_000;
/** Matches a session id; anything else cannot be in the log. */
const SESSION = /^[\w.:-]{1,200}$/;

/** Returns what a status line shows of a session; undefined without a store. */
type FactsOf = (
  dataFolder: string,
  session: string,
) => Promise<
  { readonly sums: readonly SessionSum[]; readonly quota: QuotaReading | undefined } | undefined
>;

type StatusContext = Pick<CommandContext, 'environment' | 'terminal'> & {
  readonly stdin: Readable;
};

export async function printStatusLine(context: StatusContext, factsOf: FactsOf): Promise<void> {
  context.terminal.out(await statusText(context, factsOf).catch(() => ''));
}

async function statusText(
  { environment, stdin }: StatusContext,
  factsOf: FactsOf,
): Promise<string> {
  const session = sessionIn(await readInput(stdin));
  if (session === undefined) return '';
  const facts = await factsOf(dataFolder(environment), session);
  if (facts === undefined || facts.sums.length === 0) return '';
  return [lineOf(facts.sums), ...quotaTexts(facts.quota)].join(' · ');
}

/** Writes `5h 58 % left` for each window of the plan that has not been reset since. */
function quotaTexts(quota: QuotaReading | undefined): readonly string[] {
  return (quota?.windows ?? [])
    .filter(({ resetAt = Infinity }) => resetAt > Date.now())
    .slice(0, WINDOWS_SHOWN)
    .map(
      ({ name, share }) => `${name} ${Math.max(0, Math.floor((1 - share) * 100 + 1e-9))} % left`,
    );
}

const WINDOWS_SHOWN = 3;

/** Writes `3 recalled · 41k tokens kept · $0.12`: what svc added, and what it saved in tokens and by list prices. */
function lineOf(sums: readonly SessionSum[]): string {
  const total = (valueOf: (sum: SessionSum) => number): number =>
    sums.reduce((sum, one) => sum + valueOf(one), 0);
  const kept = Math.round(total(({ direct, paid }) => direct - paid));
  const dollars = dollarsOf(sums);
  return [
    `${total(({ prompts }) => prompts)} recalled`,
    kept < 0 ? `${short(-kept)} tokens more than direct` : `${short(kept)} tokens kept`,
    ...(Math.abs(dollars) < 0.005 ? [] : [`$${Math.abs(dollars).toFixed(2)}`]),
  ].join(' · ');
}

/** Returns the dollars that svc saved, by list prices; 0 for a login, or if too few tokens have a price. */
function dollarsOf(sums: readonly SessionSum[]): number {
  let [saved, priced, all] = [0, 0, 0];
  for (const sum of sums) {
    const money = sum.isLogin === 1 ? undefined : moneyOf(sum.model, sum, { output: 0 });
    all += sum.direct;
    if (money === undefined) continue;
    priced += sum.direct;
    saved += money.direct - money.paid;
  }
  return isPriced(priced, all) ? saved : 0;
}

function sessionIn(text: string): string | undefined {
  const value: unknown = JSON.parse(text);
  const session: unknown =
    typeof value === 'object' && value !== null ? Reflect.get(value, 'session_id') : undefined;
  return typeof session === 'string' && SESSION.test(session) ? session : undefined;
}

async function readInput(stdin: Readable): Promise<string> {
  const deadline = setTimeout(() => stdin.destroy(new Error('Nothing was written.')), INPUT_MS);
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of stdin as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > INPUT_BYTES_MAX) return '';
      pieces.push(piece);
    }
  } finally {
    clearTimeout(deadline);
  }
  return Buffer.concat(pieces).toString('utf8');
}
