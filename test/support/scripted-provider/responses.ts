import { field, listField, roughTokens, textField, textOf } from './loose-json.ts';
import { type Decision, type Prompt, type PromptText, decide, randomId } from './script.ts';
import {
  ARGUMENT_PIECE_CHARS,
  type AnswerTerms,
  type ScriptedAnswer,
  TEXT_PIECE_CHARS,
  type WrittenAnswer,
  namedEvent,
  pieces,
} from './scripted-answer.ts';
import type { ToolCall, ToolSpec } from './tool-calls.ts';

/** OpenAI Responses. */
export function answerResponses(request: unknown, terms: AnswerTerms): ScriptedAnswer {
  const decision = decide(readPrompt(request));
  const reasons = field(request, 'reasoning') !== undefined && decision.thinks;
  return { decision, ...writeResponse(request, outputOf(decision, reasons), terms) };
}

/** Reasoning without encrypted content gets it. */
export function writeResponse(
  request: unknown,
  items: readonly OutputItem[],
  { usage: prompt, seal, transformations = [] }: AnswerTerms,
): WrittenAnswer & { readonly output: readonly OutputItem[] } {
  const id = randomId('resp_');
  const output = seal === undefined ? items.map((item) => encrypted(item, id)) : seal(items);
  const input = prompt.input + prompt.cacheRead + prompt.cacheWrite;
  const usage = {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: prompt.cacheRead,
      cache_write_tokens: prompt.cacheWrite,
    },
    output_tokens: roughTokens(output),
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + roughTokens(output),
  };
  const begun = {
    id,
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: null,
    model: field(request, 'model'),
    output: [],
    parallel_tool_calls: true,
    store: field(request, 'store') ?? false,
    usage: null,
  };
  const dropped = transformations.length > 0 && { input_transformations: transformations };
  const whole = { ...begun, status: 'completed', output, usage, ...dropped };
  return { output, whole, events: eventsOf(begun, whole) };
}

function encrypted(item: OutputItem, id: string): OutputItem {
  if (item.type !== 'reasoning' || item.encrypted_content !== '') return item;
  return { ...item, encrypted_content: `enc-${Buffer.from(id).toString('base64')}` };
}

export type OutputItem =
  | {
      readonly type: 'reasoning';
      readonly id: string;
      readonly summary: readonly [{ readonly type: 'summary_text'; readonly text: string }];
      readonly encrypted_content: string;
    }
  | { readonly type: 'function_call'; readonly id: string; readonly arguments: string }
  | { readonly type: 'custom_tool_call'; readonly id: string; readonly input: string }
  | {
      readonly type: 'message';
      readonly id: string;
      readonly content: readonly [{ readonly type: 'output_text'; readonly text: string }];
    };

function readPrompt(request: unknown): Prompt {
  const input = field(request, 'input');
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const texts: PromptText[] = [];
  const toolResults: PromptText[] = [];
  (Array.isArray(items) ? items : []).forEach((item: unknown, at) => {
    const type = textField(item, 'type') || 'message';
    if (type === 'message' && field(item, 'role') === 'user') {
      texts.push({ at, text: textOf(field(item, 'content')) });
    }
    if (type.endsWith('_output')) toolResults.push({ at, text: textOf(field(item, 'output')) });
  });
  return { texts, toolResults, tools: listField(request, 'tools').flatMap(toolSpecs) };
}

function toolSpecs(tool: unknown): readonly ToolSpec[] {
  const name = textField(tool, 'name');
  switch (field(tool, 'type')) {
    case 'function':
      return [{ name, schema: field(tool, 'parameters') }];
    case 'custom':
      return [{ name, schema: undefined, isFreeForm: true }];
    case 'namespace':
      return listField(tool, 'tools').map((member) => ({
        name: textField(member, 'name'),
        schema: field(member, 'parameters'),
        namespace: name,
      }));
    default:
      return [];
  }
}

