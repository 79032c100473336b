import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import { readUserText } from '../conversation/human-text.ts';
import { type HookClient, type HookKind, kindOf } from './hook-clients.ts';

/** Reads the JSON that a client writes to the standard input of a hook. A field of another type reads as absent. */

export interface HookEvent {
  readonly kind: HookKind;
  /** The client's own name of the event, which the answer repeats. */
  readonly name: string;
  readonly session: string;
  /** True if the session is a copy of another one. */
  readonly isFork: boolean;
  readonly folder: string;
  /** The id of the prompt that the event belongs to; '' if unknown. Hooks that are installed twice get the same id. */
  readonly occasion: string;
  /** The path of the session's transcript; '' if there is none. */
  readonly transcript: string;
  readonly prompt: string;
  /** The prompt as the client will send it, if the answer may replace it; otherwise ''. */
  readonly sentPrompt: string;
  readonly answer: string;
  /** The calls since the prompt, for a client without a transcript. */
  readonly calls: readonly ToolRun[];
  /** The tool that has run; undefined for other events. */
  readonly tool: ToolRun | undefined;
}

export interface ToolRun {
  readonly name: string;
  readonly input: Fields;
  readonly output: unknown;
}

/** Bound on an id or a tool's name. */
const ID_CHARS_MAX = 200;
const PATH_CHARS_MAX = 4096;
/** Bound on a text of an event. Recall and capture use at most 32,768 characters of one. */
const TEXT_CHARS_MAX = 1 << 20;
const CALLS_MAX = 64;

/**
 * Reads an event. Returns undefined if svc ignores it: it is of an unknown kind, of a sub-agent, or of no session.
 * `folder`: the folder in which the session began, if the client states it outside the event; '' otherwise.
 */
export function readHookEvent(
  client: HookClient,
  name: string,
  { value, folder }: { readonly value: unknown; readonly folder: string },
): HookEvent | undefined {
  const kind = kindOf(client, name);
  const fields = asRecord(value);
  const session = first(fields, ['session_id', 'sessionId'], ID_CHARS_MAX);
  const isSubAgents = first(fields, ['agent_id', 'agentId'], ID_CHARS_MAX) !== '';
  if (kind === undefined || session === '' || isSubAgents) return undefined;
  const typed = first(fields, ['prompt'], TEXT_CHARS_MAX);
  return {
    kind: kind === 'start' && fields['source'] === 'compact' ? 'compacted' : kind,
    name,
    session,
    isFork: kind === 'start' && fields['source'] === 'fork',
    folder: folder === '' ? first(fields, ['cwd'], PATH_CHARS_MAX) : folder,
    occasion: occasionOf(fields),
    transcript: first(fields, ['transcript_path', 'transcriptPath'], PATH_CHARS_MAX),
    prompt: readUserText([typed], false).humanText,
    sentPrompt: first(fields, ['transformedPrompt'], TEXT_CHARS_MAX),
    answer: first(fields, ['last_assistant_message'], TEXT_CHARS_MAX),
    calls: asList(fields['calls']).slice(-CALLS_MAX).map(runOf),
    tool: kind === 'tool' ? runOf(fields) : undefined,
  };
}

/** Names of a prompt's id in Claude Code, in Codex, and in svc's own plugins. */
const OCCASIONS = ['prompt_id', 'turn_id', 'message_id'] as const;

/**
 * Returns the id of an event's prompt; '' if unknown. Copilot sends no id, so the time of the prompt's event serves as
 * one. Copilot's events of tools have other times, so their prompt is unknown.
 */
function occasionOf(fields: Fields): string {
  const id = first(fields, OCCASIONS, ID_CHARS_MAX);
  const { timestamp } = fields;
  const isTimed = id === '' && typeof timestamp === 'number' && fields['toolName'] === undefined;
  return isTimed ? String(timestamp) : id;
}

function runOf(value: unknown): ToolRun {
  const fields = asRecord(value);
  return {
    name: first(fields, ['tool_name', 'toolName'], ID_CHARS_MAX),
    input: asRecord(fields['tool_input'] ?? fields['toolArgs']),
    output: fields['tool_response'] ?? fields['error'] ?? fields['toolResult'],
  };
}

function first(fields: Fields, names: readonly string[], charsMax: number): string {
  const text = names.map((name) => asText(fields[name])).find((one) => one !== '') ?? '';
  return text.length <= charsMax ? text : '';
}
