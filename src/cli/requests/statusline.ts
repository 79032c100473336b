import type { Readable } from 'node:stream';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { moneyOf } from '../../core/settings/money.ts';
import { isPriced } from '../../core/settings/priced-share.ts';
import type { SessionSum } from '../../ports/request-log.ts';
import type { CommandContext } from '../context.ts';
import { short } from './short-number.ts';

/**
 * `svc statusline`: one short text for the status line of Claude Code, which runs this command
 * again and again and writes JSON about the session to its stdin. Every error becomes an empty
 * line: a status line is no place for errors.
 */

/** Claude Code writes 2 kB. */
const INPUT_BYTES_MAX = 256 * 1024;
/** It writes at once; a terminal never does. */
const INPUT_MS = 1_000;
/** A UUID; anything else would be looked up in vain. */
const SESSION = /^[\w.:-]{1,200}$/;

/** Sums one session's requests; undefined where there is no store. */
export type SumsOf = (
  dataFolder: string,
  session: string,
) => Promise<readonly SessionSum[] | undefined>;

type StatusContext = Pick<CommandContext, 'environment' | 'terminal'> & {
  readonly stdin: Readable;
};

export async function printStatusLine(context: StatusContext, sumsOf: SumsOf): Promise<void> {
  context.terminal.out(await statusText(context, sumsOf).catch(() => ''));
}

async function statusText({ environment, stdin }: StatusContext, sumsOf: SumsOf): Promise<string> {
  const session = sessionIn(await readInput(stdin));
  if (session === undefined) return '';
  const sums = await sumsOf(dataFolder(environment), session);
  return sums === undefined || sums.length === 0 ? '' : lineOf(sums);
}

/** `3 recalled · 41k tokens kept · $0.12`: what svc added, and what it saved at full and at list price. */
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

/** The dollars that svc saved, by list prices; 0 for a login, and where too few tokens have a price. */
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
