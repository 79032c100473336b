import type { AgentLook } from '../core/recall/agent-facts.ts';
import type { Pin } from '../core/memory/record.ts';
import type { RecalledExchange, RecallQuestion, SpeakerRole, SpokenRecord } from './memory.ts';

/**
 * The memories of this machine as a person keeps order among them. Only the embedded store has a desk:
 * what a memory service holds belongs to others too.
 */
export interface MemoryDesk {
  /** Newest first. */
  shelves(): Promise<readonly Shelf[]>;
  /** Newest first. */
  days(space: string): Promise<readonly ShelfDay[]>;
  browse(filter: DeskFilter): Promise<DeskPage>;
  /** Says for one prompt what recall weighs, and what becomes of it. It changes nothing. */
  look(question: RecallQuestion): Promise<RecallLook>;
  /** The beginning of each conversation's first prompt, in the order asked; '' where none is held. */
  beginnings(conversations: readonly ConversationPlace[]): Promise<readonly string[]>;
  /** Requests that quoted one of these references, newest first. */
  sightings(refs: readonly string[]): Promise<readonly Sighting[]>;
  /** The rules that a person stated, the newest first, and what became of each. */
  rules(filter: RulesFilter): Promise<readonly DeskRule[]>;
  /** Marks a rule, or takes its mark away. False where no such rule is held. */
  markRule(change: RuleChange): Promise<boolean>;
  /** False where there is no such record any more. */
  pin(change: PinChange): Promise<boolean>;
  /** Puts the new text in the old one's place, and forgets the old one. */
  edit(change: DeskEdit): Promise<EditState>;
  /** Takes back that these were forgotten. Resolves to the number that is held again. */
  restore(records: readonly DeskRecord[]): Promise<number>;
}

export interface RulesFilter {
  /** Undefined: all spaces. */
  readonly space?: string;
}

export interface DeskRule {
  /** `r_` and the beginning of a hash of space and sentence. */
  readonly id: string;
  readonly space: string;
  /** The sentence, as it was said. */
  readonly text: string;
  /** The record that holds it. */
  readonly ref: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly client: string;
  /**
   * 'holds': placed when a prompt or an action falls under it. 'pinned': placed in every conversation.
   * 'replaced': a later sentence says otherwise, or takes it back. 'retired': the person has ended it.
   */
  readonly state: 'holds' | 'pinned' | 'replaced' | 'retired';
}

export interface RuleChange {
  /** A rule's id. */
  readonly id: string;
  /** Undefined: the rule holds, as far as nothing later replaces it. */
  readonly mark: 'retired' | 'pinned' | undefined;
  readonly at: number;
}

export interface ConversationPlace {
  readonly space: string;
  readonly conversation: string;
}

export interface Shelf {
  readonly space: string;
  readonly memories: number;
  /** Milliseconds since 1970. */
  readonly newest: number;
}

export interface ShelfDay {
  /** In local time: 2026-11-20. */
  readonly day: string;
  readonly memories: number;
}

export interface DeskRecord extends SpokenRecord {
  readonly pin?: Pin;
  /** Milliseconds since 1970. */
  readonly editedAt?: number;
  /** Milliseconds since 1970. Absent for a record that came by as it was said. */
  readonly importedAt?: number;
}

export interface DeskFilter {
  readonly space?: string;
  readonly words?: string;
  readonly role?: SpeakerRole;
  readonly client?: string;
  readonly conversation?: string;
  readonly exchange?: number;
  readonly refs?: readonly string[];
  readonly since?: number;
  readonly until?: number;
  readonly kind?: 'edited' | 'always' | 'never' | 'standing';
  /** 'live': it came by as it was said, whether or not a person said it. */
  readonly source?: 'live' | 'imported' | 'by_hand' | 'unverified';
  readonly limit: number;
  readonly offset?: number;
}

export interface DeskPage {
  /** Newest first. */
  readonly records: readonly DeskRecord[];
  readonly total: number;
}

export interface RecallLook {
  readonly isQuestion: boolean;
  /** The score that the best one needs. */
  readonly needed: number;
  /** The highest score first. */
  readonly weighed: readonly WeighedMemory[];
  /** The lines that an agent would get. */
  readonly exchanges: readonly RecalledExchange[];
  /** Why an agent gets them; undefined where nothing is held. */
  readonly agent?: AgentLook | undefined;
}

export interface WeighedMemory {
  readonly ref: string;
  readonly space: string;
  readonly role: SpeakerRole;
  readonly text: string;
  readonly at: number;
  readonly client: string;
  /** From 0 to about 1. */
  readonly score: number;
  /**
   * 'added': it would be in the prompt. 'no_room': it fits, and better ones take the room. 'weak': too
   * little of the prompt is in it. 'never': the person pinned it so. 'other_project': it would be added
   * in its own.
   */
  readonly verdict: 'added' | 'no_room' | 'weak' | 'never' | 'other_project';
}

export interface Sighting {
  /** The request's id. */
  readonly id: string;
  readonly at: number;
  readonly client: string;
}

export interface PinChange {
  readonly space: string;
  readonly ref: string;
  /** Undefined: recalled when it fits. */
  readonly pin: Pin | undefined;
}

export interface DeskEdit {
  readonly space: string;
  readonly ref: string;
  /** The new text with its digest; everything else stays. */
  readonly text: { readonly digest: string; readonly text: string };
  readonly at: number;
}

/** 'gone': another caller edited or forgot it. 'forgotten': the new text was forgotten before. */
export type EditState = 'edited' | 'same' | 'gone' | 'forgotten' | 'rejected';
