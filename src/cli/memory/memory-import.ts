import { wrongSpace, namesOf } from './named.ts';
import { withStore } from '../store.ts';
import { linesOf, linesOfFile } from '../../adapters/files/lines.ts';
import { readLine } from '../../core/memory/memory-lines.ts';
import { isSpace, DEFAULT_SPACE } from '../../core/request/space.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { countsText, RecordWriter, type Counts } from './record-writer.ts';
import { TRANSCRIPT_CLIENTS, type TranscriptClient } from '../../core/memory/transcript-forms.ts';
import { homedir } from 'node:os';
import {
  findTranscripts,
  readTranscript,
  type TranscriptFile,
} from '../../adapters/foreign/transcript-files.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { COMMAND_WAITS, GitProjects } from '../../adapters/projects/git-projects.ts';
import type { TranscriptRecord } from '../../core/memory/transcripts.ts';
import { count } from '../listing.ts';

/** Runs `svc memory import`: stores the memories of an export, or of clients' transcripts. */

interface ImportOptions {
  readonly from?: string;
  /** The space for all memories; undefined: that of each exported record, or of a session's project. */
  readonly space?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/**
 * Characters of the longest line. A stored text has at most 512 Ki characters, and JSON writes at most six for each, so
 * no line of an export is longer.
 */
const LINE_CHARS_MAX = 4 * 1024 * 1024;
/** Bound on reported problems, because in a wrong file every line may be one. */
const PROBLEMS_MAX = 5;

export async function importMemories(call: Call<ImportOptions>): Promise<void> {
  const { options, context } = call;
  const [file] = call.args;
  const { from, space } = options;
  if (space !== undefined && !isSpace(space)) throw wrongSpace();
  if (from === undefined) return importLines({ file, options }, context);
  const client = TRANSCRIPT_CLIENTS.find((name) => name === from);
  if (client === undefined || file !== undefined) {
    throw new CliError(
      `Import either a file, or use --from with one of: ${TRANSCRIPT_CLIENTS.join(', ')}.`,
      'For example: svc memory import --from claude-code',
      2,
    );
  }
  return importTranscripts({ client, options }, context);
}

async function importLines(
  { file, options }: { file: string | undefined; options: ImportOptions },
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const problems: string[] = [];
  let lines = 0;
  const found = { records: 0, wrong: 0 };
  const given = { now: Date.now(), ...(options.space !== undefined && { space: options.space }) };
  const counts = await withStore(context, async ({ memory }) => {
    const writer = new RecordWriter(memory);
    for await (const line of linesFrom(file, context)) {
      lines += 1;
      const read = line.length > LINE_CHARS_MAX ? tooLong() : readLine(line, given);
      if (read.kind === 'wrong') {
        found.wrong += 1;
        if (problems.length < PROBLEMS_MAX) problems.push(`line ${lines}: ${read.problem}`);
      }
      if (read.kind !== 'record') continue;
      found.records += 1;
      if (options.dryRun !== true) await writer.write([read.record]);
      if (found.records % 1000 === 0) terminal.progress(`${found.records} memories`);
    }
    return writer.end();
  });
  terminal.progressDone();
  for (const problem of problems) terminal.warn(problem);
  const dryRun = options.dryRun === true;
  if (options.json === true) terminal.json({ dryRun, ...found, ...counts });
  else if (dryRun) terminal.note(`Found ${found.records} memories. Nothing was written.`);
  else
    terminal.note(`Imported ${counts.stored} of ${found.records} memories: ${countsText(counts)}.`);
  if (found.wrong === 0) return;
  const others = !dryRun && found.records > 0 ? 'The other lines were imported. ' : '';
  throw new CliError(
    `Lines without a valid memory: ${found.wrong} of ${lines}.`,
    `${others}Each line must have the format of svc memory export.`,
  );
}

function tooLong(): ReturnType<typeof readLine> {
  return { kind: 'wrong', problem: 'it is longer than 4 MiB' };
}

async function* linesFrom(
  file: string | undefined,
  { stdin }: CommandContext,
): AsyncGenerator<string> {
  if (file !== undefined && file !== '-') {
    try {
      yield* linesOfFile(file);
    } catch (error) {
      const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
      if (typeof code !== 'string') throw error;
      throw new CliError(`The file could not be read (${code}).`, 'Check its path and mode.');
    }
    return;
  }
  if (stdin === undefined || stdin.isTTY === true) {
    throw new CliError(
      'What should svc import?',
      'svc memory import FILE, or --from CLIENT: see svc memory import --help',
      2,
    );
  }
  yield* linesOf(stdin);
}

interface Found {
  sessions: number;
  records: number;
  /** The number of secrets that svc masked in the records. */
  masked: number;
  unreadable: number;
  readonly spaces: Map<string, number>;
}

/**
 * Imports a client's sessions on this machine. Without --yes, and with --dry-run, it only prints the number of records
 * of each space.
 */
export async function importTranscripts(
  { client, options }: { client: TranscriptClient; options: ImportOptions },
  context: CommandContext,
): Promise<void> {
  const { environment, terminal } = context;
  const files = transcriptsOf(client, context);
  const found = nothingFound();
  const writes = options.yes === true && options.dryRun !== true;
  const projects = new GitProjects(dataFolder(environment), {
    ...COMMAND_WAITS,
    isReadOnly: !writes,
  });
  const work = { client, files, projects, space: options.space, found };
  let counts: Counts | undefined;
  if (writes) {
    counts = await withStore(context, async ({ memory }) => {
      const writer = new RecordWriter(memory);
      await readAll({ ...work, take: (records) => writer.write(records) }, context);
      return writer.end();
    });
  } else await readAll(work, context);
  terminal.progressDone();
  reportTranscripts({ client, found, counts, json: options.json === true }, context);
}

/** The number of sessions and memories, which the user sees before the question whether to import them. */
export interface SessionSurvey {
  readonly clients: readonly TranscriptClient[];
  readonly sessions: number;
  readonly memories: number;
  readonly masked: number;
  /** Names of the projects; the one with the most memories is first. */
  readonly projects: readonly string[];
  /** Records of the first session's project, with which the wizard shows what recall would have found. */
  readonly sample: readonly TranscriptRecord[];
  /** True if the deadline ended the count, so that the real numbers may be higher. */
  readonly isPartial: boolean;
}

/** Bound on the records of `sample`: some months of work in one project. */
const SAMPLE_MAX = 2000;

/** Counts the sessions of all clients until the deadline, those of each client newest first. It writes nothing. */
export async function surveySessions(
  context: CommandContext,
  deadlineMs: number,
): Promise<SessionSurvey> {
  const projects = new GitProjects(dataFolder(context.environment), { isReadOnly: true });
  const found = nothingFound();
  const deadline = performance.now() + deadlineMs;
  const isLate = (): boolean => performance.now() > deadline;
  const clients: TranscriptClient[] = [];
  const sample: TranscriptRecord[] = [];
  const take = async (records: readonly TranscriptRecord[]) => {
    const [first = records[0]] = sample;
    if (first?.space !== records[0]?.space) return;
    sample.push(...records.slice(0, SAMPLE_MAX - sample.length));
  };
  for (const client of TRANSCRIPT_CLIENTS) {
    const files = transcriptsOf(client, context).toReversed();
    const before = found.sessions;
    await readAll({ client, files, projects, found, take, isLate }, context);
    if (found.sessions > before) clients.push(client);
  }
  context.terminal.progressDone();
  const { sessions, records: memories, masked, spaces } = found;
  const shown = namesOf(spaces.keys(), context);
  const names = bySize(spaces).map(([space]) => shown.of(space));
  return { clients, sessions, memories, masked, projects: names, sample, isPartial: isLate() };
}

function transcriptsOf(
  client: TranscriptClient,
  { environment }: CommandContext,
): readonly TranscriptFile[] {
  return findTranscripts(client, { home: environment['HOME'] ?? homedir(), environment });
}

function nothingFound(): Found {
  return { sessions: 0, records: 0, masked: 0, unreadable: 0, spaces: new Map() };
}

/** The place of a session whose transcript states no folder. */
const NO_FOLDER = { space: DEFAULT_SPACE };

const MASK = /\[masked: [a-z-]+\]/g;

/** Reads sessions, counts them in `found`, and passes the records of each session to `take`. */
async function readAll(
  work: {
    readonly client: TranscriptClient;
    readonly files: readonly TranscriptFile[];
    readonly projects: GitProjects;
    /** The space for all memories; undefined: that of each session's project. */
    readonly space?: string | undefined;
    readonly found: Found;
    readonly take?: (records: readonly TranscriptRecord[]) => Promise<void>;
    /** Returns true when no more sessions should be read. */
    readonly isLate?: () => boolean;
  },
  { terminal }: CommandContext,
): Promise<void> {
  const { client, files, projects, found, take, isLate } = work;
  for (const [index, file] of files.entries()) {
    if (isLate?.() === true) return;
    terminal.progress(`session ${index + 1} of ${files.length}, ${found.records} memories`);
    const read = await readTranscript(client, file).catch(() => undefined);
    if (read === undefined) found.unreadable += 1;
    if (read === undefined || read.records.length === 0) continue;
    const space = work.space ?? (await projects.find(read.folder ?? NO_FOLDER)).space;
    const records = read.records.map((record) => ({ ...record, space }));
    found.sessions += 1;
    found.records += records.length;
    for (const record of records) {
      found.spaces.set(record.space, (found.spaces.get(record.space) ?? 0) + 1);
      found.masked += record.text.match(MASK)?.length ?? 0;
    }
    await take?.(records);
  }
}

function bySize(spaces: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...spaces].toSorted(([, a], [, b]) => b - a);
}

