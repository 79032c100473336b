import { projectOf, wholeReferences, nameOf } from './named.ts';
import { deadline, readStore, withStore } from '../store.ts';
import { lstat, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../adapters/files/replace-file.ts';
import { readBounded } from '../../adapters/projects/bounded-read.ts';
import { findRepository } from '../../adapters/projects/repository.ts';
import { captureStored } from '../../core/memory/captures.ts';
import {
  readSharedFile,
  SHARED_FILE_BYTES_MAX,
  SHARED_TEXT_CHARS_MAX,
  type SharedEntry,
  type SharedFile,
  sharedId,
  writeSharedFile,
} from '../../core/memory/shared-file.ts';
import { rulesInForce } from '../../core/recall/rules-in-force.ts';
import { maskSecrets, stripPrivate } from '../../core/redaction/redaction.ts';
import type { DeskRule, MemoryDesk } from '../../ports/memory-desk.ts';
import type { Memory, MemoryRecord, SpeakerRole } from '../../ports/memory.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { oneLine } from '../terminal.ts';
import { isInForce } from './memory-rules.ts';
import { countsText, RecordWriter } from './record-writer.ts';

/**
 * Runs `svc memory share` and `svc memory join`. They write and read a file in the repository, with memories and rules
 * of the project. People review the file like code. Anybody may have written an entry of it, so a joined entry is
 * unverified until the user accepts it, and it never replaces a rule of the user.
 */

/** Path of the shared file within the working tree. */
const FILE = join('.svc', 'memory.md');
/** The mode of the file: readable by everybody, like all files of a repository. */
const FILE_MODE = 0o644;
/** The name of the client in joined memories, which distinguishes them from the user's own. */
const SHARED_CLIENT = 'shared';
const SHOWN_CHARS = 200;
/** Bound on the memories in a list: one page of the store. */
const LIST_MAX = 1000;

interface ShareOptions {
  readonly remove?: readonly string[];
  readonly json?: boolean;
}

interface JoinOptions {
  readonly accept?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Runs `svc memory share`. Without references and without --remove it shares the rules that hold. */
export async function shareMemories(call: Call<ShareOptions>): Promise<void> {
  const { args: refs, options, context } = call;
  const { terminal } = context;
  const { path, space, file } = await placeOf(process.cwd(), context);
  const [problem] = file.problems;
  if (problem !== undefined) {
    throw new CliError(
      `The shared file cannot be read whole. ${problem}`,
      'Mend or delete that paragraph first, so that nothing of it is lost.',
    );
  }
  const removed = new Set(options.remove);
  const unknown = [...removed].filter((id) => !file.entries.some((one) => sharedId(one) === id));
  if (unknown.length > 0) {
    throw new CliError(
      `The file has no entry ${oneLine(unknown[0] ?? '', 64)}.`,
      'The ids are in the file.',
    );
  }
  const { chosen, ended } = await readStore(context, async (store) => ({
    chosen: await chosenEntries({ refs, space, isRemoval: removed.size > 0 }, store),
    ended: await endedEntries(file, space, store.desk),
  }));
  const kept = file.entries.filter((entry) => !removed.has(sharedId(entry)));
  const { entries, masked } = maskedEntries([...kept, ...chosen]);
  const known = new Set(kept.map(sharedId));
  const added = entries.filter((entry) => !known.has(sharedId(entry)));
  if (entries.length === 0 && removed.size === 0) {
    throw new CliError(
      'There is nothing to share.',
      'Name memories: svc memory share m_… (svc memory list), or state a rule first.',
    );
  }
  const written = writeSharedFile(entries);
  if (Buffer.byteLength(written) > SHARED_FILE_BYTES_MAX) {
    throw new CliError('The file would be larger than 1 MiB.', 'Share fewer memories.');
  }
  await mkdir(join(path, '..'), { recursive: true });
  await refuseLink(join(path, '..'));
  await replaceFile(path, written, { mode: FILE_MODE });
  const counts = { added: added.length, removed: removed.size, entries: entries.length };
  if (options.json === true) {
    terminal.json({ file: path, ...counts, masked, retired: ended.map(sharedId) });
    return;
  }
  terminal.out(path);
  for (const entry of added) showEntry(entry, context);
  terminal.note(
    `Added ${added.length}, removed ${removed.size}; entries in the file: ${entries.length}. Review it, then commit it.`,
  );
  if (masked > 0) terminal.note(`Secrets masked: ${masked}.`);
  for (const entry of ended) {
    terminal.note(
      `You retired or forgot ${sharedId(entry)}. Take it out with: svc memory share --remove ${sharedId(entry)}`,
    );
  }
}

export async function joinMemories({ options, context }: Call<JoinOptions>): Promise<ExitCode> {
  const { terminal } = context;
  const confirm = options.json === true ? undefined : context.asker?.();
  const { path, space, file } = await placeOf(process.cwd(), context);
  const name = nameOf(space, context);
  if (file.entries.length === 0 && file.problems.length === 0) {
    throw new CliError(`There are no shared memories in ${path}.`, 'Write some: svc memory share');
  }
  for (const problem of file.problems.slice(0, PROBLEMS_MAX)) terminal.warn(problem);
  if (file.isConflicted) terminal.warn('The file has marks of a conflict: both sides are read.');
  return withStore(context, async ({ memory, desk }) => {
    const own = (await desk?.rules({ space }))?.filter(({ client }) => client !== SHARED_CLIENT);
    const inForce = (own ?? []).filter(isInForce);
    const against = file.entries.filter((entry) => replacesOne(entry, inForce));
    const usable = file.entries.filter((entry) => !against.includes(entry));
    if (options.json !== true) for (const entry of usable) showEntry(entry, context);
    for (const entry of against) {
      terminal.warn(`Left out, because it contradicts a rule of yours: ${shown(entry)}`);
    }
    const isAccepted =
      options.accept === true ||
      (options.yes !== true &&
        (await confirm?.(`Accept these ${usable.length} entries for ${name}?`)) === true);
    const writes = isAccepted || options.yes === true;
    const writer = new RecordWriter(memory);
    if (writes) await writer.write(usable.flatMap((entry) => recordOf(entry, space, isAccepted)));
    const counts = await writer.end();
    const gone = await goneRecords(file, space, desk);
    const result = { space, found: file.entries.length, left: against.length, isAccepted };
    if (options.json === true) terminal.json({ ...result, wrote: writes, ...counts, gone });
    else if (!writes) {
      terminal.note(
        'Nothing was written. With --accept you take them as your own; with --yes they are stored as unverified.',
      );
    } else {
      terminal.note(`Joined into ${name}: ${countsText(counts)}.`);
      if (!isAccepted) {
        terminal.note(
          'What was new is unverified: no rule of it holds. To accept it: svc memory join --accept',
        );
      }
    }
    if (gone.length > 0 && options.json !== true) {
      terminal.note(`Joined before and no longer in the file: svc memory forget ${gone.join(' ')}`);
    }
    return !writes && confirm !== undefined ? 130 : 0;
  });
}

/** Bound on reported problems, because in a broken file every paragraph may be one. */
const PROBLEMS_MAX = 5;

async function placeOf(folder: string, { environment }: CommandContext) {
  const repository = await findRepository(folder);
  if (repository === undefined) {
    throw new CliError(
      'This folder belongs to no git repository.',
      'Run it in the working tree of the project.',
    );
  }
  const path = join(repository.top, FILE);
  await refuseLink(join(path, '..'));
  const stat = await lstat(path).catch(() => undefined);
  if (stat !== undefined && (!stat.isFile() || stat.size > SHARED_FILE_BYTES_MAX)) {
    throw new CliError(
      `${path} is not a plain file of at most 1 MiB.`,
      'svc reads no other: look at it first.',
    );
  }
  const text = stat === undefined ? '' : await readBounded(path, SHARED_FILE_BYTES_MAX);
  const space = await projectOf(folder, environment);
  return { path, space, file: readSharedFile(text) };
}

/** Throws CliError if there is something else than a folder. A link in a stranger's repository may lead anywhere. */
async function refuseLink(folder: string): Promise<void> {
  const stat = await lstat(folder).catch(() => undefined);
  if (stat === undefined || stat.isDirectory()) return;
  throw new CliError(`${folder} is not a plain folder.`, 'svc follows no link: look at it first.');
}

async function chosenEntries(
  { refs, space, isRemoval }: { refs: readonly string[]; space: string; isRemoval: boolean },
  { memory, desk }: { readonly memory: Memory; readonly desk?: MemoryDesk | undefined },
): Promise<SharedEntry[]> {
  if (refs.length === 0 && isRemoval) return [];
  const rules = ((await desk?.rules({ space })) ?? []).filter(isInForce);
  if (refs.length === 0) {
    if (desk !== undefined) return rules.map(ruleEntry);
    throw new CliError(
      'A memory service has no list of rules.',
      'Name memories: svc memory share m_… (svc memory list)',
    );
  }
  const chosen = refs
    .filter((ref) => ref.startsWith('r_'))
    .map((id) => {
      const rule = rules.find((one) => one.id === id);
      if (rule !== undefined) return ruleEntry(rule);
      throw new CliError(
        `No rule ${oneLine(id, 64)} holds in ${space}.`,
        'The ids are in: svc memory rules',
      );
    });
  const named = refs.filter((ref) => !ref.startsWith('r_'));
  if (named.length === 0) return chosen;
  const whole = await wholeReferences(memory, named);
  const records = await memory.list({ refs: whole, space, limit: LIST_MAX }, deadline());
  const missing = whole.filter((ref) => !records.some((record) => record.ref === ref));
  if (missing.length > 0) {
    throw new CliError(
      `${space} has no memory ${missing[0]}.`,
      'The references are in: svc memory list',
    );
  }
  const long = records.find(({ text }) => text.length > SHARED_TEXT_CHARS_MAX);
  if (long !== undefined) {
    throw new CliError(
      `${long.ref} is longer than ${SHARED_TEXT_CHARS_MAX} characters.`,
      'Say its point by svc memory add, and share that.',
    );
  }
  const memories = records.map(({ role, at, client, text }): SharedEntry => {
    return { kind: 'memory', role, at, client, text };
  });
  return [...chosen, ...memories];
}

function ruleEntry({ at, client, text }: DeskRule): SharedEntry {
  return { kind: 'rule', role: 'user', at, client, text };
}

/**
 * Masks secrets and removes private parts, which somebody may have written into the file, and drops repeated entries.
 */
function maskedEntries(given: readonly SharedEntry[]): { entries: SharedEntry[]; masked: number } {
  let masked = 0;
  const unique = new Map(given.toReversed().map((entry) => [sharedId(entry), entry]));
  const entries = [...unique.values()].map((entry) => {
    const { text, masked: found } = maskSecrets(stripPrivate(entry.text));
    masked += found;
    return { ...entry, text };
  });
  return { entries, masked };
}

/** Returns the file's rules that the user has retired in this space. */
async function endedEntries(
  { entries }: SharedFile,
  space: string,
  desk: MemoryDesk | undefined,
): Promise<SharedEntry[]> {
  const rules = (await desk?.rules({ space })) ?? [];
  const retired = new Set(rules.filter(({ state }) => state === 'retired').map(({ text }) => text));
  return entries.filter(({ kind, text }) => kind === 'rule' && retired.has(text));
}

/** Says whether the entry would replace one of the user's rules if it were the newest statement. */
function replacesOne(
  { role, text, at }: SharedEntry,
  rules: readonly { readonly text: string; readonly at: number }[],
): boolean {
  if (role !== 'user') return false;
  const latest = Math.max(at, ...rules.map((rule) => rule.at)) + 1;
  const left = new Set(rulesInForce([...rules, { text, at: latest }]).map((rule) => rule.text));
  return rules.some((rule) => !left.has(rule.text));
}

function recordOf(
  entry: SharedEntry,
  space: string,
  isAccepted: boolean,
): MemoryRecord<SpeakerRole>[] {
  const captured = captureStored(entry.role, entry.text);
  if (captured === undefined) return [];
  const id = sharedId(entry);
  const place = { space, conversation: `shared_${id}`, fingerprint: id, exchange: 0 };
  // An entry with a date in the future would outrank every later statement.
  const at = Math.min(entry.at, Date.now());
  const record = { ...captured, ...place, client: SHARED_CLIENT, at, isTimed: true as const };
  return [isAccepted ? record : { ...record, source: 'unverified' }];
}

/**
 * Returns the references of memories, among the newest LIST_MAX joined ones, that are no longer in the file. With a
 * memory service returns none.
 */
async function goneRecords(
  { entries }: SharedFile,
  space: string,
  desk: MemoryDesk | undefined,
): Promise<string[]> {
  const page = await desk?.browse({ space, client: SHARED_CLIENT, limit: LIST_MAX });
  const held = new Set(
    entries.flatMap(({ role, text }) => captureStored(role, text)?.digest ?? []),
  );
  return (page?.records ?? []).filter(({ digest }) => !held.has(digest)).map(({ ref }) => ref);
}

function shown(entry: SharedEntry): string {
  return `${sharedId(entry)}  ${entry.kind}  ${oneLine(entry.text, SHOWN_CHARS)}`;
}

function showEntry(entry: SharedEntry, { terminal }: CommandContext): void {
  terminal.row(shown(entry), '    ');
}
