import { linesOf, linesOfFile } from '../../adapters/files/lines.ts';
import { readLine } from '../../core/memory/memory-lines.ts';
import { isSpace } from '../../core/request/space.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { withStore, wrongSpace } from './memory.ts';
import { countsText, RecordWriter } from './record-writer.ts';
import { importTranscripts } from './transcript-import.ts';
import { TRANSCRIPT_CLIENTS } from '../../core/memory/transcript-forms.ts';
import type { OpenStore } from '../compose-store.ts';

/** `svc memory import`: from an export, or from the transcripts that clients keep (`transcript-import.ts`). */

export interface ImportOptions {
  readonly from?: string;
  readonly space?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Longer lines are not from an export: the store takes texts of 512 KiB. */
const LINE_CHARS_MAX = 4 * 1024 * 1024;
/** Problems that are named; a wrong file has as many as it has lines. */
const PROBLEMS_MAX = 5;

export async function importMemories(
  request: { readonly file?: string; readonly options: ImportOptions },
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const { file, options } = request;
  const { from, space } = options;
  if (space !== undefined && !isSpace(space)) throw wrongSpace();
  if (from === undefined) return importLines({ file, options }, context, openStore);
  const client = TRANSCRIPT_CLIENTS.find((name) => name === from);
  if (client === undefined || file !== undefined) {
    throw new CliError(
      `Import either a file, or use --from with one of: ${TRANSCRIPT_CLIENTS.join(', ')}.`,
      'For example: svc memory import --from claude-code',
      2,
    );
  }
  return importTranscripts({ client, options }, context, openStore);
}

async function importLines(
  { file, options }: { file: string | undefined; options: ImportOptions },
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const { terminal } = context;
  const problems: string[] = [];
  let lines = 0;
  const found = { records: 0, wrong: 0 };
  const given = {
    now: Date.now(),
    ...(options.space === undefined ? {} : { space: options.space }),
  };
  const counts = await withStore(context, openStore, async ({ memory }) => {
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
