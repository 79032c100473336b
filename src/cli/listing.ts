import { dayName, two } from '../core/meter/figures.ts';
import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** What commands share: reading options, and writing numbers, times and addresses. */

export interface ListOptions {
  readonly space?: string;
  readonly limit?: string;
  readonly json?: boolean;
}

/** The default and the maximum of --limit. */
export const LIST_LIMIT = { fallback: 20, max: 1000 };

/**
 * Parses the number of an option; without a text returns `fallback`. Throws CliError for a text that is no whole number
 * in the range.
 */
export function limitOf(
  text: string | undefined,
  range: {
    readonly fallback: number;
    readonly min?: number;
    readonly max: number;
    readonly name?: string;
  },
): number {
  if (text === undefined) return range.fallback;
  const min = range.min ?? 1;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : -1;
  if (limit >= min && limit <= range.max) return limit;
  throw new CliError(
    `${range.name ?? '--limit'}: expected a whole number from ${min} to ${range.max}.`,
    `Try ${range.name ?? '--limit'} ${range.fallback}`,
    2,
  );
}

/** Returns a count with its noun: `1 line`, `2 lines`. */
export function count(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

/** Returns a share from 0 to 1 as `42 %`; a dash if there is no share. */
export function percent(share: number | null | undefined): string {
  return typeof share === 'number' ? `${Math.round(100 * share)} %` : '–';
}

/** Returns a local date and time: `2026-11-20 16:45:02`. */
export function timeText(at: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return '?';
  return `${dayName(at)} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
}

/** Returns a local time: `16:45:02`. */
export function clockText(at: number): string {
  return timeText(at).slice(11);
}

const FORMS = ['text', 'json', 'off'] as const;

interface LineOptions {
  readonly log?: string;
  readonly quiet?: boolean;
  /** True: the default is text even without a terminal, because somebody reads the lines later in a log. */
  readonly isLogged?: boolean;
  /** The command whose help describes --log. */
  readonly command: string;
}

/** Returns how a server prints its requests: one line each, or not at all. Throws CliError for an unknown --log. */
export function lineForm(
  { log, quiet, isLogged = false, command }: LineOptions,
  terminal: Terminal,
): (typeof FORMS)[number] {
  const form = log === undefined ? undefined : FORMS.find((known) => known === log);
  if (log !== undefined && form === undefined) {
    const expected = `--log: expected one of ${FORMS.join(', ')}.`;
    throw new CliError(expected, `See: ${command} --help`, 2);
  }
  if (form === 'json') return form;
  const isShown = form === 'text' || (form === undefined && (isLogged || terminal.areNotesWatched));
  return isShown && quiet !== true ? 'text' : 'off';
}

/** Returns the address of a proxy: `http://127.0.0.1:8765`. */
export function urlOf(
  { host, port }: { readonly host: string; readonly port: number },
  scheme: 'http' | 'https' = 'http',
): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Returns a port to propose when another program uses this one. */
export function otherPort(port: number): number {
  return port < 1024 || port === 65_535 ? 8765 : port + 1;
}
