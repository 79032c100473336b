import type { Fields } from '../../../../src/core/bytes/json-fields.ts';
import { closed, listOf, type Shape, such, text } from '../../../../src/core/memory-api/shape.ts';
import { isDay, isoTime } from '../../../../src/core/memory/times.ts';
import type { AdminRole } from '../../core/admins.ts';
import type { AuditKind, AuditNote } from '../../core/audit.ts';
import type { ChangeOutcome, Page, TenantFacts } from '../../ports/control-store.ts';
import type { Receipts } from '../../ports/receipt-store.ts';
import type { ProviderLinks } from '../../ports/provider-links.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import { newId } from '../../core/ids.ts';
import { listBody, readValue } from '../call.ts';
import { invalid, ServiceFault } from '../fault.ts';
import { type Route, routeOf, type RouteText } from '../routes.ts';
import type { ServiceLimits, ServingParts } from '../parts.ts';

/**
 * An operation of the console is one row: its route, the least role that may call it, its body, its handler, and the
 * commands that call it. The HTTP server, the command line and the shell completion use these rows.
 */

export interface ConsoleOperation extends Route {
  /** The name in service/docs/hosted-api.yaml. */
  readonly name: string;
  /** The role that an actor needs at least. */
  readonly role: AdminRole;
  /** The shape of the body; undefined if the call has none. */
  readonly body: Shape<unknown> | undefined;
  /** Runs the operation. Throws ServiceFault and MemoryError. */
  readonly run: (call: ConsoleCall) => Promise<ConsoleReply>;
  readonly commands: readonly CommandRow[];
}

interface Facts extends Pick<ConsoleOperation, 'name' | 'role'> {
  /** The method and the path: `DELETE keys/*`. */
  readonly route: RouteText;
  /** True if the operation refuses a call for a tenant that does not exist. */
  readonly ofTenant?: boolean;
}

export function reads(
  facts: Facts,
  handler: ConsoleOperation['run'],
  commands: readonly CommandRow[],
): ConsoleOperation {
  return rowOf(facts, undefined, commands, handler);
}

/** Makes the row of an operation with a body. The body is checked before the handler runs. */
export function writes<Body>(
  facts: Facts,
  body: Shape<Body>,
  handler: (call: ConsoleCall, body: Body) => Promise<ConsoleReply>,
  commands: readonly CommandRow[],
): ConsoleOperation {
  return rowOf(facts, body, commands, (call) => handler(call, readValue(call.body, body)));
}

function rowOf(
  { name, role, route, ofTenant = false }: Facts,
  body: Shape<unknown> | undefined,
  commands: readonly CommandRow[],
  handler: ConsoleOperation['run'],
): ConsoleOperation {
  const run = async (call: ConsoleCall): Promise<ConsoleReply> => {
    if (ofTenant) await findTenant(call);
    return handler(call);
  };
  return { name, role, ...routeOf(route), body, run, commands };
}

/** Makes the row of a command. Without examples, its name alone is the example. */
export function command(
  name: string,
  about: string,
  more: Omit<CommandRow, 'name' | 'about' | 'examples'> &
    Partial<Pick<CommandRow, 'examples'>> = {},
): CommandRow {
  return { examples: [name], ...more, name, about };
}

/** Makes an option whose value becomes the member `to` of the call's body or query. */
export function option(
  flags: string,
  about: string,
  to: string,
  more: Omit<OptionRow, 'flags' | 'about' | 'to'> = {},
): OptionRow {
  return { ...more, flags, about, to };
}

export interface CommandRow {
  /** The words of the command: `keys create`. */
  readonly name: string;
  readonly about: string;
  /** The options in the order of the help. */
  readonly options?: readonly OptionRow[];
  readonly argument?: ArgumentRow;
  readonly examples: readonly string[];
  /** The last paragraph of the help. */
  readonly more?: string;
  /** The member of the body whose value is read from stdin. */
  readonly secret?: string;
  /**
   * True if the operation runs in the running service, if there is one, because the service's network and certificates
   * may differ from those of this shell.
   */
  readonly byService?: true;
  /** True if the command first reads the version of what it changes, and sends that version as If-Match. */
  readonly isVersioned?: true;
  /** Checks the options before stdin is read. Returns what is wrong; undefined if nothing is. */
  readonly check?: (options: Given) => Problem | undefined;
  /** The problem to print if no option is given. */
  readonly nothing?: Problem;
  /** Makes the call's body or query from the values. Without this function the values are the body or query. */
  readonly ask?: (values: Given) => Fields;
  readonly list?: ListRow;
  /** The member of the answer that goes to stdout. */
  readonly prints?: string;
  /** The message to print on stderr after the answer. */
  readonly note?: string;
  /**
   * Makes the text for an answer; for a list, the text besides its rows. Without `list`, `shows`, `prints` and `note`
   * svc prints the answer as JSON.
   */
  readonly shows?: (answer: Fields, say: Say, asked: Asked) => Shown;
}

