import { hash } from 'node:crypto';
import { parseJson, recordOrNone } from '../bytes/json-fields.ts';
import { isSpace } from '../request/space.ts';
import { captureStored } from './captures.ts';
import {
  isExchange,
  isLastFrom,
  isName,
  isPin,
  isRuleMark,
  type MemoryMarks,
  type MemoryRecord,
  type SpeakerRole,
} from './record.ts';
import { isoTime, isTime } from './times.ts';

/**
 * Writes memories as JSON lines for `svc memory export`, and reads them for `svc memory import`, here or on another
 * machine. A line is not trusted: secrets in its text are masked, and its digest is computed again.
 */

export type ReadLine =
  | { readonly kind: 'record'; readonly record: MemoryRecord<SpeakerRole> }
  /** The line is empty, or its text consists of private parts. */
  | { readonly kind: 'nothing' }
  /** `problem` names the field and never quotes the line. */
  | { readonly kind: 'wrong'; readonly problem: string };

/** Writes a line. U+2028 and U+2029 are escaped, because some programs end a line at these characters. */
export function writeLine(record: MemoryRecord<SpeakerRole> & { readonly ref?: string }): string {
  const { ref, space, role, text, at, conversation, exchange, client, branch } = record;
  const { fingerprint, source, lastFrom: last_from, pin, editedAt, rules } = record;
  const time = isoTime(at);
  const edited = editedAt === undefined ? undefined : isoTime(editedAt);
  const line = { ref, space, role, text, at: time, conversation, exchange, client, branch };
  return JSON.stringify({ ...line, fingerprint, source, last_from, pin, edited, rules })
    .replaceAll('\u2028', String.raw`\u2028`)
    .replaceAll('\u2029', String.raw`\u2029`);
}

/** Reads a line. It must have `text`, and `space` unless `given` has one. Default time: `now`; default role: `user`. */
export function readLine(line: string, given: { space?: string; now: number }): ReadLine {
  if (line.trim() === '') return { kind: 'nothing' };
  const fields = recordOrNone(parseJson(line));
  if (fields === undefined) return wrong('it is not a JSON object');
  const { text, role = 'user', at = given.now, exchange = 0, branch } = fields;
  const { last_from: lastFrom } = fields;
  if (typeof text !== 'string') return wrong('text is missing');
  if (role !== 'user' && role !== 'assistant') return wrong('role must be user or assistant');
  const time = timeIn(at);
  if (!isTime(time)) return wrong('at is not a time');
  if (!isExchange(exchange)) return wrong('exchange must be a whole number');
  const marks = marksIn(fields);
  if (typeof marks === 'string') return wrong(marks);
  const space = given.space ?? nameIn(fields['space']);
  if (space === undefined) return wrong('space is missing: it can be given by --space');
  if (!isSpace(space)) return wrong('space is no name of a space: one can be given by --space');
  const captured = captureStored(role, text);
  if (captured === undefined) return { kind: 'nothing' };
  const own = hash('sha256', `${time} ${captured.digest}`, 'base64url');
  const record = {
    ...captured,
    space,
    at: time,
    exchange,
    conversation: nameIn(fields['conversation']) ?? `line_${own}`,
    client: nameIn(fields['client']) ?? 'unknown',
    fingerprint: nameIn(fields['fingerprint']) ?? own,
    ...(nameIn(branch) === undefined ? {} : { branch: String(branch) }),
    ...(fields['at'] === undefined ? {} : { isTimed: true as const }),
    ...(fields['source'] === undefined ? {} : { source: 'unverified' as const }),
    // `lastFrom` is an index in the unmasked text, so it is valid only if masking changed nothing.
    ...(captured.text === text && isLastFrom(lastFrom, captured) && lastFrom !== undefined
      ? { lastFrom }
      : {}),
    ...marks,
  };
  return { kind: 'record', record };
}

/** Reads the user's choices (see MemoryMarks); returns a message if one is invalid. */
function marksIn({ pin, edited, rules }: Readonly<Record<string, unknown>>): MemoryMarks | string {
  if (pin !== undefined && !isPin(pin)) return 'pin must be always or never';
  const editedAt = timeIn(edited);
  if (edited !== undefined && !isTime(editedAt)) return 'edited is not a time';
  if (rules !== undefined && !isRuleMarks(rules)) return 'rules must be retired or pinned';
  return {
    ...(pin === undefined ? {} : { pin }),
    ...(isTime(editedAt) ? { editedAt } : {}),
    ...(rules === undefined ? {} : { rules }),
  };
}

function isRuleMarks(value: unknown): value is NonNullable<MemoryMarks['rules']> {
  return typeof value === 'object' && value !== null && Object.values(value).every(isRuleMark);
}

function timeIn(value: unknown): unknown {
  return typeof value === 'string' ? Date.parse(value) : value;
}

function wrong(problem: string): ReadLine {
  return { kind: 'wrong', problem };
}

function nameIn(value: unknown): string | undefined {
  return isName(value) ? value : undefined;
}
