import { cacheShare, tookMs } from '../../core/meter/figures.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import { requestReport } from '../../core/meter/request-report.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { CliError } from '../cli-error.ts';
import { limitOf, LIST_LIMIT, percent, timeText } from '../listing.ts';
import type { CliStore } from '../compose-store.ts';
import { retrieveFrom } from '../memory/memory.ts';
import { carriedBlocks } from '../../local/ui/request-page.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { namesOf } from '../memory/named.ts';
import { readLog, readStore } from '../store.ts';
import { clientText } from './request-lines.ts';
import { bar, table } from '../text-table.ts';
import { missText } from '../../core/meter/cache-words.ts';
import { planLimitText } from '../../core/meter/quota-words.ts';
import { stateText, lostThoughtsText } from '../../core/plan/states.ts';
import type { Call } from '../context.ts';

/**
 * Runs `svc requests`: prints one line for each request, newest first, below the names of the columns. With an id it
 * describes one request and explains its states. The log contains no texts; the description of one request quotes them
 * from the ledger and the memory.
 */

interface RequestsOptions {
  readonly limit?: string;
  readonly json?: boolean;
  readonly report?: boolean;
}

export async function listRequests(call: Call<RequestsOptions>): Promise<void> {
  const { options, context } = call;
  const { terminal } = context;
  const { report, json } = options;
  const [id] = call.args;
  const limit = limitOf(options.limit, LIST_LIMIT);
  if (id === undefined) {
    if (report === true) {
      throw new CliError('--report needs the id of a request.', 'See: svc requests', 2);
    }
    const rows = await readLog(context, ({ requests }) => requests.list({ limit }));
    if (json === true) terminal.json(rows);
    else if (rows.length > 0) listRows(rows, terminal);
    if (rows.length === 0) terminal.note('svc has handled no request yet.');
    return;
  }
  // The description quotes memories, so open the configured memory and not only the request log.
  await readStore(context, async (store) => {
    const rows = await store.requests.list({ limit, id });
    const [first] = rows;
    if (first === undefined) {
      throw new CliError('No request has this id.', 'See the newest with: svc requests');
    }
    if (rows.some((row) => row.id !== first.id)) {
      throw new CliError('More than one id begins with this.', 'Give more of its id.');
    }
    if (report === true) terminal.out(requestReport(first));
    else if (json === true) terminal.json(rows);
    else {
      const names = namesOf(rows, context);
      for (const row of rows) {
        const named = { ...row, space: names.wordsOf(row.space) };
        // oxlint-disable-next-line no-await-in-loop -- Seldom more than one.
        await showOne(named, store, terminal);
      }
    }
  });
}

async function showOne(row: RequestRow, store: CliStore, terminal: Terminal): Promise<void> {
  for (const line of requestDetails(row)) terminal.row(line, ' '.repeat(14));
  await showBlocks(row, store, terminal);
  await quoteLeftOut(row.elidedRefs ?? [], store, terminal);
}

/** Prints the texts that svc added to the request, word for word. */
async function showBlocks(
  row: RequestRow,
  { ledger }: CliStore,
  terminal: Terminal,
): Promise<void> {
  const blocks = await carriedBlocks(ledger, row);
  for (const [at, { block }] of blocks.entries()) {
    terminal.out('');
    terminal.out(blocks.length === 1 ? 'Added:' : `Added, ${at + 1} of ${blocks.length}:`);
    const text = block === '' ? '(forgotten since)' : block;
    terminal.outText(terminal.isWatched ? text : `${text}\n`);
  }
}

/** Prints the texts that svc left out of the request, each shortened to one line. */
async function quoteLeftOut(
  refs: readonly string[],
  store: CliStore,
  terminal: Terminal,
): Promise<void> {
  if (refs.length === 0) return;
  terminal.out('');
  terminal.out('Left out:');
  const columns = Math.max(20, Math.min(terminal.columns(QUOTE_COLUMNS), QUOTE_COLUMNS) - 22);
  for (const ref of refs) {
    // oxlint-disable-next-line no-await-in-loop -- At most ten short reads.
    const found = await retrieveFrom(store, ref).catch(() => undefined);
    const text = oneLine(found?.text ?? '(forgotten since, or not available)', columns);
    terminal.out(`  ${ref}  ${text}`);
  }
}

const QUOTE_COLUMNS = 160;

/** Characters of an id that a terminal shows: enough to tell requests apart, and to type after `svc requests`. */
const ID_CHARS = 12;
/**
 * Indexes of the columns that are aligned left; the others are numbers of tokens. The last columns do not fit on a
 * narrow screen.
 */
const LEFT = [0, 1, 2, 3, 4, 5, 9, 10];

function listRows(rows: readonly RequestRow[], terminal: Terminal): void {
  const columns: readonly (readonly [name: string, of: (row: RequestRow) => string | number])[] = [
    ['time', ({ at }) => timeText(at)],
    ['request', ({ id }) => (terminal.isWatched ? id.slice(0, ID_CHARS) : id)],
    ['status', ({ status }) => status],
    // The requests of `svc doctor --live` are svc's own.
    ['client', (row) => (row.space === PROBE_SPACE ? 'svc doctor' : clientText(row))],
    ['memory', (row) => row.memoryState],
    ['shortening', (row) => row.continuityState],
    ['in', (row) => row.originalInputTokens],
    ['sent', (row) => row.forwardedInputTokens],
    ['recalled', (row) => row.recalledTokens],
    ['end', ({ end }) => end],
    ['model', ({ model }) => model],
  ];
  const cells = rows.map((row) => columns.map(([, of]) => oneLine(String(of(row)), 40)));
  const all = [columns.map(([name]) => name), ...cells];
  const [head = '', ...lines] = table(all, { columns: terminal.columns(400), left: LEFT });
  terminal.out(terminal.colors.bold(head));
  for (const line of lines) terminal.out(line);
}

