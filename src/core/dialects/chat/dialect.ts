import type { CallArguments, DialectDescriptor, ResultPlace } from '../descriptor.ts';
import {
  OPENAI_CACHE,
  openAiCacheMs,
  openAiPictureTokens,
  NO_TRAITS,
  readSystemItem,
  textsOf,
  toolCall,
} from '../common.ts';
import { CHAT_API } from '../apis.ts';
import { DialectAnswer } from '../dialect-answer.ts';
import { asList, asRecord, asText, type Fields, isRecord } from '../../bytes/json-fields.ts';
import { REASONING_MEMBERS } from '../../conversation/fingerprint.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { readUserText } from '../../conversation/human-text.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits, ToolCall } from '../../conversation/view.ts';
import type { Span } from '../../bytes/json-scan.ts';

export const CHAT: DialectDescriptor = {
  ...CHAT_API,
  listKey: 'messages',
  takesTextInput: false,
  textPartType: 'text',
  // No known client of this dialect puts its conversation id into `prompt_cache_key`.
  cacheKeyNamesSession: false,
  readItem: readChatItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new ChatAnswer(options),
  clearsOutputs: false,
  // Many providers offer this dialect, and their prices of a cache read differ a hundredfold.
  cachePrices: { ...OPENAI_CACHE, isKnown: false },
  cacheDefaultMs: openAiCacheMs,
  pictureTokens: openAiPictureTokens,
};

/**
 * Reads answers of Chat Completions: only the first choice, and of reasoning only the signatures. Arguments are
 * skipped.
 */
class ChatAnswer extends DialectAnswer {
  #callsTools = false;

  readBody(body: unknown): void {
    this.#readChunk(asRecord(body), 'message');
    this.thoughts.completeAll();
  }

  /** Reads an event. The last one of a stream is no JSON. */
  override readEvent(data: string): void {
    if (data.trim() !== '[DONE]') super.readEvent(data);
    else {
      this.#end();
      this.hasEnded = true;
    }
  }

  protected readParsed(chunk: Fields): void {
    this.#readChunk(chunk, 'delta');
  }

  protected isCalling(): boolean {
    return this.#callsTools;
  }

  #readChunk(chunk: Fields, member: 'delta' | 'message'): void {
    if (isRecord(chunk['error'])) this.isFailed = true;
    this.noteNames(chunk);
    this.readOpenAiUsage(chunk['usage'], 'prompt_tokens', 'completion_tokens');
    const choice = firstChoice(chunk);
    const said = asRecord(choice[member]);
    if (!isThought(said)) this.text.append(textsOf(said['content']).join(''));
    if (hasCalls(said)) this.#callsTools = true;
    for (const name of SIGNED) this.#readThoughts(said[name], name);
    this.#finish(choice['finish_reason']);
  }

  #readThoughts(list: unknown, name: string): void {
    for (const entry of asList(list).map(asRecord)) {
      const { index } = entry;
      // An entry without an index is whole, so it gets a key of its own.
      const key = (kind: string) =>
        typeof index === 'number' ? `${name} ${kind} ${index}` : Symbol(kind);
      this.thoughts.append(key('signature'), entry['signature']);
      this.thoughts.append(key('data'), entry['data']);
    }
  }

  #finish(reason: unknown): void {
    // Some providers send '' instead of null while the answer continues.
    if (typeof reason !== 'string' || reason === '') return;
    this.#end();
    const name = reason.toLowerCase();
    if (CALLING.has(name)) this.#callsTools = true;
    // A filtered text is like a refusal: the user sees it, but svc does not store it.
    else if (FILTERED.has(name)) this.isFailed = true;
    else if (!WHOLE.has(name)) this.isCutShort = true;
  }

  #end(): void {
    this.thoughts.completeAll();
    this.isComplete = true;
  }
}

/** Members in which OpenRouter and LiteLLM send signed thinking. */
const SIGNED = ['reasoning_details', 'thinking_blocks'] as const;

