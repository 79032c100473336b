import { asRecord, asText } from '../bytes/json-fields.ts';
import type { Action } from '../recall/second-look.ts';

/** What a hook asks the memory. Only the hook's own process reads the file that a client names. */
export interface HookQuestion {
  /** `look`: a second look, after the first tool calls of a prompt. */
  readonly kind: 'start' | 'prompt' | 'look' | 'compacted';
  readonly client: string;
  readonly session: string;
  readonly folder: string;
  readonly occasion: string;
  readonly prompt: string;
  /** The last answer, and the prompts before this one. The process that answers masks them. */
  readonly answer: string;
  readonly around: readonly string[];
  /** Digests of the texts that the session still has. */
  readonly held: readonly string[];
  readonly files: readonly string[];
  /** True if nothing was answered in the session yet. */
  readonly isOpening: boolean;
  readonly action?: Action;
}

/** A hook's call to the process that answers it: the event as written, and the end of the transcript. */
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

/** Reads a request from a hook of the same build. */
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
