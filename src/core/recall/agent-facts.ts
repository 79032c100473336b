import type { SpeakerRole } from '../memory/record.ts';
import type { Action } from './second-look.ts';

export interface AgentFacts {
  /** The key of the session that asks. */
  readonly conversation: string;
  /** The git branch on which the session works; '' if unknown. */
  readonly branch: string;
  /** Names of the files that the session worked on, without their folders, the newest first. */
  readonly files?: readonly string[];
  /**
   * A share from 0 to 1. Recall answers if at least this share of the project's last prompts had a lower signal than
   * this prompt. A young project has another rule (see running-share.ts), and a prompt about the past needs no share.
   */
  readonly quietShare: number;
  /** The token limit of the list of earlier sessions; 0 for no list. */
  readonly briefTokensMax: number;
  /** Set for a second look: recall only what concerns these files, names and errors. */
  readonly action?: Action;
}

export interface RecalledExchange {
  /** The short reference of the answer, or of the request if the memory has no answer; see shortReference(). */
  readonly ref: string;
  readonly space: string;
  /** The references of all its records. */
  readonly records: readonly string[];
  readonly client: string;
  readonly at: number;
  /** In text order: at most one sentence of the request, then lines of the answer. */
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
  /** The references of the session's records whose words the title may have. */
  readonly records: readonly string[];
}

/** Explains what recall adds to an agent's request, and why. */
export interface AgentLook {
  /** How much the prompt has in common with the memory. */
  readonly signal: number;
  /** The share of the project's last prompts that had a lower signal, from 0 to 1. */
  readonly shareBelow: number;
  /** The number of these last prompts. */
  readonly prompts: number;
  /**
   * Whether recall may answer. 'reply': the prompt only answers or steers, such as "yes, commit". 'weak': the prompt's
   * signal is too low (see `quietShare`).
   */
  readonly gate: 'open' | 'reply' | 'weak';
  /** The best of the found exchanges, best first. */
  readonly candidates: readonly AgentCandidate[];
}

export interface AgentCandidate {
  readonly ref: string;
  readonly at: number;
  readonly score: number;
  /** The beginning of the request, or of the answer if the memory has no request. */
  readonly text: string;
  /**
   * What became of a found exchange. 'told': its lines are quoted. 'gate': recall answers nothing, see `gate` above.
   * 'not_whole': no whole sentence of it is new. 'outgrown': superseded by newer exchanges about the same files (see
   * superseded.ts). 'behind': better exchanges have filled the block.
   */
  readonly verdict: 'told' | 'gate' | 'not_whole' | 'outgrown' | 'behind';
}
