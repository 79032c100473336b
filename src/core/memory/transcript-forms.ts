import { type Fields, isRecord } from '../bytes/json-fields.ts';

/**
 * The forms in which clients keep their sessions, except for Codex, whose lines are items of Responses and are read in
 * `transcripts.ts`. Each form becomes steps with messages of Anthropic Messages, which `transcripts.ts` groups. A form
 * was taken from files of the real client (`test/recordings/transcripts/`).
 */

export type FormClient =
  | 'claude-code'
  | 'copilot'
  | 'pi'
  | 'qwen'
  | 'continue'
  | 'cline'
  | 'opencode';

/** What one line says. Every member that is absent says nothing. */
export interface TranscriptStep {
  readonly session?: string | undefined;
  readonly folder?: string | undefined;
  readonly branch?: string | undefined;
  /** Names this line; a later line that names it as its parent continues from here. */
  readonly id?: string | undefined;
  readonly parent?: string | undefined;
  /** In the form of Anthropic Messages. */
  readonly message?: unknown;
  /** ISO 8601, or milliseconds since 1970. */
  readonly at?: unknown;
  /** The answer ended at a limit, failed, or was withheld. */
  readonly isCut?: boolean;
  /** The client writes its own frames around typed text. */
  readonly hasFrames?: boolean;
}

export function stepOf(client: FormClient, fields: Fields): TranscriptStep {
  return FORMS[client](fields);
}

const FORMS: Readonly<Record<FormClient, (fields: Fields) => TranscriptStep>> = {
  'claude-code': claudeStep,
  copilot: copilotStep,
  pi: piStep,
  qwen: qwenStep,
  continue: continueStep,
  cline: clineStep,
  opencode: opencodeStep,
};

/** Stop reasons in Claude Code's lines: the answer ended at a limit, or was withheld. */
const CUT_REASONS: ReadonlySet<unknown> = new Set(['max_tokens', 'refusal']);
/** The model that Claude Code names where it speaks in the assistant's name: "API Error: 529 …". */
const NO_MODEL = '<synthetic>';

/** Claude Code 2.1.329. */
function claudeStep(fields: Fields): TranscriptStep {
  const { type, message, isSidechain, isMeta, isCompactSummary } = fields;
  const place = {
    session: textOf(fields['sessionId']),
    folder: textOf(fields['cwd']),
    branch: textOf(fields['gitBranch']),
    id: textOf(fields['uuid']),
  };
  if (isSidechain === true || isMeta === true || isCompactSummary === true) return place;
  if (type !== 'user' && type !== 'assistant') return place;
  const { model, stop_reason: reason } = fieldsOf(message);
  if (model === NO_MODEL) return place;
  const said = { message, at: fields['timestamp'], isCut: CUT_REASONS.has(reason) };
  return { ...place, ...said, parent: textOf(fields['parentUuid']), hasFrames: true };
}

/** Copilot CLI 1.0.102: events. `content` is what was typed; the frames are in `transformedContent`. */
function copilotStep(fields: Fields): TranscriptStep {
  const { type, timestamp: at } = fields;
  const data = fieldsOf(fields['data']);
  const { content } = data;
  if (type === 'session.start') {
    const context = fieldsOf(data['context']);
    return {
      session: textOf(data['sessionId']),
      folder: textOf(context['cwd']),
      branch: textOf(context['branch']),
    };
  }
  // A parent tool call marks the messages of a sub-agent.
  if (textOf(data['parentToolCallId']) !== undefined) return {};
  if (type === 'user.message' && data['source'] === undefined) {
    return { message: messageOf('user', [content]), at };
  }
  if (type !== 'assistant.message') return {};
  const calls = listOf(data['toolRequests']).map((call) => fieldsOf(call)['toolCallId']);
  return { message: messageOf('assistant', [content], calls), at };
}

/** pi 0.73.1: a tree of entries. */
function piStep(fields: Fields): TranscriptStep {
  const { type, timestamp: at } = fields;
  if (type === 'session') {
    return { session: textOf(fields['id']), folder: textOf(fields['cwd']) };
  }
  const place = { id: textOf(fields['id']), parent: textOf(fields['parentId']) };
  const { role, content, stopReason } = fieldsOf(fields['message']);
  if (type !== 'message') return place;
  if (role === 'toolResult') return { ...place, message: resultOf('call'), at };
  if (role !== 'user' && role !== 'assistant') return place;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
  const calls = parts.flatMap((part) => {
    const { type: kind, id } = fieldsOf(part);
    return kind === 'toolCall' ? [id] : [];
  });
  const isCut = stopReason === 'length' || stopReason === 'error' || stopReason === 'aborted';
  return { ...place, message: messageOf(role, textsIn(parts, 'text'), calls), at, isCut };
}

