import type { SpeakerRole } from '../memory/record.ts';
import type { Action } from './second-look.ts';

/** The facts of an agent that recall needs, and its answer beside passages. */

export interface AgentFacts {
  /** The key of the session that asks. */
  readonly conversation: string;
  /** The branch of the work, '' when unknown. */
  readonly branch: string;
  /** Names of the files that the session worked on, without their folders, the newest first. */
  readonly files?: readonly string[];
  /** From 0 to 1: recall speaks when the prompt's signal is above this share of the project's last. */
  readonly quietShare: number;
  /** The token limit of a list of earlier sessions; 0 for no list. */
  readonly briefTokensMax: number;
  /** Set for a second look: only what was said about these files, names and errors is wanted. */
  readonly action?: Action;
}

/** The quoted parts of one earlier exchange. */
export interface RecalledExchange {
  /** The reference of the answer, or of the request where no answer is held. */
  readonly ref: string;
  readonly space: string;
  /** The references of all its records. */
  readonly records: readonly string[];
  readonly client: string;
  readonly at: number;
  /** In their order: the sentence of the request, then runs of lines of the answer. */
  readonly quotes: readonly {
    readonly role: SpeakerRole;
    readonly text: string;
    readonly source?: 'unverified';
  }[];
}

/** An earlier session in one line. */
export interface RecalledSession {
  readonly at: number;
  readonly title: string;
  readonly space: string;
  /** The references of the records that the title may come from. */
  readonly records: readonly string[];
}

/** Why recall says to an agent what it says. */
export interface AgentLook {
  /** How much the prompt shares with the memory. */
  readonly signal: number;
  /** The share of the project's last prompts that shared less, and how many these are. */
  readonly shareBelow: number;
  readonly prompts: number;
  /** 'reply': the prompt only steers. 'weak': most prompts of the project share more. */
  readonly gate: 'open' | 'reply' | 'weak';
  /** Best first. */
  readonly candidates: readonly AgentCandidate[];
}

export interface AgentCandidate {
  readonly ref: string;
  readonly at: number;
  readonly score: number;
  /** Its first words. */
  readonly text: string;
  /**
   * 'told': its lines are quoted. 'gate': nothing is. 'not_whole': no whole sentence of it is news.
   * 'outgrown': a newer one speaks of the same changed files. 'behind': better ones have the places.
   */
  readonly verdict: 'told' | 'gate' | 'not_whole' | 'outgrown' | 'behind';
}