/** Describes a request: what it was, what svc changed, and how long each step took. */
export function requestDetails(row: RequestRow): readonly string[] {
  const facts: [string, string][] = [
    ['Request', row.id],
    ['Time', timeText(row.at)],
    ['Client', `${row.client}, ${row.kind}`],
    ['Model', `${row.model || '(none named)'}, ${row.dialect}`],
    ['Project', row.space || '(none)'],
    ['Conversation', row.conversation || '(none)'],
    ['Answer', `${row.status}, ${ENDS[row.end] ?? `svc answered ${row.end}`}`],
    ...meaning(ENDS[row.end] === undefined ? row.end : ''),
    ['Memory', `${row.memoryState} (mode ${row.memoryMode || 'unknown'})`],
    ...meaning(row.memoryState),
    ['Shortening', `${row.continuityState} (mode ${row.compressionMode})`],
    ...meaning(row.continuityState),
    ['Changed', changeText(row)],
    [
      'Tokens',
      `${row.originalInputTokens} in, ${row.forwardedInputTokens} to the provider (estimates)`,
    ],
    ['Provider', usageText(row)],
    ['Price', priceText(row)],
  ];
  if (row.miss !== undefined) facts.push(['Cache missed', missText(row.miss)]);
  if (row.planLimit !== undefined) facts.push(['Plan', planLimitText(row.planLimit, row.model)]);
  const { lostThoughts, prefixChangedBy, droppedThoughts = 0 } = row;
  if (droppedThoughts > 0) {
    facts.push(['Thinking', `the client left out ${droppedThoughts} earlier thoughts`]);
  }
  if (lostThoughts !== undefined) {
    facts.push(['Thinking', lostThoughtsText(lostThoughts, prefixChangedBy)]);
  }
  return [
    ...facts.map(([name, text]) => `${name.padEnd(13)} ${oneLine(text, 400)}`),
    '',
    ...stepLines(row.ms),
  ];
}

/** Returns a row that explains the state in the row above, in the words of docs/states.md; none for other names. */
function meaning(name: string): [string, string][] {
  const text = stateText(name);
  return text === undefined ? [] : [['', `${text.meaning} ${text.advice}`.trimEnd()]];
}

const ENDS: Readonly<Record<string, string>> = {
  complete: 'complete',
  'client-gone': 'the client closed the connection before the end',
  'upstream-cut': 'the provider’s answer broke off',
};

function changeText(row: RequestRow): string {
  const changes = [
    ...(row.recalledTokens > 0 ? [`about ${row.recalledTokens} recalled tokens added`] : []),
    ...(row.secondLooks === undefined ? [] : [secondLooksText(row.secondLooks)]),
    ...(row.elidedItems > 0
      ? [`${row.elidedItems} items of about ${row.elidedTokens} tokens left out`]
      : []),
  ];
  if (row.cleared !== undefined) {
    const { outputs, tokens } = row.cleared;
    changes.push(`the provider cleared ${outputs} tool outputs of ${tokens} tokens`);
  }
  return changes.length === 0 ? 'nothing; svc sent the client’s own bytes' : changes.join(', ');
}

/** Describes the tokens that second looks added, which are a part of the recalled tokens. */
function secondLooksText({ tokens, written }: NonNullable<RequestRow['secondLooks']>): string {
  const repeated = tokens - written;
  const parts = [
    ...(written > 0 ? [`${written} written now`] : []),
    ...(repeated > 0 ? [`${repeated} of earlier requests`] : []),
  ];
  return `of them ${parts.join(' and ')} by second looks`;
}

function usageText({ usage }: RequestRow): string {
  if (usage === undefined) return 'reported no token counts';
  const { input, cacheRead, cacheWrite, output } = usage;
  const share = cacheShare([{ usage }]);
  const rate = share === undefined ? '' : ` (${percent(share)})`;
  return `${input} tokens at full price, ${cacheRead} from its cache${rate}, ${cacheWrite} written to it, ${output} answered`;
}

function priceText({ price }: RequestRow): string {
  if (price === undefined) return 'not known';
  const { paid, direct } = price;
  const share = direct === 0 ? '' : ` (${percent(paid / direct)})`;
  return `that of ${Math.round(paid)} input tokens at full price; direct about ${Math.round(direct)}${share}`;
}

const STEPS: Readonly<Record<string, string>> = {
  body: 'body received',
  read: 'body parsed',
  recall: 'recall',
  plan: 'planning',
  head: 'the provider’s first byte',
  relay: 'the rest of its answer',
};

const BAR_COLUMNS = 30;

function stepLines(ms: RequestRow['ms']): readonly string[] {
  const steps = Object.entries(ms);
  const total = tookMs({ ms });
  return [...steps, ['total', total] as const].map(([name, one]) => {
    const what = name === 'total' ? 'together' : (STEPS[name] ?? oneLine(name, 30));
    const share = name === 'total' ? '' : bar(total === 0 ? 0 : one / total, BAR_COLUMNS);
    return `${one.toFixed(1).padStart(10)} ms  ${what.padEnd(26)} ${share}`.trimEnd();
  });
}
