import { isWellFormed } from '../memory-api/canonical.ts';
import { holdsSecret } from '../redaction/redaction.ts';
import { type TextRole, textDigest } from './reference.ts';
import { isTime } from './times.ts';

/**
 * Defines and validates a record: one remembered text with its place in a conversation. The memory port, both stores,
 * the journals, the export and the memory API all use this type. `reference.ts` computes its digest and reference,
 * `core/memory-api/record-items.ts` its form in the memory API.
 */

/** The role of a text that recall searches: all but outputs of tools. */
export type SpeakerRole = Exclude<TextRole, 'tool'>;

/**
 * One visible text of a conversation, or a memory that the user wrote: never reasoning, tool arguments or what the
 * client adds to a typed text. With the role `tool` it is a tool's output, word for word.
 */
export interface MemoryRecord<Role extends TextRole = TextRole> extends MemoryMarks {
  /** `textDigest` of role and text. Records with the same digest are one memory of a space. */
  readonly digest: string;
  readonly space: string;
  readonly role: Role;
  /** The text with secrets masked. An output with a secret is never stored, because masking would change it. */
  readonly text: string;
  /**
   * The conversation's key: an id that the client states, or a hash of the conversation's beginning; see
   * conversationKey().
   */
  readonly conversation: string;
  readonly client: string;
  /** Milliseconds since 1970 when it was said. */
  readonly at: number;
  /** Fingerprint of the conversation at the exchange's human item; '' for an output. */
  readonly fingerprint: string;
  /** The number of the exchange in the conversation, counted from 0; 0 for an output. */
  readonly exchange: number;
  readonly branch?: string;
  /**
   * Set if an answer has words before its last tool call: the index at which the text after that call begins. If it is
   * not set, all of the text counts as the answer.
   */
  readonly lastFrom?: number;
  /** 'unverified': svc is not certain that the user wrote the text. Such a text ranks lower and is never a rule. */
  readonly source?: 'unverified';
  /**
   * True if `at` is when the text was said, not when svc read it. If true, storing the text again renews the record's
   * date.
   */
  readonly isTimed?: true;
  /** True if the user imported it from a file or a transcript, so that svc did not see it live. */
  readonly isImported?: true;
}

/** The user's choices for a memory. Only the embedded store supports them. */
export interface MemoryMarks {
  readonly pin?: Pin;
  /** Milliseconds since 1970. */
  readonly editedAt?: number;
  /** The user's choices for single rules in the text. The key is the rule's sentence. */
  readonly rules?: Readonly<Record<string, RuleMark>>;
}

/** 'always': every new prompt of the space recalls it, if the block has room. 'never': none does. */
export type Pin = 'always' | 'never';

export function isPin(value: unknown): value is Pin {
  return value === 'always' || value === 'never';
}

/** A retired rule is never quoted as a rule; a pinned one is quoted at every new prompt, if the block has room. */
export type RuleMark = 'retired' | 'pinned';

export function isRuleMark(value: unknown): value is RuleMark {
  return value === 'retired' || value === 'pinned';
}

/** A text without the place where it was said. */
export type RecordText<Role extends TextRole = SpeakerRole> = Pick<
  MemoryRecord<Role>,
  'digest' | 'role' | 'text'
>;

export type SpokenRecord = StoredRecord<SpeakerRole>;

export interface StoredRecord<Role extends TextRole = TextRole> extends Omit<
  MemoryRecord<Role>,
  'isTimed' | 'isImported' | keyof MemoryMarks
> {
  /** The reference: `m_` and the digest's first 10 bytes in lower-case base32; short, stable, safe in a shell. */
  readonly ref: string;
}

export interface RecalledPassage extends Pick<
  SpokenRecord,
  'ref' | 'digest' | 'space' | 'role' | 'text' | 'at' | 'client' | 'source'
> {
  readonly score: number;
}

/** Longest text, in UTF-16 units. Indexing a longer one would delay recall by a second. */
export const RECORD_CHARS_MAX = 512 * 1024;
/** Bound on conversation keys, clients and branches: they are names, not texts. */
const NAME_CHARS_MAX = 1024;
/** Bound on the number of an exchange: it fits into 32 bits. */
const EXCHANGES_MAX = 2 ** 32;

/** Returns a record's key in the outbox. Equal texts of a space share a key; timed ones only in the same exchange. */
export function captureKeyOf({ digest, space, isTimed, fingerprint }: MemoryRecord): string {
  return `${digest} ${space} ${isTimed === true ? fingerprint : ''}`;
}

/**
 * Says whether a store may keep a record; all stores use this function. For an output of 100 kB it takes 25 ms, because
 * it searches for secrets.
 */
export function isStorable(record: MemoryRecord): boolean {
  const { role, text, exchange } = record;
  return (
    text.length <= RECORD_CHARS_MAX &&
    isName(record.space) &&
    isName(record.conversation) &&
    isExchange(exchange) &&
    isTime(record.at) &&
    isLastFrom(record.lastFrom, record) &&
    record.digest === textDigest(role, text) &&
    isKept(role, text)
  );
}

export function isLastFrom(
  value: unknown,
  { role, text }: Pick<MemoryRecord, 'role' | 'text'>,
): value is number | undefined {
  if (value === undefined) return true;
  return role === 'assistant' && isExchange(value) && value <= text.length;
}

export function isSpoken(record: MemoryRecord): record is MemoryRecord<SpeakerRole> {
  return record.role !== 'tool';
}

/** Says whether a value can be the name of a space, a conversation, a client or a branch. */
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

/** Reads a spoken record from a journal; undefined for anything else. */
export function readRecord(value: unknown): MemoryRecord<SpeakerRole> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Partial<MemoryRecord>;
  const isWhole =
    TEXT_FIELDS.every((field) => typeof fields[field] === 'string') &&
    (fields.role === 'user' || fields.role === 'assistant') &&
    isTime(fields.at) &&
    typeof fields.exchange === 'number';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every required field was checked.
  return isWhole ? (fields as MemoryRecord<SpeakerRole>) : undefined;
}

// Says whether a text can be stored. The secrets of a user's or an assistant's text are masked already. An output may
// have no secret, because masking would change it, and no half of a surrogate pair, because it is proved by its UTF-8
// bytes.
function isKept(role: TextRole, text: string): boolean {
  if (role !== 'tool') return text.trim() !== '';
  return text !== '' && isWellFormed(text) && !holdsSecret(text);
}