/**
 * Finish reasons of a whole answer without calls: OpenAI's `stop`, and names that servers pass on from others
 * (Hugging Face TGI, Cohere, Anthropic). A reason in none of the three sets means that the answer was cut, such as
 * `insufficient_system_resource` (DeepSeek), `model_length` (Mistral), `error` and `abort`.
 */
const WHOLE: ReadonlySet<string> = new Set(
  'stop eos eos_token stop_sequence end_turn complete'.split(' '),
);
const CALLING: ReadonlySet<string> = new Set(
  'tool_calls function_call tool_call tool_use'.split(' '),
);
const FILTERED: ReadonlySet<string> = new Set(['content_filter', 'safety', 'refusal']);

function firstChoice(chunk: Fields): Fields {
  const choices = asList(chunk['choices']).map(asRecord);
  return choices.find((choice) => (choice['index'] ?? 0) === 0) ?? {};
}

function hasCalls(delta: Fields): boolean {
  return asList(delta['tool_calls']).length > 0 || isRecord(delta['function_call']);
}

/**
 * Says whether a delta or a message is only a thought, which Gemini flags in this dialect. In a flagged message with
 * `</thought>` the answer follows the thought.
 */
function isThought(said: Fields): boolean {
  const isFlagged = asRecord(asRecord(said['extra_content'])['google'])['thought'] === true;
  return isFlagged && !textsOf(said['content']).join('').includes('</thought>');
}

/** Reads an item of Chat Completions: one message. Calls are members of the assistant's message. */
function readChatItem(value: unknown): ItemTraits {
  const message = asRecord(value);
  switch (message['role']) {
    case 'user':
      return readUser(message);
    case 'assistant':
      return readAssistant(message);
    case 'system':
    case 'developer':
      return readSystemItem(textsOf(message['content']));
    case 'tool':
      return { ...NO_TRAITS, role: 'tool', toolResultIds: [asText(message['tool_call_id'])] };
    case 'function': // The form before tool calls: a result names the function instead of the call.
      return { ...NO_TRAITS, role: 'tool', toolResultIds: [asText(message['name'])] };
    default:
      return NO_TRAITS;
  }
}

function readUser(message: Fields): ItemTraits {
  const texts = textsOf(message['content']);
  return { ...NO_TRAITS, role: 'user', ...readUserText(texts, false), ...projectInUser(texts) };
}

function readAssistant(message: Fields): ItemTraits {
  return {
    ...NO_TRAITS,
    role: 'assistant',
    assistantText: textsOf(message['content']).join('').trim(),
    toolCalls: toolCalls(message),
    hasReasoning: REASONING_MEMBERS.some((field) => isFilled(message[field])),
    thoughts: SIGNED.flatMap((field) => asList(message[field]).flatMap(thoughtsOf)),
  };
}

function thoughtsOf(value: unknown): readonly string[] {
  const part = asRecord(value);
  const signature = asText(part['signature']) || asText(part['data']);
  return signature === '' ? [] : [thoughtId(signature)];
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : asList(value).length > 0;
}

function toolCalls(message: Fields): readonly ToolCall[] {
  const calls = asList(message['tool_calls']).map((value) => {
    const call = asRecord(value);
    const named = asRecord(call['function'] ?? call['custom']);
    return toolCall(call['id'], named['name']);
  });
  const legacy = message['function_call'];
  return isRecord(legacy) ? [...calls, toolCall(legacy['name'], legacy['name'])] : calls;
}

function callArguments(message: Fields): readonly CallArguments[] {
  return asList(message['tool_calls'])
    .map(asRecord)
    .map((call) => {
      const named = asRecord(call['function'] ?? call['custom']);
      return [asText(call['id']), named['arguments'] ?? named['input']];
    });
}

function resultPlaces(_bytes: Buffer, item: Span): readonly ResultPlace[] {
  return [{ open: item.start, idName: 'tool_call_id', textName: 'content' }];
}
