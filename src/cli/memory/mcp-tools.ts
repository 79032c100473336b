import { beginningOf, countLines, parseLineRange } from '../../core/bytes/lines.ts';
import { excerptOf, type ExcerptRequest, type PartWords } from '../../core/memory/excerpt.ts';
import { isShortReference } from '../../core/memory/reference.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import type { Memory, StoredRecord } from '../../ports/memory.ts';
import { timeText } from '../listing.ts';
import { retrieveFrom } from './memory.ts';
import type { CliStore } from '../compose-store.ts';
import type { ChangeReader } from './changed-since.ts';

/**
 * The memory tools for a model. Each answer is a list of texts: the first is the stored text, to
 * the byte, and nothing but it; svc's own remarks come after.
 */

/** Claude Code takes 25,000 tokens from a tool and no more; this is at most 20,000 of them. */
export const ANSWER_CHARS_MAX = 60_000;
/** Limit for each memory that a search finds: memory_get gives the rest. */
const FOUND_CHARS_MAX = 2_000;
export const FOUND_MAX = 20;
export const FOUND_USUAL = 5;

export interface ToolAnswer {
  readonly texts: readonly string[];
  readonly isError?: boolean;
}

export interface GetRequest extends ExcerptRequest {
  readonly ref: string;
}

const FIELDS: PartWords = {
  lines: (range) => `lines "${range}"`,
  grep: 'grep',
  around: 'around',
  all: 'all: true',
};

/** The spaces that the person lets a model read; undefined: all of them. */
export type AllowedSpaces = readonly string[] | undefined;

export async function getForModel(
  store: Pick<CliStore, 'memory' | 'readOutput'>,
  request: GetRequest & { readonly allowed: AllowedSpaces; readonly changes: ChangeReader },
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const { ref: asked, allowed, changes, ...part } = request;
  const begun = await beginningSo(store, { ref: asked, allowed }, signal);
  if (begun.length > 1) {
    return failure(`Several references begin with this: ${begun.join(', ')}. Ask for one of them.`);
  }
  const ref = begun[0] ?? asked;
  const record = await retrieveAllowed(store, { ref, allowed }, signal);
  if (record === undefined) {
    const hint = allowed === undefined ? '' : ` ${moreSpaces(allowed)}`;
    return failure(`No memory here has this reference. memory_search finds some by words.${hint}`);
  }
  const excerpt = excerptOf(record.text, part, FIELDS);
  if ('problem' in excerpt) return failure(`${excerpt.problem} ${excerpt.hint}`);
  const { text, wholeLines } = beginningOf(excerpt.text, ANSWER_CHARS_MAX);
  const changed = await changes.remark(record.ref);
  const remarks = changed === undefined ? [] : [changed];
  if (text.length === excerpt.text.length) {
    return { texts: [text, ...(excerpt.rest === undefined ? [] : [excerpt.rest]), ...remarks] };
  }
  const range = parseLineRange(part.lines ?? '');
  const all = countLines(record.text);
  const first = range?.from ?? 1;
  const rest =
    wholeLines === 0
      ? `[svc: this is the start of line ${first}, which is too long for one answer. In a shell, svc memory get ${ref} --all prints the whole line.]`
      : `[svc: lines ${first}-${first + wholeLines - 1} of ${all}. For the next ones ask for lines "${first + wholeLines}-${range?.to ?? all}".]`;
  return { texts: [text, rest, ...remarks] };
}

/** References that begin so, of what the model may read; none where the reference is whole. */
async function beginningSo(
  store: Pick<CliStore, 'memory' | 'readOutput'>,
  { ref, allowed }: { readonly ref: string; readonly allowed: AllowedSpaces },
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!isShortReference(ref)) return [];
  const refs = await store.memory.references(ref, signal);
  const found = await Promise.all(
    refs.map((one) => retrieveAllowed(store, { ref: one, allowed }, signal)),
  );
  return refs.filter((_, at) => found[at] !== undefined);
}

/** The same words may be held in several spaces: one that the model may read is enough. */
async function retrieveAllowed(
  store: Pick<CliStore, 'memory' | 'readOutput'>,
  { ref, allowed }: { readonly ref: string; readonly allowed: AllowedSpaces },
  signal: AbortSignal,
): Promise<{ readonly ref: string; readonly text: string } | undefined> {
  if (allowed === undefined) return retrieveFrom(store, ref, signal);
  const first = await store.memory.retrieve({ ref }, signal);
  if (first === undefined || allowed.includes(first.space)) return first;
  const { digest } = first;
  const found = await Promise.all(
    allowed.map((space) => store.memory.retrieve({ digest, space }, signal)),
  );
  return found.find((record) => record !== undefined);
}

function moreSpaces(allowed: readonly string[]): string {
  return `A model may read ${allowed.join(' and ')}. The person allows more with: svc mcp --space NAME`;
}

export interface SearchRequest {
  readonly query: string;
  readonly limit?: number | undefined;
  readonly space?: string | undefined;
}

/** Without a space: everything that the model may read, the project of its folder first. */
export async function searchForModel(
  memory: Pick<Memory, 'list'>,
  request: SearchRequest & {
    readonly project: string;
    readonly allowed: AllowedSpaces;
    readonly changes: ChangeReader;
  },
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const { query, limit = FOUND_USUAL, space, project, allowed, changes } = request;
  if (space !== undefined && allowed?.includes(space) === false) {
    return failure(moreSpaces(allowed));
  }
  const spaces = space === undefined ? (allowed ?? [project, GLOBAL_SPACE]) : [space];
  const found = await Promise.all(
    spaces.map((name) => memory.list({ words: query, limit, space: name }, signal)),
  );
  const shown = found.flat().slice(0, limit);
  const remarks = await Promise.all(shown.map(({ ref }) => changes.remark(ref)));
  const texts = shown.map((record, at) => foundText(record, remarks[at]));
  if (texts.length > 0) return { texts };
  return { texts: [`Nothing found in ${spaces.join(' and ')}.`] };
}

function foundText(
  { ref, at, role, space, text }: StoredRecord,
  changed: string | undefined,
): string {
  const start = beginningOf(text, FOUND_CHARS_MAX).text;
  const rest =
    start.length === text.length ? '' : ` (its start; memory_get ${ref} gives all of it)`;
  return `${ref}, ${timeText(at)}, said by the ${role} in ${space}${rest}:\n${start}${changed === undefined ? '' : `\n${changed}`}`;
}

function failure(text: string): ToolAnswer {
  return { texts: [text], isError: true };
}
