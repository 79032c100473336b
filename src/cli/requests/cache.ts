import { dollars, short } from '../../core/meter/figures.ts';
import { type Culprit, rankCulprits } from '../../core/meter/culprits.ts';
import { count, limitOf } from '../listing.ts';
import { oneLine } from '../terminal.ts';
import { readLog } from '../store.ts';
import type { Call } from '../context.ts';

/** Runs `svc cache`: lists the causes of misses in the providers' caches, the most expensive first. */

interface CacheOptions {
  readonly days?: string;
  readonly json?: boolean;
}

const DAYS = { fallback: 7, max: 90, name: '--days' };
const DAY_MS = 24 * 3_600_000;
/** Bound on the requests with a miss that are read: more than a user has in months. */
const ROWS_MAX = 1000;
const CAUSES_MAX = 20;

export async function showCache({ options, context }: Call<CacheOptions>): Promise<void> {
  const { terminal } = context;
  const days = limitOf(options.days, DAYS);
  const since = Date.now() - days * DAY_MS;
  const filter = { since, isMiss: true, limit: ROWS_MAX } as const;
  const rows = await readLog(context, ({ requests }) => requests.find(filter));
  const culprits = rankCulprits(rows);
  if (options.json === true) {
    terminal.json({ days, isWhole: rows.length < ROWS_MAX, culprits });
    return;
  }
  if (culprits.length === 0) {
    terminal.note(`svc saw no cache miss in the last ${days} days.`);
    return;
  }
  const most = rows.length < ROWS_MAX ? '' : 'The newest ';
  const tokens = culprits.reduce((sum, culprit) => sum + culprit.tokens, 0);
  terminal.out(
    `${most}${count(rows.length, 'cache miss', 'cache misses')} in the last ${days} days: ${short(tokens)} tokens were charged again`,
  );
  for (const culprit of culprits.slice(0, CAUSES_MAX)) {
    terminal.row(`  ${culpritText(culprit)}`, '    ');
  }
  terminal.note('One of them in full: svc requests ID');
}

function culpritText({ cause, times, tokens, dollars: spent }: Culprit): string {
  const money = spent === undefined ? '' : `, ${dollars(spent)}`;
  const often = times === 1 ? 'once' : `${times} times`;
  return `${oneLine(cause, 160)}: ${often}, ${short(tokens)} tokens${money}`;
}
