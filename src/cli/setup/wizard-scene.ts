import type { OpenCatalog } from '../../adapters/catalog/catalog.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { CommandContext } from '../context.ts';
import type { OpenUpstream } from '../doctor/key-check.ts';
import type { Changes } from './setup-save.ts';

/** The state and dependencies that the wizard's questions share. */

export interface WizardParts {
  readonly openUpstream: OpenUpstream;
  readonly catalog: Pick<OpenCatalog, 'providers'>;
  /** Where the questions appear: stdout stays free for machines. */
  readonly streams: PromptStreams;
}

export interface PromptStreams {
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

/** The wizard's answers so far; nothing of them is on disk. */
export interface Scene {
  readonly context: CommandContext;
  readonly parts: WizardParts;
  /** The file's content; undefined where there is none. */
  readonly stored: Draft | undefined;
  /** The configuration as it would be written now. */
  readonly draft: Draft;
  readonly changes: Changes;
}
