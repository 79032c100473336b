import type { AgentLook } from '../core/recall/agent-facts.ts';
import type { Pin, RecalledPassage } from '../core/memory/record.ts';
import type { ListFilter, RecalledExchange, RecallQuestion, SpokenRecord } from './memory.ts';

/**
 * The calls with which a user manages the memories of this machine. Only the embedded store has them, because the
 * memories of a service belong to several users.
 */
export interface MemoryDesk {
  shelves(): Promise<readonly Shelf[]>;
  days(space: string): Promise<readonly ShelfDay[]>;
  browse(filter: DeskFilter): Promise<DeskPage>;
  /** Returns what a recall would find for a prompt, and which of that would be quoted. It changes nothing. */
  look(question: RecallQuestion): Promise<RecallLook>;
  /** Returns the beginning of each conversation's first prompt, in the given order; '' if none is stored. */
  beginnings(conversations: readonly ConversationPlace[]): Promise<readonly string[]>;
  /** Returns requests that quoted one of these references, newest first. */
  sightings(refs: readonly string[]): Promise<readonly Sighting[]>;
  /** Returns the user's rules, newest first, with their states. */
  rules(filter: RulesFilter): Promise<readonly DeskRule[]>;
  /** Sets or removes the mark of a rule. Returns false if no stored text states a rule with this id. */
  markRule(change: RuleChange): Promise<boolean>;
  /** Sets or removes a mark of a record. Returns false if the record no longer exists. */
  pin(change: PinChange): Promise<boolean>;
  /** Stores a new text, and forgets the old text that it replaces. */
  edit(change: DeskEdit): Promise<EditState>;
  /** Undoes the forgetting of these records. Resolves to the number of records that are stored again. */
  restore(records: readonly DeskRecord[]): Promise<number>;
}

export interface RulesFilter {
  /** The space; undefined means all spaces. */
  readonly space?: string;
}

export interface DeskRule extends Pick<SpokenRecord, 'space' | 'text' | 'ref' | 'at' | 'client'> {
  /** The id: `r_` and the beginning of a hash of space and sentence. */
  readonly id: string;
  /**
   * 'holds': the rule is recalled if it applies to a prompt or an action. 'pinned': it is recalled in every
   * conversation. 'replaced': a later sentence contradicts or withdraws it. 'retired': the user has ended it.
   */
  readonly state: 'holds' | 'pinned' | 'replaced' | 'retired';
}

export interface RuleChange {
  readonly id: string;
  /** The new mark. Undefined removes it: the rule then holds unless a later sentence replaces it. */
  readonly mark: 'retired' | 'pinned' | undefined;
  readonly at: number;
}

export interface ConversationPlace {
  readonly space: string;
  readonly conversation: string;
}

/** A space, as a list of spaces shows it. */
export interface Shelf {
  readonly space: string;
  readonly memories: number;
  /** Milliseconds since 1970. */
  readonly newest: number;
}

export interface ShelfDay {
  /** The day in local time: 2026-11-20. */
  readonly day: string;
  readonly memories: number;
}

export interface DeskRecord extends SpokenRecord {
  readonly pin?: Pin;
  /** Milliseconds since 1970. */
  readonly editedAt?: number;
  /** When it was imported, in milliseconds since 1970; undefined for a record that svc captured from a request. */
  readonly importedAt?: number;
}

export interface DeskFilter extends ListFilter {
  readonly client?: string;
  readonly exchange?: number;
  /** 'always', 'never': the user's mark for recalls. 'standing': a text of the user that states a rule. */
  readonly kind?: 'edited' | 'always' | 'never' | 'standing';
  /** 'live': captured from a request, including texts that svc cannot attribute with certainty ('unverified'). */
  readonly source?: 'live' | 'imported' | 'by_hand' | 'unverified';
}

export interface DeskPage {
  /** The records, newest first. */
  readonly records: readonly DeskRecord[];
  readonly total: number;
}

export interface RecallLook {
  readonly isQuestion: boolean;
  /** The score that one of the best five candidates must have; otherwise a chat gets none of them. */
  readonly needed: number;
  /** The candidates, the highest score first. */
  readonly weighed: readonly WeighedMemory[];
  readonly exchanges: readonly RecalledExchange[];
  /**
   * The exchanges that a recall for an agent considers, and its decision; undefined if no searched space has a memory.
   */
  readonly agent?: AgentLook | undefined;
}

export interface WeighedMemory extends Omit<RecalledPassage, 'digest' | 'source'> {
  /** The score, from 0 to about 1. */
  readonly score: number;
  /**
   * 'added': a recall would quote it. 'no_room': it fits the prompt, but is not in the block, mostly because better
   * memories fill it. 'weak': it shares too few words with the prompt. 'never': the user has excluded it from recall.
   * 'other_project': it would be quoted in its own project.
   */
  readonly verdict: 'added' | 'no_room' | 'weak' | 'never' | 'other_project';
}

/** A request that quoted a memory. */
export interface Sighting {
  readonly id: string;
  readonly at: number;
  readonly client: string;
}

export interface PinChange {
  readonly space: string;
  readonly ref: string;
  /** The mark; undefined: the memory is recalled if it fits the prompt. */
  readonly pin: Pin | undefined;
}

export interface DeskEdit {
  readonly space: string;
  readonly ref: string;
  /** The new text with its digest; all other members stay. */
  readonly text: { readonly digest: string; readonly text: string };
  readonly at: number;
}

/**
 * 'same': the new text equals the old one. 'gone': another caller has edited or forgotten the old text. 'forgotten':
 * the user has forgotten the new text earlier, so it is not stored again. 'rejected': it may not be stored.
 */
export type EditState = 'edited' | 'same' | 'gone' | 'forgotten' | 'rejected';
