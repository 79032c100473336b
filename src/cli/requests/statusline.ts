import { short } from '../../core/meter/figures.ts';
import type { Readable } from 'node:stream';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { sessionFacts } from '../../adapters/state/recent-requests.ts';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { moneyOf } from '../../core/settings/money.ts';
import { moneySum } from '../../core/settings/priced-share.ts';
import type { QuotaReading } from '../../core/meter/quota.ts';
import type { SessionSum } from '../../ports/request-log.ts';
import type { CommandContext } from '../context.ts';

/**
 * Runs `svc statusline`: prints one short text for Claude Code's status line. Claude Code runs the command again and
 * again, and writes JSON about the session to its stdin. After an error the command prints an empty line, because a
 * status line is no place for errors.
 */

/** Bound on the input, in bytes. Claude Code writes about 2 kB. */
const INPUT_BYTES_MAX = 256 * 1024;
/** Deadline of reading the input, in milliseconds. Claude Code writes it at once, but a terminal never does. */
const INPUT_MS = 1_000;
/** Matches the id of a session of Claude Code. For any other text the status line is empty. */
const SESSION = /^[\w.:-]{1,200}$/;

type StatusContext = Pick<CommandContext, 'environment' | 'terminal'> & {
  readonly stdin: Readable;
};

export async function printStatusLine(context: StatusContext): Promise<void> {
  context.terminal.out(await statusText(context).catch(() => ''));
}

async function statusText({ environment, stdin }: StatusContext): Promise<string> {
  const session = sessionIn(await readInput(stdin));
  if (session === undefined) return '';
  const facts = await sessionFacts(dataFolder(environment), session);
  if (facts === undefined || facts.sums.length === 0) return '';
  return [lineOf(facts.sums), ...quotaTexts(facts.quota)].join(' · ');
}

/**
 * Returns a text such as `5h 58 % left` for the first windows of the plan that have not been reset since the reading.
 */
function quotaTexts(quota: QuotaReading | undefined): readonly string[] {
  return (quota?.windows ?? [])
    .filter(({ resetAt = Infinity }) => resetAt > Date.now())
    .slice(0, WINDOWS_SHOWN)
    .map(
      ({ name, share }) => `${name} ${Math.max(0, Math.floor((1 - share) * 100 + 1e-9))} % left`,
    );
}

const WINDOWS_SHOWN = 3;

/** Returns a text such as `3 recalled · 41k tokens kept · $0.12`: prompts with memories, saved tokens and dollars. */
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

/**
 * Returns the dollars that svc saved, by list prices; negative if svc cost more; 0 for a login, or if too few tokens
 * have a price.
 */
function dollarsOf(sums: readonly SessionSum[]): number {
  const parts = sums.map((sum) => {
    const money = sum.isLogin === 1 ? undefined : moneyOf(sum.model, sum, { output: 0 });
    return { money, tokens: sum.direct };
  });
  const { money } = moneySum(parts);
  return money === undefined ? 0 : money.direct - money.paid;
}

function sessionIn(text: string): string | undefined {
  const { session_id: session } = asRecord(JSON.parse(text));
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
