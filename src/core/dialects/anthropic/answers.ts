import type { AnswerParserOptions } from '../answer-parser.ts';
import type { Answer, Cleared } from '../answer.ts';
import { DialectAnswer } from '../dialect-answer.ts';
import {
  asCount,
  asList,
  asRecord,
  asText,
  hasAt,
  isRecord,
  type Fields,
} from '../../bytes/json-fields.ts';

/** Answers of Messages. Thinking and tool arguments pass by unread. */
export class MessagesAnswer extends DialectAnswer {
  #callsTools = false;
  #lastBlock: unknown;
  #cleared: Cleared | undefined;

  constructor(options: AnswerParserOptions) {
    super(options, { mark: '"text":"', textIn: plainDelta });
  }

  readBody(body: unknown): void {
    const message = asRecord(body);
    this.isFailed = isRecord(message['error']);
    this.noteNames(message);
    this.noteLostThoughts(message);
    this.#readCleared(message);
    for (const [index, block] of asList(message['content']).entries()) {
      this.#startBlock(index, asRecord(block));
    }
    this.thoughts.completeAll();
    this.#readUsage(message['usage']);
    this.#stop(message['stop_reason']);
    this.isComplete = message['type'] === 'message' && typeof message['stop_reason'] === 'string';
  }

  override answer(): Answer {
    const answer = super.answer();
    return this.#cleared === undefined ? answer : { ...answer, cleared: this.#cleared };
  }

  protected passesBy(data: string): boolean {
    if (data === MESSAGE_STOP) this.#end();
    return data === MESSAGE_STOP || isInert(data);
  }

  protected isCalling(): boolean {
    return this.#callsTools;
  }

  protected readParsed(event: Fields): void {
    switch (event['type']) {
      case 'message_start':
        this.noteNames(asRecord(event['message']));
        this.noteLostThoughts(asRecord(event['message']));
        this.#readUsage(asRecord(event['message'])['usage']);
        break;
      case 'content_block_start':
        this.#startBlock(event['index'], asRecord(event['content_block']));
        break;
      case 'content_block_delta':
        this.text.append(textIn(event) ?? '');
        this.thoughts.append(event['index'], signatureIn(event));
        break;
      case 'content_block_stop':
        this.thoughts.complete(event['index']);
        break;
      case 'message_delta':
        this.noteLostThoughts(event);
        this.#readCleared(event);
        this.#readUsage(event['usage']);
        this.#stop(asRecord(event['delta'])['stop_reason']);
        break;
      case 'message_stop':
        this.#end();
        break;
      default: // Kinds of event that are new to us say nothing we could use.
    }
  }

  // Text blocks side by side are one paragraph, as in the item that the client will send back.
  #startBlock(index: unknown, block: Fields): void {
    const type = block['type'];
    if (type === 'text' && this.#lastBlock !== undefined && this.#lastBlock !== 'text') {
      this.text.open();
    }
    this.#lastBlock = type;
    if (type === 'text') this.text.append(asText(block['text']));
    if (type === 'tool_use') this.#callsTools = true;
    if (SIGNED.has(type)) this.thoughts.append(index, block['signature']);
    if (type === 'redacted_thinking') this.thoughts.append(index, block['data']);
  }

  #end(): void {
    this.thoughts.completeAll();
    this.isComplete = true;
  }

  #stop(reason: unknown): void {
    if (CALLING.has(reason)) this.#callsTools = true;
    // The person sees a refusal, but recalling it later would only teach the model to refuse.
    else if (reason === 'refusal') this.isFailed = true;
    else if (typeof reason === 'string' && !WHOLE.has(reason)) this.isCutShort = true;
  }

  /** In the last event of a stream ("Context editing", 2026-08-22). */
  #readCleared({ context_management: told }: Fields): void {
    const edits = asList(asRecord(told)['applied_edits']).map(asRecord);
    const clearings = edits.filter(({ type }) => asText(type).startsWith('clear_tool_uses_'));
    if (clearings.length === 0) return;
    this.#cleared = {
      outputs: sum(clearings.map((edit) => asCount(edit['cleared_tool_uses']))),
      tokens: sum(clearings.map((edit) => asCount(edit['cleared_input_tokens']))),
    };
  }

  #readUsage(value: unknown): void {
    if (!isRecord(value)) return;
    this.noteUsage(value);
    const before = this.usage;
    const hour = asRecord(value['cache_creation'])['ephemeral_1h_input_tokens'];
    const cacheWriteHour = asCount(hour, before?.cacheWriteHour);
    this.usage = {
      input: asCount(value['input_tokens'], before?.input),
      cacheRead: asCount(value['cache_read_input_tokens'], before?.cacheRead),
      cacheWrite: asCount(value['cache_creation_input_tokens'], before?.cacheWrite),
      output: asCount(value['output_tokens'], before?.output),
      ...(cacheWriteHour > 0 ? { cacheWriteHour } : {}),
    };
  }
}

/** After these the client sends the conversation again by itself. */
const CALLING: ReadonlySet<unknown> = new Set(['tool_use', 'pause_turn', 'compaction']);
/** Anthropic checks these blocks alike (the types of its SDK, 2026-09). */
const SIGNED: ReadonlySet<unknown> = new Set(['thinking', 'connector_text']);
/** `stop` is the name that some other providers of this API send. Any other reason is a cut. */
const WHOLE: ReadonlySet<string> = new Set(['end_turn', 'stop_sequence', 'stop']);

function textIn(event: Fields): string | undefined {
  const delta = asRecord(event['delta']);
  return delta['type'] === 'text_delta' ? asText(delta['text']) : undefined;
}

function signatureIn(event: Fields): unknown {
  const delta = asRecord(event['delta']);
  return delta['type'] === 'signature_delta' ? delta['signature'] : undefined;
}

function plainDelta(event: Fields): string | undefined {
  const isDelta = event['type'] === 'content_block_delta' && !isRecord(event['error']);
  return isDelta ? textIn(event) : undefined;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

const MESSAGE_STOP = '{"type":"message_stop"}';
/** As Anthropic writes it, and as others do. */
const PINGS = ['{"type": "ping"', '{"type":"ping"'];

/**
 * Events that svc need not parse, recognised by the provider's spelling; any other spelling is
 * parsed.
 */
function isInert(data: string): boolean {
  if (hasAt(data, '{"type":"content_block_delta"', 0)) return isOtherDelta(data);
  return PINGS.some((ping) => hasAt(data, ping, 0));
}

const DELTA = '"delta":{"type":"';

function isOtherDelta(data: string): boolean {
  const at = data.indexOf(DELTA);
  const isRead = (kind: string): boolean => data.startsWith(kind, at + DELTA.length);
  return at !== -1 && !isRead('text_') && !isRead('signature_');
}
