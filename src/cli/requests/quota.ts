import {
  MOVER_KINDS,
  type Mover,
  type MoverKind,
  type QuotaReport,
  type WindowReport,
} from '../../core/meter/quota.ts';
import { windowText } from '../../core/meter/quota-words.ts';
import { timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { namesOf } from '../memory/named.ts';
import { readLog } from '../store.ts';
import type { Call } from '../context.ts';

/** Runs `svc quota`: shows for each login how much of its plan is left, when that resets, and what has used it. */

interface QuotaOptions {
  readonly json?: boolean;
}

export async function showQuota({ options, context }: Call<QuotaOptions>): Promise<void> {
  const { terminal } = context;
  const reports = await readLog(context, ({ requests }) => requests.quota(Date.now()));
  if (options.json === true) {
    terminal.json(reports.map((one) => ({ ...one, windows: one.windows.map(plainWindow) })));
  } else if (reports.length === 0) {
    terminal.note(
      'No provider has stated a quota yet. Providers state it in answers to a login of Claude or Codex.',
    );
  } else {
    const spaces = reports.flatMap(({ windows }) =>
      windows.flatMap(({ movers }) => movers.space.map(({ name }) => ({ space: name }))),
    );
    const names = namesOf(spaces, context);
    for (const one of reports) showLogin(one, (space) => names.wordsOf(space), terminal);
    terminal.note(
      'Ranges are in hundredths of a window, from differences between answers. What other machines and programs used meanwhile is in them.',
    );
  }
}

/** Returns a window for JSON, which has no Infinity. For a `fullAt` of Infinity it has null and lastsUntilReset. */
function plainWindow(window: WindowReport): object {
  const { fullAt } = window;
  const lasts = fullAt === Infinity;
  return { ...window, fullAt: lasts ? null : (fullAt ?? null), lastsUntilReset: lasts };
}

const PROVIDERS = { claude: 'Claude', codex: 'Codex' } as const;
const KINDS: Readonly<Record<MoverKind, string>> = {
  space: 'project',
  client: 'client',
  model: 'model',
  conversation: 'session',
};

function showLogin(
  { login, provider, at, windows, deciding }: QuotaReport,
  nameOf: (space: string) => string,
  terminal: Terminal,
): void {
  const account = login === '' ? 'unknown account' : `account ${login.slice(0, 6)}`;
  terminal.out(terminal.colors.bold(`${PROVIDERS[provider]}, ${account}, as of ${timeText(at)}`));
  const out = (line: string): void => terminal.row(line, '      ');
  for (const window of windows) {
    const decides = window.name === deciding && !window.isOver ? ' (it decides)' : '';
    out(`  ${windowText(oneLine(window.name, 40))}: ${leftText(window)}${decides}`);
    for (const kind of MOVER_KINDS) {
      const movers = window.movers[kind].map((mover) =>
        kind === 'space' ? { ...mover, name: nameOf(mover.name) } : mover,
      );
      if (movers.length === 0 || window.isOver) continue;
      out(`    by ${KINDS[kind]}: ${movers.slice(0, MOVERS_SHOWN).map(moverText).join(', ')}`);
    }
  }
}

const MOVERS_SHOWN = 4;

function moverText({ name, low, high }: Mover): string {
  const [from, to] = [hundredths(low), hundredths(high)];
  return `${oneLine(name, 40) || '(none)'} ${from === to ? from : `${from} to ${to}`}`;
}

function hundredths(share: number): string {
  const value = share * 100;
  return value < 9.95 ? String(Math.round(value * 10) / 10) : String(Math.round(value));
}

/** Describes how much of a window is left, until when, and whether it lasts. */
export function leftText({
  share,
  resetAt,
  isOver,
  isGone,
  isRejected,
  fullAt,
}: WindowReport): string {
  if (isOver)
    return `it has reset since (${timeText(resetAt ?? 0)}); how much is used now is not known`;
  const left = isRejected === true ? 0 : Math.max(0, Math.floor((1 - share) * 100 + 1e-9));
  const reset = resetAt === undefined ? '' : `, resets ${timeText(resetAt)}`;
  const gone = isGone ? ', not stated by the newest answers' : '';
  return `${left} % left${reset}${gone}${paceText(left, fullAt)}`;
}

function paceText(left: number, fullAt: number | undefined): string {
  if (left === 0 || fullAt === undefined) return '';
  return fullAt === Infinity
    ? '; at the pace of the last hour it lasts until then'
    : `; at the pace of the last hour it is used up ${timeText(fullAt)}`;
}
