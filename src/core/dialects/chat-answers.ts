import type { Answer, Usage } from '../answer.ts';
import { type AnswerParser, DeltaTemplate, VisibleText } from './answer-parser.ts';
import { asCount, asList, asRecord, isRecord, parseJson } from './shape.ts';
import { textsOf } from './system-text.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Answers of Chat Completions: of several choices the first. Reasoning and arguments pass by. */
export class ChatAnswer implements AnswerParser {
  readonly #text: VisibleText;
  readonly #template = new DeltaTemplate('"content":"', plainDelta);
  /** Chunks that say nothing to us: most of a stream that thinks or calls tools. */
  readonly #quiet = [
    new DeltaTemplate('"arguments":"', quietArguments),
    new DeltaTemplate('"reasoning_content":"', (chunk) =>
      quietReasoning(chunk, 'reasoning_content'),
    ),
    new DeltaTemplate('"reasoning":"', (chunk) => quietReasoning(chunk, 'reasoning')),
  ];
  #callsTools = false;
  #isComplete = false;
  #isFailed = false;
  #isCutShort = false;
  #usage: Usage | undefined;

  constructor(textCharsMax: number) {
    this.#text = new VisibleText(textCharsMax);
  }

  readEvent(data: string): void {
    const text = this.#template.read(data);
    if (text !== undefined) {
      this.#text.append(text);
      return;
    }
    if (this.#quiet.some((template) => template.matches(data))) return;
    if (data.trim() === '[DONE]') {
      this.#isComplete = true;
      return;
    }
    const event = asRecord(parseJson(data));
    this.#readChunk(event, 'delta');
    for (const template of [this.#template, ...this.#quiet]) template.learn(data, event);
  }

  readBody(body: unknown): void {
    this.#readChunk(asRecord(body), 'message');
  }

  settle(): void {
    this.#text.settle();
  }

  answer(): Answer {
    return {
      text: this.#text.toString(),
      callsTools: this.#callsTools,
      isComplete: this.#isComplete && !this.#text.isOver,
      isFailed: this.#isFailed,
      isCutShort: this.#isCutShort,
      ...(this.#usage !== undefined && { usage: this.#usage }),
    };
  }

  #readChunk(chunk: Fields, member: 'delta' | 'message'): void {
    if (isRecord(chunk['error'])) this.#isFailed = true;
    this.#readUsage(chunk['usage']);
    const choice = firstChoice(chunk);
    const said = asRecord(choice[member]);
    this.#text.append(textsOf(said['content']).join(''));
    if (hasCalls(said)) this.#callsTools = true;
    this.#finish(choice['finish_reason']);
  }

  #finish(reason: unknown): void {
    if (!isReason(reason)) return;
    this.#isComplete = true;
    if (reason === 'tool_calls' || reason === 'function_call') this.#callsTools = true;
    if (reason === 'length') this.#isCutShort = true;
    // A filtered text is like a refusal: seen, but nothing to remember.
    if (reason === 'content_filter') this.#isFailed = true;
  }

  #readUsage(value: unknown): void {
    if (!isRecord(value)) return;
    const details = asRecord(value['prompt_tokens_details']);
    const cacheRead = asCount(details['cached_tokens'], asCount(value['prompt_cache_hit_tokens']));
    this.#usage = {
      input: Math.max(0, asCount(value['prompt_tokens']) - cacheRead),
      cacheRead,
      cacheWrite: 0, // OpenAI does not charge for writing its cache.
      output: asCount(value['completion_tokens']),
    };
  }
}

/** Some providers send '' instead of null while the answer goes on. */
function isReason(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function firstChoice(chunk: Fields): Fields {
  const choices = asList(chunk['choices']).map(asRecord);
  return choices.find((choice) => (choice['index'] ?? 0) === 0) ?? {};
}

/** The first choice's delta, when the chunk holds nothing else that matters. */
function soleDelta(chunk: Fields): Fields {
  const choice = firstChoice(chunk);
  const matters =
    isReason(choice['finish_reason']) || isRecord(chunk['usage']) || isRecord(chunk['error']);
  return matters ? {} : asRecord(choice['delta']);
}

function hasCalls(delta: Fields): boolean {
  return asList(delta['tool_calls']).length > 0 || isRecord(delta['function_call']);
}

/** The text of a chunk that says nothing else. */
function plainDelta(chunk: Fields): string | undefined {
  const delta = soleDelta(chunk);
  const { content } = delta;
  return typeof content === 'string' && !hasCalls(delta) ? content : undefined;
}

// That a tool is called was noticed when the first chunk of its kind was parsed.
function quietArguments(chunk: Fields): string | undefined {
  const delta = soleDelta(chunk);
  const [call] = asList(delta['tool_calls']);
  const { arguments: text } = asRecord(asRecord(call)['function']);
  return typeof text === 'string' && !isSaid(delta) ? text : undefined;
}

function quietReasoning(chunk: Fields, member: string): string | undefined {
  const delta = soleDelta(chunk);
  const text = delta[member];
  return typeof text === 'string' && !isSaid(delta) && !hasCalls(delta) ? text : undefined;
}

function isSaid(delta: Fields): boolean {
  return textsOf(delta['content']).join('') !== '';
}
