import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import {
  type AnswerChoices,
  PATHS,
  requestWith,
  said,
  toolRound,
} from '../../../test/support/dialect-wire.ts';
import { bytesOf } from '../../../test/support/story.ts';
import { ask } from '../../../test/support/sockets.ts';
import { longOutput } from '../../../test/support/tool-session.ts';

/**
 * A client that talks to a service which is killed again and again. It keeps its conversation over the
 * kills, asks again for the answer that it did not get, and knows what it was told.
 */

/** Numbers from 0 to 1, the same for the same seed. */
export type Random = () => number;

/** A linear congruential generator: enough to choose moments, and to choose them again. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export interface KillClientOptions {
  readonly name: string;
  readonly tenant: string;
  readonly key: string;
  readonly dialect: Dialect;
  readonly isStreamed: boolean;
  /** It comes with a long tool loop behind it, of which svc leaves outputs out. */
  readonly hasHistory: boolean;
  readonly random: Random;
  /** The provider gives this answer to the request with this model. */
  readonly onSend: (model: string, answer: AnswerChoices) => void;
}

/** One request, as its client knows it. */
export interface SentRequest {
  readonly tenant: string;
  readonly requestSha256: string;
  /** Of an answer that came whole. */
  readonly responseSha256?: string;
}

/** A conversation that is longer begins anew: requests stay below 200 kB. */
const EXCHANGES_MAX = 4;
const ROUNDS_MAX = 12;
const OUTPUT_TOKENS = 800;

/** The tools of a long loop take their time, in which svc stores what they said. */
const TOOL_MS = 250;
/** A client that never rests would leave no moment for anything but requests. */
const TYPING_MS = 50;
/** Shortening begins where so much of a loop is old. */
const HISTORY = { rounds: 12, outputTokens: 3000 };

const SHELL = { type: 'object', properties: {} };

/** Without tools a request is no agent's. */
const TOOLS: Readonly<Record<Dialect, readonly object[]>> = {
  anthropic_messages: [{ name: 'Bash', input_schema: SHELL }],
  openai_responses: [{ type: 'function', name: 'shell', parameters: SHELL }],
  openai_chat_completions: [{ type: 'function', function: { name: 'shell', parameters: SHELL } }],
};

export class KillClient {
  readonly #options: KillClientOptions;
  readonly space: string;
  /** By the model that it names, which no other request does. */
  readonly sent = new Map<string, SentRequest>();
  /** Texts of exchanges whose answer came whole: the memory holds each of them once. */
  readonly acknowledged: string[] = [];
  /**
   * Requests that a living service could not serve: a busy machine's store or provider was too late.
   * They are sent again, as SDKs do.
   */
  refused = 0;
  #items: unknown[] = [];
  #exchanges = 0;
  #roundsLeft = 0;
  #count = 0;
  #prompt = '';
  #answer = '';
  #isAnswered = true;

  constructor(options: KillClientOptions) {
    this.#options = options;
    this.space = `project/kills-${options.name}`;
  }

  get tenant(): string {
    return this.#options.tenant;
  }

  get key(): string {
    return this.#options.key;
  }

  /** Sends one request after the other, until the service is gone. */
  async talk(port: number): Promise<void> {
    const pauseMs = this.#options.hasHistory ? TOOL_MS : TYPING_MS;
    // oxlint-disable-next-line no-await-in-loop -- One request after the other.
    while (await this.#step(port)) await sleep(pauseMs);
  }

  async #step(port: number): Promise<boolean> {
    const { dialect, random } = this.#options;
    if (this.#isAnswered) this.#say();
    else if (random() < 0.2) this.#beginAnew();
    const callsTool = this.#roundsLeft > 0;
    const text = callsTool ? 'Looking.' : this.#answer;
    const outcome = await this.#send(port, { text, callsTool });
    if (outcome !== 'answered') return outcome === 'refused';
    if (callsTool) {
      this.#roundsLeft -= 1;
      const id = `call_${this.#options.name}_${this.#count}`;
      this.#items.push(...toolRound(dialect, id, longOutput(id, OUTPUT_TOKENS)));
      return true;
    }
    this.#items.push(said('assistant', text));
    this.acknowledged.push(this.#prompt, this.#answer);
    this.#isAnswered = true;
    return true;
  }

  /** The person's next words. */
  #say(): void {
    const { name, random, hasHistory } = this.#options;
    if (this.#exchanges >= EXCHANGES_MAX) this.#beginAnew();
    this.#count += 1;
    this.#exchanges += 1;
    this.#prompt = sentence(`Note ${name} ${this.#count}:`, random);
    this.#answer = sentence(`Answer ${name} ${this.#count}:`, random);
    const isFirst = this.#items.length === 0;
    this.#items.push(said('user', this.#prompt));
    if (isFirst && hasHistory) this.#items.push(...this.#history());
    this.#roundsLeft = random() < 0.5 && !hasHistory ? 0 : Math.ceil(random() * ROUNDS_MAX);
    this.#isAnswered = false;
  }

  #history(): readonly unknown[] {
    const { dialect, name } = this.#options;
    return Array.from({ length: HISTORY.rounds }, (_, at) => {
      const id = `call_${name}_${this.#count}_${at}`;
      return toolRound(dialect, id, longOutput(id, HISTORY.outputTokens));
    }).flat();
  }

  #beginAnew(): void {
    this.#items = [];
    this.#exchanges = 0;
    if (this.#isAnswered) return;
    // A person who gives up asks for something else.
    this.#isAnswered = true;
    this.#say();
  }

  /** 'gone': the service was, before the last byte. */
  async #send(port: number, answer: AnswerChoices): Promise<'answered' | 'refused' | 'gone'> {
    const { dialect, key, tenant, isStreamed, name, onSend } = this.#options;
    const model = `kill-${name}-${this.sent.size}`;
    onSend(model, { ...answer, isStreamed });
    const body = bytesOf(
      requestWith(dialect, this.#items, {
        model,
        stream: isStreamed,
        tools: TOOLS[dialect],
      }),
    );
    const requestSha256 = sha256(body);
    this.sent.set(model, { tenant, requestSha256 });
    const headers = ['content-type', 'application/json', 'x-svc-memory-space', this.space];
    const found = await ask(port, {
      path: PATHS[dialect],
      headers: ['authorization', `Bearer ${key}`, ...headers],
      body,
    }).catch(() => undefined);
    if (found === undefined || found.isCut) return 'gone';
    if (found.status === 502 || found.status === 503) {
      this.refused += 1;
      return 'refused';
    }
    if (found.status !== 200) throw new Error(`${found.status} ${found.body.toString()}`);
    this.sent.set(model, { tenant, requestSha256, responseSha256: sha256(found.body) });
    return 'answered';
  }
}

/** Words that no other sentence has: one that says again what was recalled is not kept twice. */
export function sentence(start: string, random: Random): string {
  const word = (): string => Math.floor(random() * 36 ** 6).toString(36);
  return `${start} ${Array.from({ length: 8 }, word).join(' ')}.`;
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
