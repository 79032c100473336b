import { asList, asRecord, type Fields, textOrNone } from '../bytes/json-fields.ts';

/**
 * Reads a line of a stored session (transcript) in each client's format. A line becomes a step, whose message has the
 * form of Anthropic Messages; `transcripts.ts` groups the steps into exchanges. The lines of Codex are items of the
 * Responses API, so `transcripts.ts` reads them itself. Each format was taken from files of the real client
 * (`test/recordings/transcripts/`).
 */

export const TRANSCRIPT_CLIENTS = [
  'claude-code',
  'codex',
  'opencode',
  'copilot',
  'pi',
  'qwen',
  'gemini',
  'continue',
  'cline',
] as const;

export type TranscriptClient = (typeof TRANSCRIPT_CLIENTS)[number];
export type FormClient = Exclude<TranscriptClient, 'codex'>;

/** What one line of a transcript states; a member is undefined if the line does not state it. */
export interface TranscriptStep {
  readonly session?: string | undefined;
  readonly folder?: string | undefined;
  readonly branch?: string | undefined;
  /** The id of this line. A later line with this id as its `parent` continues from here. */
  readonly id?: string | undefined;
  /** The id of the line that this one continues; '' for the first line of a session. */
  readonly parent?: string | undefined;
  /** The message in the form of Anthropic Messages. */
  readonly message?: unknown;
  /** ISO 8601, or milliseconds since 1970. */
  readonly at?: unknown;
  /** True if the answer ended at a limit, failed, or was withheld. */
  readonly isCut?: boolean;
  /** True if the client appends what the user types during a tool call to the tool's output; see HasFrames. */
  readonly hasFrames?: boolean;
  /** Texts of the client that may contain the answer of a svc hook. */
  readonly hookTexts?: readonly unknown[];
  /** True if the client no longer sends the messages before this line, because it compacted them. */
  readonly isCompacted?: boolean;
}

export function stepOf(client: FormClient, fields: Fields): TranscriptStep {
  return FORMS[client](fields);
}

const FORMS: Readonly<Record<FormClient, (fields: Fields) => TranscriptStep>> = {
  'claude-code': claudeStep,
  copilot: copilotStep,
  pi: piStep,
  qwen: qwenStep,
  gemini: geminiStep,
  continue: continueStep,
  cline: clineStep,
  opencode: opencodeStep,
};

/** Stop reasons in Claude Code's lines for an answer that ended at a limit or was withheld. */
const CUT_REASONS: ReadonlySet<unknown> = new Set(['max_tokens', 'refusal']);
/** The model's name in lines that Claude Code itself wrote in the role assistant: "API Error: 529 …". */
const NO_MODEL = '<synthetic>';

const HOOK_ATTACHMENT = 'hook_additional_context';

/** Reads a line of Claude Code 2.1.329. */
function claudeStep(fields: Fields): TranscriptStep {
  const { type, message, isSidechain, isMeta, isCompactSummary } = fields;
  const attachment = asRecord(fields['attachment']);
  const place = {
    ...placeIn(fields, 'cwd'),
    branch: textOrNone(fields['gitBranch']),
    id: textOrNone(fields['uuid']),
    isCompacted: isCompactSummary === true,
    ...(attachment['type'] === HOOK_ATTACHMENT && { hookTexts: asList(attachment['content']) }),
  };
  if (isSidechain === true || isMeta === true || isCompactSummary === true) return place;
  if (type !== 'user' && type !== 'assistant') return place;
  const { model, stop_reason: reason } = asRecord(message);
  if (model === NO_MODEL) return place;
  const said = { message, at: fields['timestamp'], isCut: CUT_REASONS.has(reason) };
  const { parentUuid } = fields;
  const parent = parentUuid === null ? '' : textOrNone(parentUuid);
  return { ...place, ...said, parent, hasFrames: true };
}

/** Reads an event of Copilot CLI 1.0.102. `content` is the typed text; `transformedContent` adds the client's texts. */
function copilotStep(fields: Fields): TranscriptStep {
  const { type, timestamp: at } = fields;
  const data = asRecord(fields['data']);
  const { content, transformedContent } = data;
  if (type === 'session.start') {
    const context = asRecord(data['context']);
    return {
      session: textOrNone(data['sessionId']),
      folder: textOrNone(context['cwd']),
      branch: textOrNone(context['branch']),
    };
  }
  // A parent tool call marks the messages of a sub-agent.
  if (textOrNone(data['parentToolCallId']) !== undefined) return {};
  if (type === 'user.message' && data['source'] === undefined) {
    return { message: messageOf('user', [content]), at, hookTexts: [transformedContent] };
  }
  if (type !== 'assistant.message') return {};
  const calls = asList(data['toolRequests']).map((call) => asRecord(call)['toolCallId']);
  return { message: messageOf('assistant', [content], calls), at };
}

/** Reads an entry of pi 0.73.1, whose entries form a tree. */
function piStep(fields: Fields): TranscriptStep {
  const { type, timestamp: at } = fields;
  if (type === 'session') {
    return { session: textOrNone(fields['id']), folder: textOrNone(fields['cwd']) };
  }
  const place = { id: textOrNone(fields['id']), parent: textOrNone(fields['parentId']) };
  const { role, content, stopReason } = asRecord(fields['message']);
  if (type !== 'message') return place;
  if (role === 'toolResult') return { ...place, message: RESULT, at };
  if (role !== 'user' && role !== 'assistant') return place;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content);
  const calls = parts.flatMap((part) => {
    const { type: kind, id } = asRecord(part);
    return kind === 'toolCall' ? [id] : [];
  });
  const isCut = stopReason === 'length' || stopReason === 'error' || stopReason === 'aborted';
  return { ...place, message: messageOf(role, textsIn(parts), calls), at, isCut };
}

