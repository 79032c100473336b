import { randomUUID } from 'node:crypto';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { captureStored, lookQuestion, TEXT_CHARS_MAX } from '../../core/memory/captures.ts';
import { referenceOf } from '../../core/memory/reference.ts';
import { isSpace } from '../../core/request/space.ts';
import type { ProxySettings } from '../../core/settings/settings.ts';
import type { DeskFilter, DeskRecord, MemoryDesk } from '../../ports/memory-desk.ts';
import type { Memory } from '../../ports/memory.ts';
import {
  type DaysAnswer,
  type ForgotAnswer,
  type LookAnswer,
  type MemoriesAnswer,
  type MemoryAnswer,
  PROMPT_CHARS_MAX,
  type ShelvesAnswer,
  UNDO_MAX,
} from '../../ports/ui-api.ts';
import { beginningsOf } from './request-calls.ts';
import {
  type ApiAnswer,
  type ApiCall,
  deadline,
  invalid,
  isRefs,
  memberText,
  numberIn,
  optionalMember,
  optionalTextIn,
  textIn,
  UiRefusal,
  type UiRoute,
} from './ui-routes.ts';

/** What the calls need that search, read and manage memories. */
interface MemoryCallParts {
  readonly memory: Memory;
  /** The operations for managing memories; undefined with a memory service. */
  readonly desk: MemoryDesk | undefined;
  /** Finds the requests that quoted a memory, in the request log. It works with a memory service too. */
  readonly sightings: MemoryDesk['sightings'];
  readonly now: () => number;
  readonly settings: () => ProxySettings;
  readonly moveSpace: (change: SpaceChange) => Promise<void>;
  /** Returns the references of a project's outgrown memories: files that they are about have changed since. */
  readonly stale: (space: string) => Promise<readonly string[]>;
}

export interface SpaceChange {
  readonly from: string;
  readonly to: string;
  /** True: the space `to` may have memories already. */
  readonly isMerge: boolean;
}

const PAGE_MAX = 100;
const SPACE_CHARS = 1024;
/** Most characters of a memory that is recalled in every session. A longer memory could displace the others. */
const ALWAYS_CHARS_MAX = 600;
/** Bound on the records of a session that svc reads, because a memory service cannot list those of one exchange. */
const EXCHANGE_READ_MAX = 200;

export function memoryRoutes(parts: MemoryCallParts): readonly UiRoute[] {
  const forgotten = new ForgottenRecords(parts.now);
  return [
    ['GET shelves', () => shelves(parts)],
    ['GET days', (call) => days(parts, call)],
    ['GET memories', (call) => memories(parts, call)],
    ['GET memory', (call) => memoryOf(parts, call)],
    ['POST look', (call) => look(parts, call)],
    ['POST pin', (call) => pin(parts, call)],
    ['POST edit', (call) => edit(parts, call)],
    ['POST move', (call) => move(parts, call)],
    ['POST count', (call) => count(parts, call)],
    ['POST forget', (call) => forget(parts, forgotten, call)],
    ['POST undo', (call) => undo(parts, forgotten, call)],
    ['POST spaces', (call) => spaces(parts, call)],
  ];
}

function deskOf({ desk }: MemoryCallParts): MemoryDesk {
  if (desk !== undefined) return desk;
  throw new UiRefusal(
    409,
    'hosted',
    'A memory service holds these memories, and its contract has no such operation.',
  );
}

async function shelves({ desk }: MemoryCallParts): Promise<ShelvesAnswer> {
  return { shelves: desk === undefined ? null : await desk.shelves() };
}

async function days(parts: MemoryCallParts, { query }: ApiCall): Promise<DaysAnswer> {
  return { days: await deskOf(parts).days(textIn(query, 'space', SPACE_CHARS)) };
}

const ROLES = ['user', 'assistant'] as const;
const KINDS = ['edited', 'always', 'never', 'standing'] as const;
const SOURCES = ['live', 'imported', 'by_hand', 'unverified'] as const;

async function memories(
  { desk, memory, stale }: MemoryCallParts,
  { query }: ApiCall,
): Promise<MemoriesAnswer> {
  const limit = numberIn(query, 'limit', { fallback: 50, max: PAGE_MAX });
  const filter = filterOf(query);
  if (desk !== undefined) {
    // The store cannot filter outgrown memories, because the files on disk say which these are.
    const isStale = query.get('kind') === 'stale';
    const refs = isStale ? { refs: await stale(textIn(query, 'space', SPACE_CHARS)) } : {};
    return desk.browse({ ...filter, ...refs, limit });
  }
  // Leave out the filters that a memory service does not support. The page does not offer them either.
  const { kind: _, source: __, client: ___, ...asked } = filter;
  // Ask for one record more than is shown: if it comes, there are more. A memory service returns no total.
  const records = await memory.list({ ...asked, limit: limit + 1 }, deadline());
  return { records: records.slice(0, limit), total: records.length };
}

const TIME = { fallback: 0, max: 8.64e15 };

