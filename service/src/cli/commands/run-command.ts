import { readFile } from 'node:fs/promises';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count, timeText } from '../../../../src/cli/listing.ts';
import { readKey } from '../../../../src/cli/setup/setup-upstream.ts';
import { oneLine, type Terminal } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { asList, asRecord, asText, type Fields } from '../../../../src/core/bytes/json-fields.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { camelOf } from '../../core/account-settings.ts';
import type {
  Column,
  CommandRow,
  ConsoleOperation,
  ListRow,
  OptionRow,
  Problem,
  Say,
} from '../../server/console/operation.ts';
import { openConsoleAt } from '../compose-console.ts';
import {
  type ConsoleAccess,
  type ConsoleOptions,
  folderOf,
  listAll,
  withConsole,
} from './service-context.ts';
import { findService } from './service-status.ts';

/** Runs a command of the console's table: reads its options, calls the operation, prints the answer. */

interface CommandCall {
  readonly operation: ConsoleOperation;
  readonly row: CommandRow;
  /** The command's argument; '' if it has none. */
  readonly argument: string;
  readonly options: ConsoleOptions;
}

/** Runs a command. Throws CliError. */
export async function runCommand(call: CommandCall, context: CommandContext): Promise<ExitCode> {
  const { row, argument, options } = call;
  const problem = argumentProblem(row, argument) ?? row.check?.({ ...options });
  if (problem !== undefined) throw usage(problem);
  const values = await valuesOf(row, options, context);
  if (row.nothing !== undefined && Object.keys(values).length === 0) throw usage(row.nothing);
  const named = row.argument?.to === undefined ? {} : { [row.argument.to]: argument };
  const sent = { ...named, ...(row.ask?.(values) ?? values) };
  const access = row.byService === true ? withRunningConsole : withConsole;
  const answered = await access(options, context, (console) => ask(console, call, sent));
  if (row.list !== undefined) printList(answered, row.list, options, context);
  return printAnswer(answered.answer, call, sent, context);
}

function argumentProblem({ argument: row }: CommandRow, argument: string): Problem | undefined {
  return row?.pattern === undefined || row.pattern.test(argument) ? undefined : row.problem;
}

function usage([problem, hint]: Problem): CliError {
  return new CliError(problem, hint, 2);
}

/** Returns the options' values by their members in the call. Throws CliError. */
export async function valuesOf(
  { name, options: rows = [], secret }: Pick<CommandRow, 'name' | 'options' | 'secret'>,
  options: ConsoleOptions,
  { stdin }: CommandContext,
): Promise<Fields> {
  const given: Fields = { ...options };
  const values = new Map<string, unknown>();
  let ofStdin = secret === undefined ? undefined : { to: secret, flag: name.split(' ').at(-1) };
  for (const option of rows) {
    const { flags, to, as } = option;
    const [flag = ''] = flags.split(' ');
    // Commander names `--base-url` as `baseUrl`.
    const value = given[camelOf(flag.slice(2).replaceAll('-', '_'))];
    if (value === undefined) {
      if ('otherwise' in option) values.set(to, option.otherwise);
    } else if (as === 'stdin') ofStdin = { to, flag };
    else values.set(to, readOption(option, flag, value));
  }
  // Read stdin last: a command that cannot run must not wait for it.
  if (ofStdin !== undefined) values.set(ofStdin.to, await readKey(stdin, ofStdin.flag ?? ''));
  return Object.fromEntries(values);
}

function readOption({ as }: OptionRow, flag: string, value: unknown): unknown {
  if (as === undefined || as === 'stdin') return value;
  const read = as.read(value, Date.now());
  if (read !== undefined) return read;
  throw usage([`${flag}: ${as.expected}`, as.hint]);
}

interface Answered {
  readonly answer: Fields;
  /** The rows, if the answer is a list. */
  readonly rows: readonly Fields[];
}

type Calls = Pick<ConsoleAccess, 'call'>;

async function ask(
  console: Calls,
  { operation, row, argument }: CommandCall,
  sent: Fields,
): Promise<Answered> {
  const { method, path: pattern } = operation;
  const { list } = row;
  const found =
    row.argument?.isProvider === true ? await findProvider(console, argument) : undefined;
  const parameter = asText(found?.['provider_id']) || encodeURIComponent(argument);
  const path = pattern.replace('*', parameter);
  if (operation.body !== undefined) {
    const { version } =
      row.isVersioned !== true ? {} : (found ?? (await console.call({ method: 'GET', path })));
    const ifVersion = typeof version === 'number' ? { ifVersion: version } : {};
    return { answer: await console.call({ method, path, body: sent, ...ifVersion }), rows: [] };
  }
  const query = Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [name, String(value)]),
  );
  const isWhole = list?.isWhole === true;
  const answer = isWhole ? {} : await console.call({ method, path, query });
  const rows = isWhole
    ? await listAll(console, path, query)
    : asList(answer[list?.member ?? 'data']).map(asRecord);
  const complete = list?.complete?.(rows, sent, (other, more) => listAll(console, other, more));
  const { searches } = row.argument ?? {};
  const all = (await complete) ?? rows;
  return { answer, rows: searches === undefined ? all : matching(all, searches, argument) };
}

