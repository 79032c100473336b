import { groupBy } from '../../core/bytes/batches.ts';
import { dayName } from '../../core/meter/figures.ts';
import {
  projectOf,
  wholeReference,
  wholeReferences,
  noSuchReference,
  namesOf,
  nameOf,
} from './named.ts';
import { deadline, readStore, withStore } from '../store.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { CONTEXT_MAX, type Excerpt, excerptOf, type PartWords } from './excerpt.ts';
import type { ForgetFilter, Memory, StoredRecord } from '../../ports/memory.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { limitOf, timeText, LIST_LIMIT, type ListOptions } from '../listing.ts';
import type { CliStore } from '../compose-store.ts';
import { changeReader } from './memory-code.ts';
import { awaitCaptures } from '../proxy/late-captures.ts';
import { nameForgotten } from '../proxy/recent-trouble.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import type { SpaceNames } from '../../core/request/space-names.ts';
import { readHookKey } from '../../adapters/files/hook-key.ts';

/** Runs the commands of `svc memory` that list, search, read and forget memories. */

interface GetOptions {
  readonly origin?: boolean;
  /** A range of lines `from-to`, both counted from 1. */
  readonly lines?: string;
  readonly grep?: string;
  readonly context?: string;
  readonly around?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

interface ForgetOptions {
  readonly space?: string;
  readonly search?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Lists memories, newest first. With words it lists those that match, best first. */
export async function listMemories({ args, options, context }: Call<ListOptions>): Promise<void> {
  const words = args.length === 0 ? undefined : args.join(' ');
  const filter = {
    limit: limitOf(options.limit, LIST_LIMIT),
    ...(options.space === undefined ? {} : { space: options.space }),
    ...(words === undefined ? {} : { words }),
  };
  const records = await readStore(context, async ({ memory }) => {
    await awaitCaptures(dataFolder(context.environment), context.terminal);
    return memory.list(filter, deadline());
  });
  const { terminal } = context;
  const names = namesOf(records, context);
  if (options.json === true) terminal.json(records);
  else if (terminal.isWatched && words === undefined) showByProject(records, names, terminal);
  else {
    for (const record of records) terminal.row(recordText(record, names), '    ');
  }
  if (records.length === 0) terminal.note('Nothing found.');
}

const CONTEXT = { fallback: 2, min: 0, max: CONTEXT_MAX, name: '--context' };

const FLAGS: PartWords = {
  lines: (range) => `--lines ${range}`,
  grep: '--grep PATTERN',
  around: '--around NAME',
  all: '--all',
};

/** Prints a stored text, or the requested part. It cuts a long text unless --all is set, and notes what is missing. */
export async function getMemory({
  args: [ref = ''],
  options,
  context,
}: Call<GetOptions>): Promise<void> {
  if (options.origin === true) {
    const { showMemory } = await import('./memory-code.ts');
    return showMemory({ ref, json: options.json }, context);
  }
  const { json, context: around, ...part } = options;
  const lines = around === undefined ? {} : { context: limitOf(around, CONTEXT) };
  const asked = { ...part, ...lines };
  // Check the flags first, so that wrong ones are reported even if the reference is unknown.
  const wrong = excerptOf('', asked, FLAGS);
  if ('problem' in wrong && wrong.isMisuse === true) throw problemError(wrong);
  const found = await readStore(context, async (store) => {
    const record = await retrieveFrom(store, ref);
    const remarkFor = changeReader(store, dataFolder(context.environment));
    return record && { record, changed: await remarkFor(record.ref) };
  });
  if (found === undefined) throw noSuchReference(ref);
  const { record, changed } = found;
  const excerpt = excerptOf(record.text, asked, FLAGS);
  if ('problem' in excerpt) throw problemError(excerpt);
  if (json === true) context.terminal.json({ ...record, ...excerpt });
  else context.terminal.outText(excerpt.text);
  if (excerpt.rest !== undefined && json !== true) context.terminal.note(excerpt.rest);
  if (changed !== undefined && json !== true) context.terminal.note(changed);
}

function problemError({
  problem,
  hint,
  isMisuse,
}: Extract<Excerpt, { problem: string }>): CliError {
  return new CliError(problem, hint, isMisuse === true ? 2 : 1);
}

/**
 * Reads a stored text; undefined if the memory has no such text. If the memory fails, reads a left-out output from the
 * output's own file: in a read-only sandbox, which is Codex's default, the database cannot be opened.
 */
export async function retrieveFrom(
  { memory, readOutput }: Pick<CliStore, 'memory' | 'readOutput'>,
  ref: string,
  signal = deadline(),
): Promise<{ readonly ref: string; readonly text: string } | undefined> {
  try {
    return await memory.retrieve({ ref: await wholeReference(memory, ref, signal) }, signal);
  } catch (error) {
    if (error instanceof CliError) throw error;
    const text = readOutput(ref);
    if (text === undefined) throw error;
    return { ref, text };
  }
}

/** Forgets memories after a confirmation: it asks on a terminal, and elsewhere requires --yes. */
export async function forgetMemories(call: Call<ForgetOptions>): Promise<ExitCode> {
  const { args: refs, options, context } = call;
  const { terminal } = context;
  const confirm = context.asker?.();
  if (refs.length === 0 && options.space === undefined && options.search === undefined) {
    throw new CliError(
      'Say what to forget: references, or --search, or --space.',
      'For example: svc memory forget m_… (references are in svc memory list)',
      2,
    );
  }
  if (refs.length > 0 && options.search !== undefined) {
    throw new CliError('Use references or --search, not both.', 'See: svc memory forget --help', 2);
  }
  if (options.yes !== true && confirm === undefined) {
    throw new CliError(
      'This cannot be undone. To confirm, add --yes.',
      'See them first: svc memory get m_…, svc memory search WORDS, svc memory list --space NAME',
      2,
    );
  }
  const missing: string[] = [];
  const forgotten = await withStore(context, async (store) => {
    const { memory } = store;
    const { parts, question } = await forgetChoice(call, memory);
    const isSure = options.yes === true || (await confirm?.(question)) === true;
    if (!isSure) return undefined;
    let number = 0;
    for (const { filter, unlisted } of parts) {
      // Set no deadline, because a forgetting that ends early leaves memories behind.
      // oxlint-disable-next-line no-await-in-loop -- One call for each space.
      const some = await memory.forget(filter, new AbortController().signal, (done, all) =>
        terminal.progress(`${done} of ${all} forgotten`),
      );
      if (some === 0 && unlisted !== undefined) missing.push(unlisted);
      number += some;
    }
    terminal.progressDone();
    if (number > 0) {
      for (const ref of missing) terminal.note(`No memory has the reference ${ref}.`);
      const folder = dataFolder(context.environment);
      await nameForgotten(store, folder, terminal);
      if (readHookKey(folder) !== undefined) terminal.note(IN_TRANSCRIPTS);
    }
    return number;
  });
  terminal.progressDone();
  if (forgotten === undefined) {
    terminal.note('Nothing was forgotten.');
    return 130;
  }
  if (options.json === true) terminal.json({ forgotten });
  else if (forgotten > 0) terminal.note(`Forgotten: ${forgotten}. svc does not capture it again.`);
  if (forgotten > 0) return missing.length === 0 ? 0 : 1;
  const rule = refs.find((ref) => ref.startsWith('r_'));
  if (rule !== undefined) throw noSuchReference(rule);
  throw new CliError('No memory matches.', 'List the memories: svc memory list');
}

interface ForgetChoice {
  readonly parts: readonly ForgetPart[];
  readonly question: string;
}

interface ForgetPart {
  readonly filter: ForgetFilter;
  /** The reference as the user typed it, if Memory.list() has no record for `filter`: the reference may be wrong. */
  readonly unlisted?: string;
}

async function forgetChoice(call: Call<ForgetOptions>, memory: Memory): Promise<ForgetChoice> {
  const { args: refs, options, context } = call;
  const { space, search } = options;
  if (refs.length > 0) return forgetByReference(call, memory);
  const where = space === undefined ? 'every space' : nameOf(space, context);
  if (search === undefined) {
    const filter = { space: space ?? '' };
    return { parts: [{ filter }], question: `Forget every memory of ${where}?` };
  }
  return {
    parts: [{ filter: space === undefined ? { words: search } : { space, words: search } }],
    question: `Forget every memory of ${where} that matches these words?`,
  };
}

/**
 * Returns what to forget for references. A reference names a text, and several spaces may have that text. A listed text
 * is forgotten in the space of --space, or else in the only space that has it, or else in the current folder's project.
 * The other spaces are printed. Throws CliError if this project is not one of several spaces that have the text.
 */
async function forgetByReference(
  { args: refs, options, context }: Call<ForgetOptions>,
  memory: Memory,
): Promise<ForgetChoice> {
  const { terminal } = context;
  const whole = await wholeReferences(memory, refs);
  const held = await memory.list({ refs: whole, limit: LIST_LIMIT.max }, deadline());
  const names = namesOf(held, context);
  const parts: ForgetPart[] = [];
  const bySpace = new Map<string, string[]>();
  for (const [at, ref] of whole.entries()) {
    const typed = refs[at] ?? ref;
    const spaces = spacesOf(ref, held);
    const isListed = spaces.length > 0 && spaces.includes(options.space ?? spaces[0] ?? '');
    if (!isListed) {
      // `list` does not include left-out outputs. Without --space, forget the text in every space.
      const where = options.space === undefined ? {} : { space: options.space };
      parts.push({ filter: { refs: [ref], ...where }, unlisted: typed });
      continue;
    }
    const one = spaces.length > 1 ? undefined : spaces[0];
    // oxlint-disable-next-line no-await-in-loop -- Seldom more than one text is in several spaces.
    const space = options.space ?? one ?? (await projectAmong(spaces, context));
    bySpace.set(space, [...(bySpace.get(space) ?? []), ref]);
    const [other, ...more] = spaces.filter((name) => name !== space).map((name) => names.of(name));
    if (other === undefined) continue;
    const text = refs.length === 1 ? 'this text' : `the text of ${typed}`;
    const others = [other, ...more].join(', ');
    terminal.note(`${others} also has ${text}. svc forgets it in ${names.of(space)} only.`);
    terminal.note(`  Forget it there too: svc memory forget ${typed} --space ${other}`);
  }
  for (const [space, some] of bySpace) parts.push({ filter: { refs: some, space } });
  const where = Array.from(bySpace.keys(), (space) => names.of(space)).join(', ');
  const text = held.length === 1 ? `: ${oneLine(held[0]?.text ?? '', QUESTION_CHARS)}` : '';
  const what = refs.length === 1 ? 'this memory' : `these ${refs.length} memories`;
  return { parts, question: `Forget ${what}${where === '' ? '' : ` of ${where}`}${text}?` };
}

function spacesOf(ref: string, held: readonly StoredRecord[]): readonly string[] {
  return [...new Set(held.filter((one) => one.ref === ref).map(({ space }) => space))].toSorted();
}

const QUESTION_CHARS = 60;

async function projectAmong(spaces: readonly string[], context: CommandContext): Promise<string> {
  const space = await projectOf(process.cwd(), context.environment);
  if (spaces.includes(space)) return space;
  const names = namesOf(spaces, context);
  throw new CliError(
    `Several spaces have this text: ${spaces.map((one) => names.of(one)).join(', ')}.`,
    'Say in which of them to forget it: --space NAME',
    2,
  );
}

/** Prints records by space; the space of the newest memory is first. */
function showByProject(
  records: readonly StoredRecord[],
  names: SpaceNames,
  terminal: Terminal,
): void {
  const columns = terminal.columns(160);
  for (const [at, [space, held]] of [...groupBy(records, (one) => one.space)].entries()) {
    if (at > 0) terminal.out('');
    terminal.out(terminal.colors.bold(oneLine(names.of(space), columns)));
    for (const record of held) {
      const head = `  ${record.ref}  ${dayName(record.at)}  `;
      const textColumns = Math.max(TEXT_COLUMNS_MIN, columns - head.length);
      terminal.out(`${head}${oneLine(record.text, textColumns)}`);
    }
  }
}

const TEXT_COLUMNS_MIN = 20;

function recordText(
  { ref, at, space, role, client, text }: StoredRecord,
  names: SpaceNames,
): string {
  const source = oneLine(`${names.of(space)} ${role} ${client}`, 80);
  return `${ref}  ${timeText(at)}  ${source}  ${oneLine(text, 80)}`;
}

/** The note after a forgetting. svc does not change the transcripts of clients, into which hooks have put texts. */
const IN_TRANSCRIPTS =
  "What hooks have put into a client's own transcript stays there: delete that session in the client.";
