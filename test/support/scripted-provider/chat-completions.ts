import { field, isObject, listField, roughTokens, textField, textOf } from './loose-json.ts';
import { type Prompt, type PromptText, decide, randomId } from './script.ts';
import {
  ARGUMENT_PIECE_CHARS,
  type AnswerTerms,
  type ScriptedAnswer,
  TEXT_PIECE_CHARS,
  type WrittenAnswer,
  pieces,
} from './scripted-answer.ts';

/** OpenAI Chat Completions. */
export function answerChat(request: unknown, terms: AnswerTerms): ScriptedAnswer {
  const decision = decide(readPrompt(request));
  const calls = decision.calls.map(({ id, name, input }) => ({
    id: `call_${id}`,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(input) },
  }));
  const text = calls.length > 0 ? `Step ${decision.step + 1}.` : decision.final;
  const reasoning = decision.thinks ? `I consider step ${decision.step}.` : '';
  return { decision, ...writeCompletion(request, { text, calls, reasoning }, terms) };
}

export function writeCompletion(
  request: unknown,
  { text, calls, reasoning }: Pick<Completion, 'text' | 'calls' | 'reasoning'>,
  { usage }: AnswerTerms,
): WrittenAnswer {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const completion: Completion = {
    frame: {
      id: randomId('chatcmpl-'),
      created: Math.floor(Date.now() / 1000),
      model: field(request, 'model'),
      system_fingerprint: 'fp_scripted',
    },
    text,
    calls,
    finishReason: calls.length > 0 ? 'tool_calls' : 'stop',
    reasoning,
    usage: {
      prompt_tokens: prompt,
      completion_tokens: roughTokens(text),
      total_tokens: prompt + roughTokens(text),
      prompt_tokens_details: {
        cached_tokens: usage.cacheRead,
        cache_write_tokens: usage.cacheWrite,
      },
    },
  };
  const wantsUsage = field(field(request, 'stream_options'), 'include_usage') === true;
  return { whole: wholeOf(completion), events: eventsOf(completion, wantsUsage) };
}

interface ChatCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

interface Completion {
  readonly frame: object;
  readonly text: string;
  readonly calls: readonly ChatCall[];
  readonly finishReason: string;
  readonly reasoning: string;
  readonly usage: object;
}

function readPrompt(request: unknown): Prompt {
  const texts: PromptText[] = [];
  const toolResults: PromptText[] = [];
  listField(request, 'messages').forEach((message, at) => {
    const text = textOf(field(message, 'content'));
    if (field(message, 'role') === 'user') texts.push({ at, text });
    if (field(message, 'role') === 'tool') toolResults.push({ at, text });
  });
  const tools = listField(request, 'tools')
    .map((tool) => field(tool, 'function'))
    .filter(isObject)
    .map((tool) => ({ name: textField(tool, 'name'), schema: tool['parameters'] }));
  return { texts, toolResults, tools };
}

function wholeOf({ frame, text, calls, finishReason, usage }: Completion): object {
  const toolCalls = calls.length > 0 ? { tool_calls: calls } : {};
  const message = { role: 'assistant', content: text, refusal: null, ...toolCalls };
  return {
    object: 'chat.completion',
    ...frame,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
    usage,
  };
}

function eventsOf(completion: Completion, wantsUsage: boolean): readonly string[] {
  const { frame, text, calls, finishReason, reasoning, usage } = completion;
  const chunk = (choices: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', ...frame, choices, ...more })}\n\n`;
  const delta = (part: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta: part, logprobs: null, finish_reason }]);
  return [
    delta({ role: 'assistant', content: '' }),
    ...(reasoning === '' ? [] : [delta({ reasoning_content: reasoning })]),
    ...pieces(text, TEXT_PIECE_CHARS).map((content) => delta({ content })),
    ...calls.flatMap((call, index) => callDeltas(call, index).map((part) => delta(part))),
    delta({}, finishReason),
    ...(wantsUsage ? [chunk([], { usage })] : []),
    'data: [DONE]\n\n',
  ];
}

function callDeltas(call: ChatCall, index: number): readonly object[] {
  const start = { ...call, index, function: { name: call.function.name, arguments: '' } };
  return [
    { tool_calls: [start] },
    ...pieces(call.function.arguments, ARGUMENT_PIECE_CHARS).map((text) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    })),
  ];
}