function matching(
  rows: readonly Fields[],
  members: readonly string[],
  words: string,
): readonly Fields[] {
  const wanted = words.toLowerCase();
  return rows.filter((row) => {
    const text = members.map((member) => asText(row[member])).join(' ');
    return text.toLowerCase().includes(wanted);
  });
}

async function findProvider(console: Calls, name: string): Promise<Fields> {
  const all = await listAll(console, 'providers');
  const found = all.find((one) => one['name'] === name || one['provider_id'] === name);
  if (found !== undefined) return found;
  throw new CliError('There is no such provider.', 'See: svc-service providers list');
}

/**
 * How long the command's own token is valid. At its end the command revokes the token, unless the command is killed.
 */
const TOKEN_MS = 60_000;

/**
 * Runs the work in the service at `url`. Without `url`, runs it in the running service of the folder, with a token that
 * is revoked at the end; if no service runs, in this command.
 */
async function withRunningConsole<Result>(
  options: ConsoleOptions,
  context: CommandContext,
  work: (console: Calls) => Promise<Result>,
): Promise<Result> {
  if (options.url !== undefined) return withConsole(options, context, work);
  const running = await findService(folderOf(options, context));
  if (running === undefined) {
    context.terminal.note('The service does not run, so this command asks the provider itself.');
    return withConsole(options, context, work);
  }
  const { host, port, cert } = running;
  const certificate = cert === undefined ? undefined : await readFile(cert, 'utf8');
  // Make and revoke the token without --tenant: it is an operator's, so it belongs to no tenant.
  const { tenant, ...ofService } = options;
  return withConsole(ofService, context, async (local) => {
    const name = 'svc-service providers';
    const body = { name, role: 'operator', expires_at: isoTime(Date.now() + TOKEN_MS) };
    const made = await local.call({ method: 'POST', path: 'admins', body });
    try {
      const token = asText(made['token']);
      return await work(openConsoleAt({ host, port, certificate }, { token, tenant }));
    } finally {
      await local.call({ method: 'DELETE', path: `admins/${asText(made['admin_id'])}` });
    }
  });
}

const CELL_CHARS_MAX = 256;

const SAY: Say = {
  line: (value, charsMax = CELL_CHARS_MAX) => oneLine(textOf(value), charsMax),
  time: (value) => timeText(typeof value === 'string' ? Date.parse(value) : 0),
  count: (value, noun) => count(typeof value === 'number' ? value : 0, noun),
};

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(' ').trim();
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

const LINE_CHARS_MAX = 160;

function printList(
  { answer, rows }: Answered,
  list: ListRow,
  { json }: ConsoleOptions,
  { terminal }: CommandContext,
): void {
  if (json === true) {
    terminal.json(list.member === undefined ? rows : answer);
    return;
  }
  if (rows.length === 0 && list.empty !== undefined) terminal.note(list.empty);
  for (const line of linesOf(rows, list, terminal)) terminal.out(line);
  if (answer['has_more'] === true && list.hasMore !== undefined) terminal.note(list.hasMore);
}

function linesOf(
  rows: readonly Fields[],
  { columns, left, isLoose = false }: ListRow,
  terminal: Terminal,
): readonly string[] {
  const shown = columns.flatMap((column, at) =>
    rows.some((one) => cellOf(column, one) !== undefined) ? [{ column, at }] : [],
  );
  const cells = rows.map((one) => shown.map(({ column }) => cellOf(column, one) ?? ''));
  if (isLoose) return cells.map((line) => line.join('  '));
  const leftCount = shown.filter(({ at }) => at < (left ?? columns.length)).length;
  const shape = { columns: terminal.columns(LINE_CHARS_MAX), left: [...Array(leftCount).keys()] };
  return table(cells, shape);
}

function cellOf(column: Column, row: Fields): string | undefined {
  if (typeof column === 'function') return column(row, SAY);
  const [member = '', charsMax] = column.split(':');
  return SAY.line(row[member], charsMax === undefined ? CELL_CHARS_MAX : Number(charsMax));
}

function printAnswer(
  answer: Fields,
  { row, argument, options }: CommandCall,
  sent: Fields,
  { terminal }: CommandContext,
): ExitCode {
  const { list, prints, note: own = [] } = row;
  const shown = row.shows?.(answer, SAY, { argument, sent }) ?? {};
  const { lines = [], note = own, warnings = [], isFailure = false, problem } = shown;
  const all = prints === undefined ? lines : [asText(answer[prints]), ...lines];
  const isWords = all.length > 0 || note.length > 0 || row.shows !== undefined;
  const isJson = list === undefined && (options.json === true || !isWords);
  if (isJson && Object.keys(answer).length > 0) terminal.json(answer);
  if (!isJson) for (const line of all) terminal.out(line);
  for (const line of typeof note === 'string' ? [note] : note) terminal.note(line);
  for (const line of warnings) terminal.warn(line);
  if (problem !== undefined) throw new CliError(...problem);
  return isFailure || warnings.length > 0 ? 1 : 0;
}
