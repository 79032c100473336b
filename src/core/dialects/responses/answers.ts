import type { AnswerParserOptions, LargeEvent } from '../answer-parser.ts';
import { DialectAnswer } from '../dialect-answer.ts';
import { clientCallId, isCall, isResult, resultId, visibleText } from './items.ts';
import {
  asCount,
  asList,
  asRecord,
  asText,
  hasAt,
  isRecord,
  parseJson,
  type Fields,
} from '../../bytes/json-fields.ts';

/** Answers of Responses. Reasoning summaries, arguments and audio pass by unread. */
export class ResponsesAnswer extends DialectAnswer {
  /** Paragraph of each message, by its place in the output. */
  readonly #paragraphs = new Map<unknown, number>();
  readonly #waiting = new Set<string>();
  readonly #answered = new Set<string>();

  constructor(options: AnswerParserOptions) {
    super(options, { mark: '"delta":"', textIn: plainDelta });
  }

  readBody(body: unknown): void {
    this.#end(asRecord(body));
  }

  /** The last event repeats all output, pictures included. */
  override skipEvent({ head, tail }: LargeEvent): void {
    const status = LARGE_END.exec(head)?.[1];
    if (status === undefined) return;
    this.#end({ status, usage: lastUsage(tail) });
  }

  protected passesBy(data: string): boolean {
    return isInert(data);
  }

  protected isCalling(): boolean {
    return [...this.#waiting].some((id) => !this.#answered.has(id));
  }

  protected readParsed(event: Fields): void {
    switch (event['type']) {
      case 'response.output_text.delta':
        this.#append(event);
        break;
      case 'response.created':
        this.noteNames(asRecord(event['response']));
        this.noteLostThoughts(asRecord(event['response']));
        break;
      case 'response.output_item.added':
        this.#readItem(asRecord(event['item']));
        break;
      case 'response.output_item.done':
        this.#readItem(asRecord(event['item']));
        this.#readThought(asRecord(event['item']));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#end(asRecord(event['response']));
        break;
      default: // Kinds of event that are new to us say nothing we could use.
    }
  }

  /** Each message is a paragraph, as each is an item when the client sends it back. */
  #append(event: Fields): void {
    const key = event['output_index'] ?? event['item_id'];
    const paragraph = this.#paragraphs.get(key) ?? this.text.open();
    this.#paragraphs.set(key, paragraph);
    this.text.select(paragraph);
    this.text.append(asText(event['delta']));
  }

  #readItem(item: Fields): void {
    const type = asText(item['type']);
    const id = isCall(type) ? clientCallId(item) : undefined;
    if (id !== undefined && item['execution'] !== 'server') this.#waiting.add(id);
    if (isResult(type)) this.#answered.add(resultId(item));
  }

  #readThought(item: Fields): void {
    if (item['type'] === 'reasoning') this.thoughts.add(item['encrypted_content'] ?? item['id']);
  }

  #end(response: Fields): void {
    this.noteNames(response);
    this.noteLostThoughts(response);
    const output = asList(response['output']).map(asRecord);
    for (const item of output) {
      this.#readItem(item);
      this.#readThought(item);
    }
    if (this.text.isEmpty) this.#readMessages(output);
    this.#readUsage(response['usage']);
    this.isFailed ||= response['status'] === 'failed' || isRecord(response['error']);
    this.isComplete = response['status'] === 'completed' || response['status'] === 'incomplete';
    if (response['status'] !== 'incomplete') return;
    // A filtered text is like a refusal: seen, but nothing to remember.
    const { reason } = asRecord(response['incomplete_details']);
    if (reason === 'content_filter') this.isFailed = true;
    else this.isCutShort = true;
  }

  /** For providers that send the whole text at the end only. */
  #readMessages(output: readonly Fields[]): void {
    for (const item of output.filter(({ type }) => type === 'message')) {
      this.text.open();
      this.text.append(visibleText(item['content']));
    }
  }

  #readUsage(value: unknown): void {
    if (!isRecord(value)) return;
    this.noteUsage(value);
    const details = asRecord(value['input_tokens_details']);
    // Both are parts of the input's tokens. OpenAI reports the second since GPT-5.6.
    const cacheRead = asCount(details['cached_tokens']);
    const cacheWrite = asCount(details['cache_write_tokens']);
    this.usage = {
      input: Math.max(0, asCount(value['input_tokens']) - cacheRead - cacheWrite),
      cacheRead,
      cacheWrite,
      output: asCount(value['output_tokens']),
    };
  }
}

const LARGE_END = /"type"\s*:\s*"response\.(completed|incomplete|failed)"/;

/** The last `usage` of a text that ends with the event. It holds numbers alone, so its braces tell its end. */
function lastUsage(tail: string): unknown {
  const [, open = ''] = /^[^]*"usage"\s*:\s*(\{[^]*)$/.exec(tail) ?? [];
  let depth = 0;
  for (let at = 0; at < open.length; at += 1) {
    if (open[at] === '{') depth += 1;
    if (open[at] === '}') depth -= 1;
    if (depth === 0) return parseJson(open.slice(0, at + 1));
  }
  return undefined;
}

function plainDelta(event: Fields): string | undefined {
  const isDelta = event['type'] === 'response.output_text.delta' && !isRecord(event['error']);
  return isDelta && typeof event['delta'] === 'string' ? event['delta'] : undefined;
}

/**
 * Events that svc need not parse, recognised by the provider's spelling; any other spelling is
 * parsed.
 */
function isInert(data: string): boolean {
  if (!hasAt(data, '{"type":"response.', 0)) return false;
  const type = data.slice(18, data.indexOf('"', 18));
  return INERT.has(type.slice(0, type.indexOf('.') + 1) || type);
}

/** Whole names, or families up to and including the dot. */
const INERT: ReadonlySet<string> = new Set([
  'in_progress',
  'function_call_arguments.',
  'custom_tool_call_input.',
  'reasoning_text.',
  'reasoning_summary_text.',
  'reasoning_summary_part.',
  'content_part.',
  'refusal.',
]);