function reportTranscripts(
  result: {
    readonly client: TranscriptClient;
    readonly found: Found;
    readonly counts: Counts | undefined;
    readonly json: boolean;
  },
  context: CommandContext,
): void {
  const { terminal } = context;
  const { client, counts, json } = result;
  const { sessions, records, masked, unreadable } = result.found;
  const spaces = bySize(result.found.spaces);
  if (json) {
    const found = { sessions, records, masked, unreadable, spaces: Object.fromEntries(spaces) };
    terminal.json({ from: client, dryRun: counts === undefined, ...found, ...counts });
    return;
  }
  const names = namesOf(result.found.spaces.keys(), context);
  for (const [space, number] of spaces) {
    terminal.out(`${String(number).padStart(7)}  ${names.of(space)}`);
  }
  const what = `${records} memories in ${count(sessions, 'session')} of ${client}`;
  const unread = unreadable > 0 ? ` ${unreadable} files could not be read.` : '';
  const hidden = masked > 0 ? ` Secrets masked in them: ${masked}.` : '';
  if (counts !== undefined)
    terminal.note(`Imported ${counts.stored} of ${what}: ${countsText(counts)}.${hidden}${unread}`);
  else if (records === 0) terminal.note(`There is nothing to import from ${client}.${unread}`);
  else
    terminal.note(
      `Found ${what}.${hidden}${unread} Nothing was written. To import them, add --yes.`,
    );
}
