import { hash } from 'node:crypto';
import type { SpeakerRole } from './record.ts';
import { isoDay, isTime } from './times.ts';

/**
 * Writes and reads the file of memories that is committed with a repository (`.svc/memory.md`). People review it, so
 * each entry is one paragraph of Markdown: a line of origin, and the text as a quotation.
 *
 * **rule** 2026-11-12, the user, claude-code (s_3f2a9c81d0be)
 * > We use pnpm here, never npm.
 *
 * The id is a hash of kind, speaker and text: the same words are one entry on every machine. Entries are ordered by
 * kind, date and id, so that two machines write the same entries in the same order.
 */

export interface SharedEntry {
  readonly kind: 'rule' | 'memory';
  readonly role: SpeakerRole;
  /** The day when it was said, as milliseconds since 1970 at midnight UTC. */
  readonly at: number;
  /** The client in which it was said, as the file states it. */
  readonly client: string;
  readonly text: string;
}

export interface SharedFile {
  readonly entries: readonly SharedEntry[];
  /** One message for each paragraph that is no entry, or is beyond SHARED_ENTRIES_MAX. No message quotes it. */
  readonly problems: readonly string[];
  /** True if the file has git conflict marks. The entries of both sides are read. */
  readonly isConflicted: boolean;
}

/** Bound on the file in bytes. People review the file, so nobody makes a larger one on purpose. */
export const SHARED_FILE_BYTES_MAX = 1024 * 1024;
/** Bound on entries: as many as a person can review. */
export const SHARED_ENTRIES_MAX = 1_000;
/** Bound on the text of an entry in characters. A longer text belongs into a document of the repository. */
export const SHARED_TEXT_CHARS_MAX = 4_000;

const TITLE = '# Shared memory of this project';
const INTRODUCTION =
  'Written by `svc memory share`, read by `svc memory join`. Review changes like code: a joined rule is told to agents.';

const SPEAKERS: Readonly<Record<SpeakerRole, string>> = {
  user: 'the user',
  assistant: 'the assistant',
};
const HEAD =
  /^\*\*(rule|memory)\*\* (\d{4}-\d\d-\d\d), the (user|assistant), ([\w.-]{1,64}) \(s_[\da-f]{12}\)$/;
const CONFLICT = /^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$/;

export function sharedId({ kind, role, text }: SharedEntry): string {
  return `s_${hash('sha256', `${kind}\n${role}\n${text}`, 'hex').slice(0, 12)}`;
}

/** Writes the file. An entry that is given twice is written once, with its earliest date. */
export function writeSharedFile(entries: readonly SharedEntry[]): string {
  const byId = new Map<string, SharedEntry>();
  for (const entry of entries.map(normalized)) {
    if (entry.text === '') continue;
    const id = sharedId(entry);
    const other = byId.get(id);
    if (other === undefined || other.at > entry.at) byId.set(id, entry);
  }
  const paragraphs = [...byId]
    .toSorted(
      ([aId, a], [bId, b]) => orderOf(a) - orderOf(b) || a.at - b.at || (aId < bId ? -1 : 1),
    )
    .map(([id, { kind, role, at, client, text }]) => {
      const quoted = text.split('\n').map((line) => (line === '' ? '>' : `> ${line}`));
      return [`**${kind}** ${isoDay(at)}, ${SPEAKERS[role]}, ${client} (${id})`, ...quoted].join(
        '\n',
      );
    });
  return `${[TITLE, INTRODUCTION, ...paragraphs].join('\n\n')}\n`;
}

/** Reads a file that anybody may have written. Paragraphs that are no entries are reported in `problems`. */
export function readSharedFile(file: string): SharedFile {
  const lines = file.replaceAll('\r\n', '\n').split('\n');
  const kept = lines.filter((line) => !CONFLICT.test(line));
  const entries = new Map<string, SharedEntry>();
  const problems: string[] = [];
  for (const [number, paragraph] of paragraphsOf(kept)) {
    const read = entryOf(paragraph);
    if (typeof read === 'string') problems.push(`Entry ${number}: ${read}`);
    else if (entries.size < SHARED_ENTRIES_MAX) entries.set(sharedId(read), read);
    else problems.push(`Entry ${number}: the file has more than ${SHARED_ENTRIES_MAX} entries.`);
  }
  return { entries: [...entries.values()], problems, isConflicted: kept.length < lines.length };
}

/**
 * Splits lines into paragraphs, without title and introduction. A line that begins with `**`, as a line of origin does,
 * begins one even without an empty line before it, because git may join entries directly.
 */
function paragraphsOf(lines: readonly string[]): [number, string[]][] {
  const paragraphs: string[][] = [];
  let current: string[] | undefined;
  for (const line of lines) {
    if (line.trim() === '') current = undefined;
    else if (current === undefined || line.startsWith('**')) paragraphs.push((current = [line]));
    else current.push(line);
  }
  return paragraphs
    .filter(([first]) => first !== TITLE && first !== INTRODUCTION)
    .map((paragraph, index) => [index + 1, paragraph]);
}

function entryOf([head = '', ...quoted]: readonly string[]): SharedEntry | string {
  const [, kind, day = '', speaker, client = ''] = HEAD.exec(head) ?? [];
  if (kind === undefined) return 'it does not begin with a line of origin.';
  const at = Date.parse(day);
  if (!isTime(at)) return 'its date is no date.';
  if (!quoted.every((line) => line.startsWith('>'))) return 'a line of its text is not quoted.';
  const text = quoted.map((line) => line.replace(/^> ?/, '')).join('\n');
  if (text.length > SHARED_TEXT_CHARS_MAX) {
    return `it is longer than ${SHARED_TEXT_CHARS_MAX} characters.`;
  }
  // The id may belong to an older wording: a reviewer may correct the text, and the next `svc memory share` computes
  // the id again.
  const entry = normalized({
    kind: kind === 'rule' ? 'rule' : 'memory',
    role: speaker === 'assistant' ? 'assistant' : 'user',
    at,
    client,
    text,
  });
  if (entry.text === '') return 'it has no text.';
  return entry.kind === 'rule' && entry.role === 'assistant' ? 'only a user states rules.' : entry;
}

/** Matches invisible characters, which could hide text from a reviewer. */
const HIDDEN = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu;

function normalized(entry: SharedEntry): SharedEntry {
  const text = entry.text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll('\t', '  ')
    .replaceAll(HIDDEN, '')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trim();
  const client = entry.client.replaceAll(/[^\w.-]/g, '-').slice(0, 64) || 'unknown';
  return { ...entry, text, client, at: Date.parse(isoDay(entry.at)) };
}

function orderOf({ kind }: SharedEntry): number {
  return kind === 'rule' ? 0 : 1;
}