/**
 * Values of options. `check` gets them by commander's names, such as `baseUrl`; other functions get them by members of
 * the call.
 */
export type Given = Readonly<Record<string, unknown>>;

/** A message that says what is wrong, and a hint that says what to do. */
export type Problem = readonly [problem: string, hint: string];

export interface OptionRow {
  /** The option as commander takes it: `--name <name>`. */
  readonly flags: string;
  readonly about: string;
  /** The member of the call's body or query. */
  readonly to: string;
  /** Reads the option's text. Undefined: the text is used unchanged. */
  readonly as?: Reading;
  /** The default, as a text that is read like the option's and that the help shows. */
  readonly shown?: string;
  /** The default, as a value that the help does not show. */
  readonly otherwise?: unknown;
  readonly isRequired?: true;
}

export type Reading =
  | {
      /** Parses the text; undefined if it is not valid. */
      readonly read: (text: unknown, now: number) => unknown;
      /** The message for a text that is not valid. */
      readonly expected: string;
      readonly hint: string;
    }
  /** The option is a flag, and its value is a secret on stdin. */
  | 'stdin';

export interface ArgumentRow {
  /** The argument as commander takes it: `<id>`. */
  readonly flags: string;
  readonly about: string;
  readonly pattern?: RegExp;
  /** The problem to print if the argument does not match the pattern. */
  readonly problem?: Problem;
  /**
   * The member of the body that gets the argument. Undefined: the argument replaces the star in the path, if there is
   * one.
   */
  readonly to?: string;
  /** True if the argument is the name or the id of a provider. The path then gets the id. */
  readonly isProvider?: true;
  /**
   * The members of a row in which the argument is searched. Rows in which none of these members contains the argument
   * are hidden.
   */
  readonly searches?: readonly string[];
}

export interface ListRow {
  /** The cells of a row: a member such as `name:24` (cut to 24 characters), or the result of a function. */
  readonly columns: readonly Column[];
  /** The member of the answer that has the rows, if that is not `data`. The command's JSON is then the whole answer. */
  readonly member?: string;
  /** The number of left-aligned columns; undefined means all. */
  readonly left?: number;
  /** True: read all pages. */
  readonly isWhole?: true;
  /** The note to print if the list is empty. */
  readonly empty?: string;
  /** The note to print if the answer is a page and there are further rows. */
  readonly hasMore?: string;
  /** True: separate the cells by two blanks instead of aligning them in columns. */
  readonly isLoose?: boolean;
  /** Returns the rows with further members, which it reads from other lists. */
  readonly complete?: (
    rows: readonly Fields[],
    values: Given,
    listAll: ListAll,
  ) => Promise<readonly Fields[]>;
}

/** A column: see `columns`. svc leaves it out if its function returns undefined for all rows. */
export type Column = string | ((row: Fields, say: Say) => string | undefined);

export type ListAll = (
  path: string,
  query?: Readonly<Record<string, string>>,
) => Promise<readonly Fields[]>;

export interface Shown {
  /** Lines for stdout, unless JSON is asked for. */
  readonly lines?: readonly string[];
  readonly note?: string | readonly string[];
  /** Warnings; any of them makes the command fail. */
  readonly warnings?: readonly string[];
  readonly isFailure?: boolean;
  /** The problem with which the command ends. */
  readonly problem?: Problem;
}

export interface Asked {
  /** The argument; '' if the command has none. */
  readonly argument: string;
  /** The body or the query that was sent. */
  readonly sent: Fields;
}

/** Functions that write values for the terminal. */
export interface Say {
  /**
   * Writes a value on one line. Elements of a list are separated by blanks. Any other value that is no text and no
   * number becomes ''.
   */
  readonly line: (value: unknown, charsMax?: number) => string;
  /** Writes a time of the API as local time. */
  readonly time: (value: unknown) => string;
  /** Writes a count: `1 record`, `2 records`. */
  readonly count: (value: unknown, noun: string) => string;
}

export function wholeNumber(digits: number, hint: string): Reading {
  const pattern = new RegExp(`^\\d{1,${digits}}$`);
  const read = (stated: unknown): number | undefined =>
    pattern.test(String(stated)) ? Number(stated) : undefined;
  return { read, expected: 'expected a whole number.', hint };
}

export function timeOptions(from: string, to: string): readonly OptionRow[] {
  return [
    option('--from <when>', 'a day or a time, UTC', from, { as: WHEN }),
    option('--to <when>', 'up to this time, which is excluded', to, { as: WHEN }),
  ];
}