function outputOf(decision: Decision, reasons: boolean): readonly OutputItem[] {
  const reasoning: OutputItem = {
    id: randomId('rs_'),
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: `**Step ${decision.step}** considered.` }],
    encrypted_content: '',
  };
  const before = reasons ? [reasoning] : [];
  if (decision.calls.length > 0) return [...before, ...decision.calls.map(callItem)];
  const content = { type: 'output_text' as const, text: decision.final, annotations: [] };
  const message = {
    id: randomId('msg_'),
    type: 'message' as const,
    role: 'assistant',
    status: 'completed',
    phase: 'final_answer',
    content: [content] as const,
  };
  return [...before, message];
}

function callItem(call: ToolCall): OutputItem {
  const common = { status: 'completed', call_id: `call_${call.id}`, name: call.name };
  if (call.freeText !== undefined) {
    return { id: randomId('ctc_'), type: 'custom_tool_call', ...common, input: call.freeText };
  }
  const namespace = call.namespace === undefined ? {} : { namespace: call.namespace };
  const text = JSON.stringify(call.input);
  return { id: randomId('fc_'), type: 'function_call', ...common, ...namespace, arguments: text };
}

interface Event {
  readonly type: string;
  readonly [field: string]: unknown;
}

function eventsOf(begun: object, whole: { output: readonly OutputItem[] }): readonly string[] {
  const events: readonly Event[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...whole.output.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item: emptied(item) },
      ...contentEvents(item).map((event) => ({ ...event, item_id: item.id, output_index })),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: 'response.completed', response: whole },
  ];
  return events.map(({ type, ...rest }, sequence_number) =>
    namedEvent(type, { sequence_number, ...rest }),
  );
}

function emptied(item: OutputItem): object {
  switch (item.type) {
    case 'reasoning':
      return { ...item, summary: [], encrypted_content: '' };
    case 'function_call':
      return { ...item, arguments: '', status: 'in_progress' };
    case 'custom_tool_call':
      return { ...item, input: '', status: 'in_progress' };
    case 'message':
      return { ...item, content: [], status: 'in_progress' };
  }
}

function contentEvents(item: OutputItem): readonly Event[] {
  switch (item.type) {
    case 'reasoning':
      return summaryEvents(item.summary[0]);
    case 'function_call':
      return [
        ...pieces(item.arguments, ARGUMENT_PIECE_CHARS).map((delta) => ({
          type: 'response.function_call_arguments.delta',
          delta,
        })),
        { type: 'response.function_call_arguments.done', arguments: item.arguments },
      ];
    case 'custom_tool_call':
      return [
        { type: 'response.custom_tool_call_input.delta', delta: item.input },
        { type: 'response.custom_tool_call_input.done', input: item.input },
      ];
    case 'message':
      return textEvents(item.content[0]);
  }
}

function summaryEvents(part: { readonly text: string }): readonly Event[] {
  const { text } = part;
  const empty = { ...part, text: '' };
  return [
    { type: 'response.reasoning_summary_part.added', summary_index: 0, part: empty },
    { type: 'response.reasoning_summary_text.delta', summary_index: 0, delta: text },
    { type: 'response.reasoning_summary_text.done', summary_index: 0, text },
    { type: 'response.reasoning_summary_part.done', summary_index: 0, part },
  ];
}

function textEvents(part: { readonly text: string }): readonly Event[] {
  const { text } = part;
  const empty = { ...part, text: '' };
  return [
    { type: 'response.content_part.added', content_index: 0, part: empty },
    ...pieces(text, TEXT_PIECE_CHARS).map((delta) => ({
      type: 'response.output_text.delta',
      content_index: 0,
      delta,
      logprobs: [],
    })),
    { type: 'response.output_text.done', content_index: 0, text, logprobs: [] },
    { type: 'response.content_part.done', content_index: 0, part },
  ];
}