/** Qwen Code 0.24.4: lines in the manner of Claude Code, with the parts of Gemini. */
function qwenStep(fields: Fields): TranscriptStep {
  const { type, provenance, timestamp: at } = fields;
  const place = {
    session: textOf(fields['sessionId']),
    folder: textOf(fields['cwd']),
    branch: textOf(fields['gitBranch']),
    id: textOf(fields['uuid']),
    parent: textOf(fields['parentUuid']),
  };
  const parts = listOf(fieldsOf(fields['message'])['parts']).map(fieldsOf);
  if (type === 'tool_result') return { ...place, message: resultOf('call'), at };
  // What the client says with the role of the user has another provenance.
  const isTyped = type === 'user' && (provenance === undefined || provenance === 'real_user');
  if (!isTyped && type !== 'assistant') return place;
  const texts = parts.flatMap(({ text, thought }) => (thought === true ? [] : [text]));
  const calls = parts.flatMap(({ functionCall }) =>
    functionCall === undefined ? [] : [fieldsOf(functionCall)['id']],
  );
  return { ...place, message: messageOf(isTyped ? 'user' : 'assistant', texts, calls), at };
}

/** Continue CLI: its file holds the session, then its history. Nothing in it says when. */
function continueStep(fields: Fields): TranscriptStep {
  const message = fieldsOf(fields['message']);
  const { role, content } = message;
  const place = {
    session: textOf(fields['sessionId']),
    folder: textOf(fields['workspaceDirectory']),
    at: fields['at'],
  };
  if (role === 'tool') return { ...place, message: resultOf('call') };
  if (role !== 'user' && role !== 'assistant') return place;
  const texts = typeof content === 'string' ? [content] : textsIn(listOf(content), 'text');
  const calls = listOf(message['toolCalls']).map((call) => fieldsOf(call)['id']);
  return { ...place, message: messageOf(role, texts, calls) };
}

/** Cline CLI 3.0.65: messages of Anthropic Messages. Its own frame is around what was typed. */
function clineStep(fields: Fields): TranscriptStep {
  const place = {
    session: textOf(fields['sessionId']),
    folder: textOf(fields['folder']),
    at: fields['ts'],
  };
  const { role, content } = fields;
  if (role !== 'user' && role !== 'assistant') return place;
  const parts = listOf(content).map((part) => {
    const { type, text } = fieldsOf(part);
    const typed = type === 'text' && role === 'user' ? CLINE_INPUT.exec(textOf(text) ?? '') : null;
    return typed === null ? part : { type, text: typed[1] };
  });
  return { ...place, message: { role, content: parts } };
}

const CLINE_INPUT = /^<user_input mode="\w+">([\s\S]*)<\/user_input>$/;

/** opencode 1.18.33: a message of its database with the parts of it (`transcript-files.ts`). */
function opencodeStep(fields: Fields): TranscriptStep {
  const { role, summary, error, finish } = fieldsOf(fields['message']);
  const place = {
    session: textOf(fields['session']),
    folder: textOf(fields['folder']),
    at: fields['at'],
  };
  if (role !== 'user' && role !== 'assistant') return place;
  // The summary of a compaction; for a message of the user it is an object with the changes of files.
  if (summary === true) return place;
  // The client adds texts of its own: files that were named, reminders.
  const parts = listOf(fields['parts']).filter((part) => {
    const { synthetic, ignored } = fieldsOf(part);
    return synthetic !== true && ignored !== true;
  });
  const calls = finish === 'tool-calls' ? ['call'] : [];
  const isCut = error !== undefined || finish === 'length';
  return { ...place, message: messageOf(role, textsIn(parts, 'text'), calls), isCut };
}

function messageOf(
  role: 'user' | 'assistant',
  texts: readonly unknown[],
  calls: readonly unknown[] = [],
) {
  return {
    role,
    content: [
      ...texts.flatMap((text) => (typeof text === 'string' ? [{ type: 'text', text }] : [])),
      ...calls.map((id) => ({
        type: 'tool_use',
        id: textOf(id) ?? 'call',
        name: 'tool',
        input: {},
      })),
    ],
  };
}

/** A tool's result: it answers a call, and nothing of it is remembered. */
function resultOf(id: string) {
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: '' }] };
}

function textsIn(parts: readonly unknown[], kind: string): readonly unknown[] {
  return parts.flatMap((part) => {
    const { type, text } = fieldsOf(part);
    return type === kind ? [text] : [];
  });
}

function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
