import { isThoughtRefusal, type LostThoughts } from '../core/conversation/lost-thoughts.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { AnswerParserOptions } from '../core/dialects/dialect-answer.ts';
import { AnswerReader, type Completes } from '../core/answer/answer-reader.ts';
import { headerOf } from '../core/http/header-rules.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';
import type { ClientRequest } from './client-request.ts';
import type { AnswerWatcher } from './relay.ts';

// The longest model outputs today are 128,000 tokens, about 512 kB. svc reads the beginning of a
// longer one; a memory holds less than that.
const TEXT_CHARS_MAX = 1_048_576;
// English prose and JSON; a compressed answer has more tokens a byte, so this is a lower bound of it.
const BYTES_A_TOKEN = 4;

const BAD_REQUEST = 400;
// The sentence is in the message, which is nearly all of an error.
const REFUSAL_CHARS_MAX = 16_384;

export interface AnswerListeners extends Pick<AnswerParserOptions, 'onThought'> {
  /** Called once, with an answer that is whole or has failed. */
  readonly onAnswer: (answer: Answer) => void;
}

/**
 * Reads an answer while it is relayed. It reports each signed thought, and the answer once it is whole,
 * before the bytes that complete them are handed to the client. The relay drops a watch that throws.
 */
export class AnswerWatch implements AnswerWatcher {
  readonly #reader: AnswerReader | undefined;
  readonly #onAnswer: (answer: Answer) => void;
  #isTold = false;
  /** The provider has counted the tokens of the whole answer. */
  #isCounted = false;
  /** Bytes of a successful answer in an encoding that svc does not read. */
  #unreadBytes = 0;
  readonly #isSuccess: boolean;
  #lostThoughts: LostThoughts | undefined;
  /** The beginning of an error that may say why the provider refused the request. */
  #refusal: string | undefined;

  constructor(
    request: Pick<ClientRequest, 'route'>,
    answer: Pick<UpstreamAnswer, 'status' | 'headers'>,
    { onAnswer, onThought }: AnswerListeners,
  ) {
    this.#onAnswer = onAnswer;
    this.#isSuccess = answer.status >= 200 && answer.status < 300;
    if (answer.status === BAD_REQUEST) this.#refusal = '';
    const isReadable =
      request.route.kind === 'model' &&
      this.#isSuccess &&
      // The provider was asked for identity; one that compresses all the same is relayed unread.
      (headerOf(answer.headers, 'content-encoding') ?? 'identity') === 'identity';
    if (!isReadable || request.route.kind !== 'model') return;
    this.#reader = new AnswerReader(request.route.dialect, {
      contentType: headerOf(answer.headers, 'content-type'),
      textCharsMax: TEXT_CHARS_MAX,
      onThought,
    });
  }

  data(chunk: Uint8Array): void {
    if (this.#reader !== undefined) this.#reader.push(chunk);
    else if (this.#isSuccess) this.#unreadBytes += chunk.length;
    else if (this.#refusal !== undefined && this.#refusal.length < REFUSAL_CHARS_MAX) {
      this.#refusal += Buffer.from(chunk).toString('latin1', 0, REFUSAL_CHARS_MAX);
    }
  }

  completes(chunk: Uint8Array): Completes {
    return this.#reader?.completes(chunk) ?? 'nothing';
  }

  beforeThought(): void {
    this.#reader?.readNow();
  }

  beforeLast(): boolean {
    if (this.#reader === undefined || this.#isTold) return true;
    const said = this.#reader.finish();
    if (!said.isComplete && !said.isFailed) return false;
    this.#isTold = true;
    this.#isCounted = said.usage !== undefined;
    this.#lostThoughts = said.lostThoughts;
    this.#onAnswer(said);
    return true;
  }

  /**
   * When the client is gone: some go with the finish reason and do not wait for the end of the
   * stream. True when they have the whole answer all the same. Never throws.
   */
  endsEarly(): boolean {
    try {
      return this.#reader !== undefined && this.beforeLast();
    } catch {
      return true;
    }
  }

  /** When the relay is over: the thoughts of the request that the provider did not use. Never throws. */
  lostThoughts(): LostThoughts | undefined {
    if (this.#refusal !== undefined) {
      return isThoughtRefusal(this.#refusal) ? { refused: 1 } : undefined;
    }
    try {
      return this.#isTold ? this.#lostThoughts : this.#reader?.finish().lostThoughts;
    } catch {
      return undefined;
    }
  }

  /**
   * When the relay is over: it is an answer that can be read, and its end did not come. One that is too large to
   * be read may be whole.
   */
  get isCut(): boolean {
    return this.#reader !== undefined && !this.#reader.gaveUp && !this.#isTold;
  }

  /**
   * Estimates the output tokens of an answer in which the provider has not counted them, cut or whole.
   * Undefined for any other answer. Never throws.
   */
  uncountedTokens(): number | undefined {
    if (this.#reader === undefined) return this.#unreadTokens();
    try {
      return this.#isCounted ? undefined : this.#reader.estimateTokens();
    } catch {
      return undefined;
    }
  }

  /** A provider that compresses its answer must not be free of charge. */
  #unreadTokens(): number | undefined {
    return this.#unreadBytes === 0 ? undefined : Math.ceil(this.#unreadBytes / BYTES_A_TOKEN);
  }
}
