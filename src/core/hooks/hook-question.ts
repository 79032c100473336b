import { asRecord, asText } from '../bytes/json-fields.ts';
import type { Action } from '../recall/second-look.ts';

/** What a hook asks the memory. */
export interface HookQuestion {
  /** `look`: a second look, after the first tool calls of a prompt. */
  readonly kind: 'start' | 'prompt' | 'look' | 'compacted';
  readonly client: string;
  readonly session: string;
  readonly folder: string;
  /** The id of the prompt; see HookEvent. */
  readonly occasion: string;
  readonly prompt: string;
  /** The last answer, and the prompts before this one. Secrets in them are not masked yet. */
  readonly answer: string;
  readonly around: readonly string[];
  /** Digests of the texts that the session still has, in the part of the transcript that was read. */
  readonly held: readonly string[];
  /** The names of the files that the session has read or changed last; see filesOfSession(). */
  readonly files: readonly string[];
  /** True if the transcript was read from its beginning and has no answer yet, or none since the last compaction. */
  readonly isOpening: boolean;
  /** The tool calls that a second look is about. */
  readonly action?: Action;
}

/**
 * What `svc hook` asks the running proxy or the store: the client's event, the session's folder, and the end of the
 * transcript. Before it asks a proxy, it removes a tool's output from the event. Only the hook's own process reads the
 * file of the transcript.
 */
export interface HookRequest {
  /** The client and the event, as the hook's command line names them. */
  readonly client: string;
  readonly event: string;
  readonly input: unknown;
  /** The folder in which the session began, if the client states it outside the event; '' otherwise. */
  readonly folder: string;
  readonly tail?: TranscriptTail | undefined;
}

export interface TranscriptTail {
  /** Whole lines of the transcript. */
  readonly text: string;
  /** True if the first of these lines is the first line of the session. */
  readonly isWhole: boolean;
}

export function readHookRequest(value: unknown): HookRequest {
  const { client, event, input, folder, tail } = asRecord(value);
  const { text, isWhole } = asRecord(tail);
  return {
    client: asText(client),
    event: asText(event),
    input,
    folder: asText(folder),
    ...(tail !== undefined && { tail: { text: asText(text), isWhole: isWhole === true } }),
  };
}