function filterOf(query: URLSearchParams): Omit<DeskFilter, 'limit'> {
  const member = (name: string, charsMax: number) => optionalTextIn(query, name, charsMax);
  const time = (name: string) => (query.has(name) ? numberIn(query, name, TIME) : undefined);
  const values = {
    since: time('since'),
    until: time('until'),
    space: member('space', SPACE_CHARS),
    words: member('words', 4096),
    client: member('client', 128),
    conversation: member('session', 1024),
    role: ROLES.find((role) => role === member('role', 16)),
    kind: KINDS.find((kind) => kind === member('kind', 16)),
    source: SOURCES.find((source) => source === member('source', 16)),
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

async function memoryOf(parts: MemoryCallParts, { query }: ApiCall): Promise<MemoryAnswer> {
  const ref = textIn(query, 'ref', 64);
  const space = optionalTextIn(query, 'space', SPACE_CHARS);
  const record = await recordOf(parts, ref, space);
  if (record === undefined) {
    throw new UiRefusal(404, 'forgotten', 'This memory was forgotten, edited or moved.');
  }
  const [[session = ''], refs] = await Promise.all([
    beginningsOf(parts, [record]),
    exchangeRefs(parts, record),
  ]);
  return { record, sightings: await parts.sightings(refs), session };
}

/** Returns the references of an exchange's records, found within EXCHANGE_READ_MAX. A block names only one of them. */
async function exchangeRefs(
  { desk, memory }: MemoryCallParts,
  { space, conversation, exchange }: DeskRecord,
): Promise<readonly string[]> {
  const filter = { space, conversation, limit: EXCHANGE_READ_MAX };
  const beside =
    desk === undefined
      ? await memory.list(filter, deadline())
      : (await desk.browse({ ...filter, exchange })).records;
  return beside.filter((one) => one.exchange === exchange).map(({ ref }) => ref);
}

/** Returns the memory with this reference; undefined for a tool output. If several spaces have it, prefers `space`. */
async function recordOf(
  { desk, memory }: MemoryCallParts,
  ref: string,
  space: string | undefined,
): Promise<DeskRecord | undefined> {
  const found = await memory.retrieve({ ref }, deadline());
  if (found === undefined || found.role === 'tool') return undefined;
  if (desk === undefined) return { ...found, role: found.role };
  const { records } = await desk.browse({ refs: [found.ref], limit: 100 });
  return records.find((one) => one.space === space) ?? records[0];
}

async function look(parts: MemoryCallParts, { body }: ApiCall): Promise<LookAnswer> {
  const desk = deskOf(parts);
  const space = spaceIn(body, 'space');
  const prompt = memberText(body, 'prompt', PROMPT_CHARS_MAX);
  const asked = { space, now: parts.now(), settings: parts.settings() };
  const question = lookQuestion(prompt, asked);
  const from = performance.now();
  const found = await desk.look(question);
  return { ...found, tokensMax: question.tokensMax, ms: performance.now() - from };
}

async function pin(parts: MemoryCallParts, { body }: ApiCall): Promise<ApiAnswer> {
  const desk = deskOf(parts);
  const wanted = optionalMember(body, 'pin', 16);
  const kept = wanted === 'always' || wanted === 'never' ? wanted : undefined;
  const place = { space: spaceIn(body, 'space'), ref: memberText(body, 'ref', 64) };
  if (kept === 'always') {
    const [record] = (await desk.browse({ space: place.space, refs: [place.ref], limit: 1 }))
      .records;
    if ((record?.text.length ?? 0) > ALWAYS_CHARS_MAX) throw TOO_LONG;
  }
  if (!(await desk.pin({ ...place, pin: kept }))) throw GONE;
  return {};
}

const TOO_LONG = new UiRefusal(
  409,
  'too_long',
  `Only a memory of at most ${ALWAYS_CHARS_MAX} characters can always be recalled. Shorten it first.`,
);

const GONE = new UiRefusal(
  409,
  'gone',
  'This memory was edited or forgotten meanwhile. Nothing was changed.',
);

async function edit(parts: MemoryCallParts, { body }: ApiCall): Promise<ApiAnswer> {
  const desk = deskOf(parts);
  const space = spaceIn(body, 'space');
  const ref = memberText(body, 'ref', 64);
  const [old] = (await desk.browse({ space, refs: [ref], limit: 1 })).records;
  if (old === undefined) throw GONE;
  const text = captureStored(old.role, memberText(body, 'text', TEXT_CHARS_MAX));
  if (text === undefined) throw new UiRefusal(400, 'empty', 'The text is empty.');
  if (old.pin === 'always' && text.text.length > ALWAYS_CHARS_MAX) throw TOO_LONG;
  const state = await desk.edit({ space, ref, text, at: parts.now() });
  if (state === 'gone') throw GONE;
  if (state === 'forgotten') {
    throw new UiRefusal(409, 'buried', 'This text was forgotten here. Use other words.');
  }
  if (state === 'rejected') throw new UiRefusal(400, 'rejected', 'The memory refused this text.');
  return { ref: referenceOf(text.digest) };
}

async function move(parts: MemoryCallParts, { body }: ApiCall): Promise<ApiAnswer> {
  const { memory } = parts;
  const desk = deskOf(parts);
  const [space, to] = [spaceIn(body, 'space'), newSpaceIn(body)];
  const { records } = await desk.browse({ space, refs: refsIn(body), limit: 500 });
  let moved = 0;
  for (const { ref } of records) {
    const change = { from: space, to, refs: [ref] };
    // oxlint-disable-next-line no-await-in-loop -- Each call moves one memory completely.
    const done = await memory.moveSome?.(change, deadline());
    if (done === undefined || done.memories === 0) {
      throw new UiRefusal(409, 'buried', 'This text was forgotten there, so it stays where it is.');
    }
    moved += done.memories;
  }
  return { moved };
}

/**
 * Reads which memories a call is about: those with some references, or all of a project. It takes no search words,
 * because they could match more than the page shows.
 */
function chosenIn(
  body: unknown,
): { readonly refs: readonly string[]; readonly space?: string } | { readonly space: string } {
  const space = optionalMember(body, 'space', SPACE_CHARS);
  if (asRecord(body)['refs'] !== undefined) {
    return { refs: refsIn(body), ...(space !== undefined && { space }) };
  }
  if (space === undefined) throw invalid('space');
  return { space };
}

async function count(parts: MemoryCallParts, { body }: ApiCall): Promise<ApiAnswer> {
  const asked = chosenIn(body);
  if (parts.desk === undefined) {
    const records = await parts.memory.list({ ...asked, limit: 1000 }, deadline());
    return { count: records.length };
  }
  return { count: (await parts.desk.browse({ ...asked, limit: 1 })).total };
}

/** Deadline of forgetting, in milliseconds. Half a million memories take less. */
const FORGET_MS = 600_000;

async function forget(
  { desk, memory }: MemoryCallParts,
  forgotten: ForgottenRecords,
  { body }: ApiCall,
): Promise<ForgotAnswer> {
  const filter = chosenIn(body);
  const page = await desk?.browse({ ...filter, limit: UNDO_MAX });
  const canUndo = page !== undefined && page.total <= UNDO_MAX;
  const number = await memory.forget(filter, AbortSignal.timeout(FORGET_MS));
  const undoId = canUndo && number > 0 ? forgotten.keep(page.records) : null;
  return { forgotten: number, undo: undoId, undoMs: KEPT_MS };
}

async function undo(
  parts: MemoryCallParts,
  forgotten: ForgottenRecords,
  { body }: ApiCall,
): Promise<ApiAnswer> {
  const records = forgotten.take(memberText(body, 'undo', 64));
  if (records === undefined) {
    throw new UiRefusal(
      409,
      'late',
      'The minute for an undo is over: these memories are forgotten permanently.',
    );
  }
  return { restored: await deskOf(parts).restore(records) };
}

async function spaces(parts: MemoryCallParts, { body }: ApiCall): Promise<ApiAnswer> {
  deskOf(parts);
  const isMerge = asRecord(body)['isMerge'] === true;
  await parts.moveSpace({ from: spaceIn(body, 'space'), to: newSpaceIn(body), isMerge });
  return {};
}

function spaceIn(body: unknown, name: string): string {
  return memberText(body, name, SPACE_CHARS);
}

function newSpaceIn(body: unknown): string {
  const space = spaceIn(body, 'to');
  if (isSpace(space)) return space;
  throw new UiRefusal(
    400,
    'invalid',
    'A project’s name has 1 to 128 of a-z 0-9 . _ / - and begins with a letter or digit.',
  );
}

function refsIn(body: unknown): readonly string[] {
  const { refs } = asRecord(body);
  if (!isRefs(refs)) throw invalid('refs');
  return refs;
}

/** How long the user can undo a forgetting, in milliseconds. */
const KEPT_MS = 60_000;
const LISTS_MAX = 20;

/** Keeps forgotten records for an undo, in the memory of this process and never on disk. */
class ForgottenRecords {
  readonly #now: () => number;
  readonly #lists = new Map<
    string,
    { readonly records: readonly DeskRecord[]; readonly at: number }
  >();

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Keeps records for KEPT_MS, or until LISTS_MAX newer lists have come. Returns the name with which take() finds them.
   */
  keep(records: readonly DeskRecord[]): string {
    const name = randomUUID();
    this.#lists.set(name, { records, at: this.#now() });
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > LISTS_MAX && oldest !== undefined) this.#lists.delete(oldest);
    setTimeout(() => this.#lists.delete(name), KEPT_MS).unref();
    return name;
  }

  /** Returns the records, and drops them here. Undefined if they are not kept any more. */
  take(name: string): readonly DeskRecord[] | undefined {
    const list = this.#lists.get(name);
    this.#lists.delete(name);
    return list === undefined || this.#now() - list.at > KEPT_MS ? undefined : list.records;
  }
}
