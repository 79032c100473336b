import { asRecord, asText } from '../bytes/json-fields.ts';
import type { Action } from '../recall/second-look.ts';

/** What a hook asks the memory. The hook alone reads the file that a client names. */
export interface HookQuestion {
  /** `look`: a second look, after the first calls of a prompt. */
  readonly kind: 'start' | 'prompt' | 'look' | 'compacted';
  readonly client: string;
  readonly session: string;
  readonly folder: string;
  readonly occasion: string;
  readonly prompt: string;
  /** The last answer, and the prompts before this one: masked by whoever answers. */
  readonly answer: string;
  readonly around: readonly string[];
  /** Digests of the texts that the session still has. */
  readonly held: readonly string[];
  readonly files: readonly string[];
  /** Nothing was answered in the session yet. */
  readonly isOpening: boolean;
  readonly action?: Action;
}

/** What a hook hands to whoever answers it: the event as the client wrote it, and the end of the session's transcript. */
export interface HookRequest {
  /** The client and the event, as the command names them. */
  readonly client: string;
  readonly event: string;
  readonly input: unknown;
  /** Where the session began, if the client says it elsewhere; else ''. */
  readonly folder: string;
  readonly tail?: TranscriptTail | undefined;
}

export interface TranscriptTail {
  /** Whole lines. */
  readonly text: string;
  /** They begin where the session does. */
  readonly isWhole: boolean;
}

/** From a hook of the same build. */
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