export function limitOption(about: string, fallback: number): OptionRow {
  const read = (stated: unknown): string | undefined =>
    /^\d{1,6}$/.test(String(stated)) && Number(stated) >= 1 && Number(stated) <= PAGE_MAX
      ? String(Number(stated))
      : undefined;
  const expected = `expected a whole number from 1 to ${PAGE_MAX}.`;
  return option('--limit <number>', `${about} (${fallback})`, 'limit', {
    as: { read, expected, hint: `Try --limit ${fallback}` },
    otherwise: String(fallback),
  });
}

/** Reads a day or a time. A day means its beginning in UTC. */
export const WHEN: Reading = {
  read: (stated) => timeOf(String(stated)),
  expected: 'expected a day or a time.',
  hint: 'Give it as 2026-11-20.',
};

/** Reads a day or a time as a day. */
export const DAY: Reading = {
  ...WHEN,
  read: (stated) => timeOf(String(stated))?.slice(0, 'YYYY-MM-DD'.length),
};

function timeOf(stated: string): string | undefined {
  const at = Date.parse(stated);
  const isTime = isDay(stated.slice(0, 'YYYY-MM-DD'.length)) && !Number.isNaN(at);
  return isTime ? new Date(at).toISOString() : undefined;
}

const DAY_MS = 86_400_000;

/** The option `--expires`. Without it the key or token never expires. */
export const EXPIRES = option('--expires <when>', 'days from now (90d) or a date', 'expires_at', {
  as: {
    read: (value, now) => {
      const stated = String(value);
      const days = /^(\d{1,5})d$/.exec(stated)?.[1];
      const until = days === undefined ? timeOf(stated) : isoTime(now + Number(days) * DAY_MS);
      return until !== undefined && Date.parse(until) > now ? until : undefined;
    },
    expected: 'expected a number of days or a future date.',
    hint: 'Try --expires 90d',
  },
  otherwise: null,
});

/** The column for the last use of a key or token: `used 2026-11-20 16:45:02`. */
export const USED: Column = ({ last_used_at: at }, { time }) =>
  `used ${typeof at === 'string' ? time(at) : 'never'}`;

/** Makes the argument for the public part of a key or token. Other users could read a whole key on a command line. */
export function idArgument(list: string): ArgumentRow {
  const hint = `Give the 12 characters that ${list} shows, never the secret itself.`;
  return {
    flags: '<id>',
    about: 'the 12 characters that the list shows',
    pattern: /^[0-9A-Za-z]{12}$/,
    problem: ['This is not the id of a key.', hint],
  };
}

export type ConsoleParts = Pick<
  ServingParts,
  'store' | 'pepper' | 'clock' | 'randomBytes' | 'vault' | 'signer' | 'listCatalog'
> & {
  readonly settings: Pick<ServiceLimits, 'egress' | 'publicUrl'>;
  /** The receipts of the serving process; undefined in any other process. */
  readonly receipts: Receipts | undefined;
  readonly links: ProviderLinks;
};

/** The caller: an admin with a token, or a user on the service's machine, who may do everything. */
export interface ConsoleActor {
  readonly type: 'admin' | 'cli';
  readonly id: string;
  readonly role: AdminRole;
  /** The actor's tenant; undefined means every tenant. */
  readonly tenant: string | undefined;
  readonly ipHash: string | null;
}

export interface ConsoleRequest {
  readonly method: string;
  /** The part of the path after `/v1/svc/console/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The tenant that the caller named; undefined means the actor's own, or `default` for an actor without one. */
  readonly tenant: string | undefined;
  /** The parsed JSON of the body; `{}` if there is none. */
  readonly body: unknown;
  /** The version that the caller read, from If-Match. */
  readonly ifVersion?: number | undefined;
}

export interface ConsoleReply {
  readonly status: 200 | 201 | 204;
  /** The answer's body; undefined with status 204. */
  readonly body?: unknown;
}

export interface ConsoleCall extends ConsoleRequest {
  readonly actor: ConsoleActor;
  readonly parts: ConsoleParts;
  readonly parameter: string;
  readonly tenantId: string;
  readonly now: number;
}

