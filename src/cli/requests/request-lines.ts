import { short, tookMs } from '../../core/meter/figures.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { lineForm, clockText } from '../listing.ts';
import { type Colors, oneLine, type Terminal } from '../terminal.ts';

/** The line that `svc start` prints for each ended request. It contains no text of the request and no key. */

interface RowOptions {
  readonly log?: string;
  readonly quiet?: boolean;
}

/** Returns a function that prints a request's line; undefined: print none. Throws CliError for an unknown form. */
export function rowPrinter(
  options: RowOptions,
  terminal: Terminal,
): ((row: RequestRow) => void) | undefined {
  const form = lineForm({ ...options, command: 'svc start' }, terminal);
  if (form === 'off') return undefined;
  if (form === 'json') return (row) => terminal.out(JSON.stringify(row));
  return (row) => {
    const style = { colors: terminal.noteColors, columns: terminal.noteColumns(COLUMNS) };
    terminal.noteColored(rowLine(row, style));
  };
}

/** The number of columns if stderr is no terminal: enough for a usual line. */
const COLUMNS = 160;

export interface LineStyle {
  readonly colors: Colors;
  readonly columns: number;
}

/** Describes a request in one line. A line for a narrow screen lacks its last parts. */
export function rowLine(row: RequestRow, { colors, columns }: LineStyle): string {
  const cells: [text: string, color: Colors['dim']][] = [
    [clockText(row.at), colors.dim],
    [clientText(row), colors.cyan],
    [oneLine(row.model, 28) || '(no model)', plain],
    [statusText(row), isFine(row) ? plain : colors.red],
    [memoryText(row), memoryColor(row, colors)],
    ...tokenCells(row, colors),
    [`${Math.round(tookMs(row))} ms`, colors.dim],
  ];
  return fitted(cells, columns);
}

/** Returns the client's name; for a side call with its kind, such as `codex/title`. */
export function clientText({ client, kind }: RequestRow): string {
  return kind === 'main' ? client : `${client}/${kind}`;
}

function plain(text: string | number | null | undefined): string {
  return String(text);
}

function isFine({ status, end }: RequestRow): boolean {
  return status < 400 && end === 'complete';
}

function statusText({ status, end }: RequestRow): string {
  return end === 'complete' ? String(status) : `${status} ${end}`;
}

function memoryText({ memoryState, recalledTokens }: RequestRow): string {
  return recalledTokens > 0 ? `${memoryState} +${recalledTokens}` : memoryState;
}

function memoryColor({ memoryState }: RequestRow, colors: Colors): Colors['dim'] {
  if (memoryState === 'recalled') return colors.green;
  return memoryState.startsWith('degraded') ? colors.yellow : colors.dim;
}

/** Returns cells with the tokens of request, forwarded request and answer, and with shortening and lost thoughts. */
function tokenCells(row: RequestRow, colors: Colors): [string, Colors['dim']][] {
  const { originalInputTokens: original, forwardedInputTokens: forwarded, usage } = row;
  const answered = usage === undefined ? '' : `, ${short(usage.output)} out`;
  const isNamed = ['not_needed', 'not_applicable'].includes(row.continuityState);
  const cells: [string, Colors['dim']][] = [
    [`${short(original)} → ${short(forwarded)} tokens${answered}`, plain],
  ];
  if (!isNamed) cells.push([row.continuityState, colors.dim]);
  const { prefix = 0, model = 0, account = 0, refused } = row.lostThoughts ?? {};
  const dropped = prefix + model + account;
  if (refused !== undefined) cells.push(['refused for its thinking', colors.yellow]);
  if (dropped > 0) cells.push([`${dropped} thinking blocks dropped`, colors.yellow]);
  return cells;
}

/** Joins the cells that fit into the columns; colour codes do not count. */
function fitted(cells: readonly (readonly [string, Colors['dim']])[], columns: number): string {
  const shown: string[] = [];
  let used = 0;
  for (const [text, color] of cells) {
    const cell = oneLine(text, Math.max(columns - used, 0) || 1);
    used += Array.from(cell).length + 2;
    if (shown.length > 0 && used - 2 > columns) break;
    shown.push(color(cell));
    if (used >= columns) break;
  }
  return shown.join('  ');
}
