import type { OpenCatalog } from '../../adapters/catalog/catalog.ts';
import type { Login } from '../../core/http/logins.ts';
import type { TranscriptClient } from '../../core/memory/transcript-forms.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { CommandContext } from '../context.ts';
import type { OpenUpstream } from '../doctor/key-check.ts';
import type { Changes } from './setup-save.ts';
import type { PromptStreams } from './wizard-prompts.ts';

/** The state and dependencies that the wizard's questions share. */

export interface WizardDependencies {
  readonly openUpstream: OpenUpstream;
  readonly catalog: Pick<OpenCatalog, 'providers'>;
  /** Where the questions appear: stdout stays free for machines. */
  readonly streams: PromptStreams;
  /** This program: clients call it for the token. */
  readonly script: string;
}

/** The wizard's answers so far; nothing of them is on disk. */
export interface Answers {
  readonly context: CommandContext;
  readonly dependencies: WizardDependencies;
  /** The file's content; undefined where there is none. */
  readonly stored: Draft | undefined;
  /** The configuration as it would be written now. */
  readonly draft: Draft;
  readonly changes: Changes;
  /** The clients that get memories through their hooks, with no provider in svc. */
  readonly hooked: readonly Login[];
  /** Undefined: not asked yet. */
  readonly wiring?: Wiring;
  /** The clients whose earlier sessions are imported. Undefined: not asked yet. */
  readonly imports?: readonly TranscriptClient[];
}

/** Names of clients as `svc run` knows them. */
export interface Wiring {
  /** The question was about these. */
  readonly offered: readonly string[];
  /** These are to use svc however they are started. */
  readonly chosen: readonly string[];
}