/** Reads a line of Qwen Code 0.24.4: the members are similar to Claude Code's, and the message has Gemini's parts. */
function qwenStep(fields: Fields): TranscriptStep {
  const { type, provenance, timestamp: at } = fields;
  const place = {
    ...placeIn(fields, 'cwd'),
    branch: textOrNone(fields['gitBranch']),
    id: textOrNone(fields['uuid']),
    parent: textOrNone(fields['parentUuid']),
  };
  const parts = asList(asRecord(fields['message'])['parts']).map(asRecord);
  if (type === 'tool_result') return { ...place, message: RESULT, at };
  // Skip texts that the client itself wrote in the role user: their member `provenance` is not 'real_user'.
  const isTyped = type === 'user' && (provenance === undefined || provenance === 'real_user');
  if (!isTyped && type !== 'assistant') return place;
  const texts = parts.flatMap(({ text, thought }) => (thought === true ? [] : [text]));
  const calls = parts.flatMap(({ functionCall }) =>
    functionCall === undefined ? [] : [asRecord(functionCall)['id']],
  );
  return { ...place, message: messageOf(isTyped ? 'user' : 'assistant', texts, calls), at };
}

/** Reads a line of Gemini CLI 0.61.0. If the client added contents of files, `displayContent` is the typed text. */
function geminiStep(fields: Fields): TranscriptStep {
  const { type, content, displayContent, timestamp: at } = fields;
  const place = placeIn(fields, 'folder');
  if (type !== 'user' && type !== 'gemini') return place;
  const said = displayContent ?? content;
  const parts = typeof said === 'string' ? [{ text: said }] : asList(said).map(asRecord);
  if (parts.some(({ functionResponse }) => functionResponse !== undefined)) {
    return { ...place, message: RESULT, at };
  }
  const texts = parts.flatMap(({ text, thought }) => (thought === true ? [] : [text]));
  const calls = asList(fields['toolCalls']).map((call) => asRecord(call)['id']);
  return { ...place, message: messageOf(type === 'user' ? 'user' : 'assistant', texts, calls), at };
}

/**
 * Reads a part of Continue CLI's file: first the session, then each message. The file states no times, so
 * `transcript-files.ts` adds `at`, the time of the file.
 */
function continueStep(fields: Fields): TranscriptStep {
  const message = asRecord(fields['message']);
  const { role, content } = message;
  const place = { ...placeIn(fields, 'workspaceDirectory'), at: fields['at'] };
  if (role === 'tool') return { ...place, message: RESULT };
  if (role !== 'user' && role !== 'assistant') return place;
  const texts = typeof content === 'string' ? [content] : textsIn(asList(content));
  const calls = asList(message['toolCalls']).map((call) => asRecord(call)['id']);
  return { ...place, message: messageOf(role, texts, calls) };
}

/** Reads a message of Cline CLI 3.0.65, in the form of Anthropic Messages. Typed text is inside a tag of Cline. */
function clineStep(fields: Fields): TranscriptStep {
  const place = { ...placeIn(fields, 'folder'), at: fields['ts'] };
  const { role, content } = fields;
  if (role !== 'user' && role !== 'assistant') return place;
  const parts = asList(content).map((part) => {
    const { type, text } = asRecord(part);
    const typed =
      type === 'text' && role === 'user' ? CLINE_INPUT.exec(textOrNone(text) ?? '') : null;
    return typed === null ? part : { type, text: typed[1] };
  });
  return { ...place, message: { role, content: parts } };
}

const CLINE_INPUT = /^<user_input mode="\w+">([\s\S]*)<\/user_input>$/;

/** Reads a message of opencode 1.18.33 from its database, with its parts (`transcript-files.ts`). */
function opencodeStep(fields: Fields): TranscriptStep {
  const { role, summary, error, finish } = asRecord(fields['message']);
  const place = {
    session: textOrNone(fields['session']),
    folder: textOrNone(fields['folder']),
    at: fields['at'],
  };
  if (role !== 'user' && role !== 'assistant') return place;
  // `summary` is true for the summary of a compaction; in a user's message it is an object with file changes.
  if (summary === true) return place;
  // Skip texts that the client added: reminders, and contents of files that the user named.
  const parts = asList(fields['parts']).filter((part) => {
    const { synthetic, ignored } = asRecord(part);
    return synthetic !== true && ignored !== true;
  });
  const calls = finish === 'tool-calls' ? ['call'] : [];
  const isCut = error !== undefined || finish === 'length';
  return { ...place, message: messageOf(role, textsIn(parts), calls), isCut };
}

function placeIn(fields: Fields, folderName: string): Pick<TranscriptStep, 'session' | 'folder'> {
  return { session: textOrNone(fields['sessionId']), folder: textOrNone(fields[folderName]) };
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
      ...calls.map((id) => {
        return { type: 'tool_use', id: textOrNone(id) ?? 'call', name: 'tool', input: {} };
      }),
    ],
  };
}

/** A message with a tool's result. Its content is left out, because svc stores nothing of it. */
const RESULT = {
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'call', content: '' }],
} as const;

function textsIn(parts: readonly unknown[]): readonly unknown[] {
  return parts.flatMap((part) => {
    const { type, text } = asRecord(part);
    return type === 'text' ? [text] : [];
  });
}