/** Returns the tenant of a call. Throws ServiceFault if it does not exist. */
async function findTenant(call: ConsoleCall): Promise<TenantFacts> {
  const facts = await call.parts.store.findTenant(call.tenantId);
  if (facts === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
  return facts;
}

export function storeOf({ parts, tenantId }: ConsoleCall): TenantStore {
  return parts.store.of(tenantId);
}

export function noteOf(
  { actor, parts, now }: ConsoleCall,
  kind: AuditKind,
  about: Pick<AuditNote, 'target' | 'details'>,
): AuditNote {
  const { type, id, ipHash } = actor;
  return {
    event_id: newId('evt', parts.randomBytes),
    at: now,
    kind,
    actor: { type, id, ip_hash: ipHash },
    ...about,
  };
}

/** Makes one change together with its audit event. Throws ServiceFault if the change is not possible. */
export async function apply<Change>(
  call: ConsoleCall,
  store: { apply(change: Change, note: AuditNote): Promise<ChangeOutcome> },
  change: Change,
  { kind, id, details = {}, type = kind.split('.')[0] ?? '', what }: ChangeWords,
): Promise<void> {
  const note = noteOf(call, kind, { target: { type, id }, details });
  mustBeDone(await store.apply(change, note), what ?? type.replace('_', ' '));
}

interface ChangeWords {
  readonly kind: AuditKind;
  readonly id: string;
  readonly details?: AuditNote['details'];
  /** The type of the target in the audit event; undefined means the part of `kind` before the dot. */
  readonly type?: string;
  /** The word for the target in error messages; undefined means `type`, with a blank for `_`. */
  readonly what?: string;
}

/** Throws ServiceFault for every outcome except 'done'. `what`: the word for the target in the message. */
export function mustBeDone(outcome: ChangeOutcome, what: string): void {
  switch (outcome) {
    case 'done':
      return;
    case 'missing':
      throw new ServiceFault('NOT_FOUND', `There is no such ${what}.`);
    case 'exists':
      throw new ServiceFault('CONFLICT', `There is a ${what} of this name already.`);
    case 'used':
      throw new ServiceFault('CONFLICT', `The ${what} is still in use.`);
    case 'changed':
      throw new ServiceFault('CONFLICT', `The ${what} has changed since: read it again.`);
    case 'clash':
      throw new ServiceFault('CONFLICT', `Another ${what} has one of its models.`);
    case 'limit':
      throw new ServiceFault('PLAN_LIMIT_REACHED', `The plan allows no further ${what}.`);
  }
}

const PAGE_MAX = 100;

/** Reads the page of a list from the query. Its limit is one more than asked for: see `listReply`. */
export function pageOf(query: URLSearchParams, fallback = PAGE_MAX): Page {
  const limit = query.get('limit') ?? String(fallback);
  const after = query.get('after') ?? undefined;
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > PAGE_MAX) {
    throw invalid(`limit is not a whole number from 1 to ${PAGE_MAX}.`, 'limit');
  }
  if (after !== undefined && !/^[\w-]{1,128}$/.test(after)) {
    throw invalid('after is not an id.', 'after');
  }
  return { limit: Number(limit) + 1, after };
}

interface RowForm<Row> {
  readonly idOf: (row: Row) => string;
  readonly wireOf: (row: Row) => unknown;
}

/** Makes the answer with a page of a list. `rows`: the rows of the page, and one more if there is another page. */
export function listReply<Row>(
  rows: readonly Row[],
  { limit }: Page,
  { idOf, wireOf }: RowForm<Row>,
): ConsoleReply {
  const shown = rows.slice(0, limit - 1);
  const hasMore = rows.length > shown.length;
  return {
    status: 200,
    body: listBody({ data: shown.map(wireOf), ids: shown.map(idOf), hasMore }),
  };
}

/** Returns an object with the member; an empty object if the value is null or undefined. */
export function present<Name extends string, Value>(
  name: Name,
  value: Value | null | undefined,
): { readonly [Member in Name]?: Value } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A computed name loses its type.
  return (value === null || value === undefined ? {} : { [name]: value }) as {
    readonly [Member in Name]?: Value;
  };
}

/** Parses a time of expiry; undefined if none is stated. Throws ServiceFault if it is not in the future. */
export function expiryOf(stated: string | null | undefined, now: number): number | undefined {
  if (stated === null || stated === undefined) return undefined;
  const at = Date.parse(stated);
  if (at > now) return at;
  throw invalid('expires_at is not in the future.', 'expires_at');
}

export function timeOrNull(at: number | undefined): string | null {
  return at === undefined ? null : isoTime(at);
}

/** The shape of a body without members. */
export const nothing = closed({});

/** A one-line name for people. */
export const personName = text({ min: 1, max: 100, pattern: /^[^\p{Cc}\p{Zl}\p{Zp}]*$/u });
/** A name of a plan or provider, which users type in commands. */
export const commandName = text({ pattern: /^[a-z0-9][a-z0-9-]{0,62}$/ });
/** Matches the name of a model, or a prefix that ends in a star. */
const MODEL_NAME = /^(?:[\w.:@/+~-]{1,256}|[\w.:@/+~-]{0,255}\*)$/;
export const modelNames = distinct(listOf(text({ pattern: MODEL_NAME }), { min: 1, max: 500 }));

export function distinct<Element>(shape: Shape<readonly Element[]>): Shape<readonly Element[]> {
  return such(shape, (list) => new Set(list).size === list.length, 'has a duplicate element');
}
