import { isWellFormed } from '../memory-api/canonical.ts';
import { type TextRole, textDigest } from './reference.ts';
import { isTime } from './times.ts';

/**
 * The record: one text that is remembered, with the place where it was said. The memory port, both
 * stores, the journals, the export and the memory API all mean this type. Only this file has its
 * limits and its validation. `reference.ts` computes its names, `core/memory-api/record-items.ts`
 * its form in the memory API.
 */

/** The role of a text that is searched. */
export type SpeakerRole = Exclude<TextRole, 'tool'>;

/**
 * One text of a conversation: visible, never reasoning, tool arguments or wrappers. With the role
 * `tool` it is an output, word for word.
 */
export interface MemoryRecord<Role extends TextRole = TextRole> extends MemoryMarks {
  /** `textDigest` of role and text: the same words are one memory in one space. */
  readonly digest: string;
  readonly space: string;
  readonly role: Role;
  /** Secrets are masked already. An output holds none: masked, it would be another text. */
  readonly text: string;
  /** The conversation's key: the client's session id, or one derived from its first words. */
  readonly conversation: string;
  readonly client: string;
  /** Milliseconds since 1970 when it was said. */
  readonly at: number;
  /** Fingerprint of the conversation at the exchange's human item; '' for an output. */
  readonly fingerprint: string;
  /** Where in the conversation: exchanges count from 0; 0 for an output. */
  readonly exchange: number;
  readonly branch?: string;
  /**
   * It is not verified that a person said it: it weighs less and is never a rule.
   */
  readonly source?: 'unverified';
  /** `at` is when it was said, not when it was found in a history: saying it again renews the date. */
  readonly isTimed?: true;
  /** A person brought it from a file or a client's transcripts; it did not come by as it was said. */
  readonly isImported?: true;
}

/** The choices of a person for a memory. Only the embedded store keeps them. */
export interface MemoryMarks {
  readonly pin?: Pin;
  /** Milliseconds since 1970. */
  readonly editedAt?: number;
  /** Of the rules that the text states, by sentence. */
  readonly rules?: Readonly<Record<string, RuleMark>>;
}

/** Whether every prompt of the space recalls it, or none. */
export type Pin = 'always' | 'never';

export function isPin(value: unknown): value is Pin {
  return value === 'always' || value === 'never';
}

/** A retired rule is never placed. A pinned one is placed whatever the prompt is about. */
export type RuleMark = 'retired' | 'pinned';

export function isRuleMark(value: unknown): value is RuleMark {
  return value === 'retired' || value === 'pinned';
}

/** A text without the place where it was said. */
export type RecordText<Role extends TextRole = SpeakerRole> = Pick<
  MemoryRecord<Role>,
  'digest' | 'role' | 'text'
>;

/** A record that is searched and listed. */
export type SpokenRecord = StoredRecord<SpeakerRole>;

export interface StoredRecord<Role extends TextRole = TextRole> extends Omit<
  MemoryRecord<Role>,
  'isTimed' | 'isImported' | keyof MemoryMarks
> {
  /** Short, stable, safe in a shell: `m_` and lower-case base32 of the digest's first 10 bytes. */
  readonly ref: string;
}

/** A passage of a record that answers the question. */
export interface RecalledPassage {
  readonly ref: string;
  readonly digest: string;
  readonly space: string;
  readonly role: SpeakerRole;
  readonly text: string;
  readonly at: number;
  readonly client: string;
  readonly source?: 'unverified';
  readonly score: number;
}

/** A longer text is a pasted file: indexing it would hold up recall for a second. */
export const RECORD_CHARS_MAX = 512 * 1024;
/** Conversation keys, clients and branches are names, not texts. */
const NAME_CHARS_MAX = 1024;
const EXCHANGES_MAX = 2 ** 32;

/** Names a capture on its way to the memory: the same words said at another place in time count as said again. */
export function captureKeyOf({ digest, space, isTimed, fingerprint }: MemoryRecord): string {
  return `${digest} ${space} ${isTimed === true ? fingerprint : ''}`;
}

/** Whether a store may keep it. Every store rejects the same records. */
export function isStorable(record: MemoryRecord): boolean {
  const { role, text, exchange } = record;
  return (
    isKept(role, text) &&
    text.length <= RECORD_CHARS_MAX &&
    isName(record.space) &&
    isName(record.conversation) &&
    isExchange(exchange) &&
    isTime(record.at) &&
    record.digest === textDigest(role, text)
  );
}

export function isSpoken(record: MemoryRecord): record is MemoryRecord<SpeakerRole> {
  return record.role !== 'tool';
}

/** Whether the value can be the name of a space, a conversation, a client or a branch. */
export function isName(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= NAME_CHARS_MAX &&
    !value.includes('\0')
  );
}

export function isExchange(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < EXCHANGES_MAX;
}

const TEXT_FIELDS = ['digest', 'space', 'text', 'conversation', 'client', 'fingerprint'] as const;

/** A spoken record in the format of a journal; undefined for anything else. */
export function readRecord(value: unknown): MemoryRecord<SpeakerRole> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<MemoryRecord>;
  const isWhole =
    TEXT_FIELDS.every((field) => typeof fields[field] === 'string') &&
    (fields.role === 'user' || fields.role === 'assistant') &&
    isTime(fields.at) &&
    typeof fields.exchange === 'number';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every field was looked at.
  return isWhole ? (fields as MemoryRecord<SpeakerRole>) : undefined;
}

// A spoken text may hold half a character, which the stores keep as it is. An output may not: its
// proof is made of UTF-8 bytes.
function isKept(role: TextRole, text: string): boolean {
  return role === 'tool' ? text !== '' && isWellFormed(text) : text.trim() !== '';
}
