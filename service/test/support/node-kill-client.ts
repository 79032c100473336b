import { setTimeout as sleep } from 'node:timers/promises';
import { type AnswerChoices, requestWith, said } from '../../../test/support/dialect-wire.ts';
import { type Random, sentence } from './kill-client.ts';
import { callService, itemOf } from './memory-service.ts';
import type { TwoNodes } from './two-nodes.ts';

/**
 * A client of two nodes of which one may die at any moment, and so may the engines under them. It asks
 * again and again, and knows what it was told.
 */

const DIALECT = 'anthropic_messages';
/** A client that is refused tries again, and not at once. */
const PAUSE_MS = 50;
const SAFE: ReadonlySet<string> = new Set(['durable', 'duplicate']);

export interface NodeKillClientOptions {
  readonly name: string;
  readonly key: string;
  readonly two: TwoNodes;
  readonly random: Random;
  readonly answers: Map<string, AnswerChoices>;
}

export class NodeKillClient {
  readonly #options: NodeKillClientOptions;
  readonly space: string;
  readonly key: string;
  /** Prompts and answers of requests whose answer came whole, and records that were captured. */
  readonly acknowledged: string[] = [];
  /** The model that each request names, which no other one does. */
  readonly sent: string[] = [];
  readonly statuses = new Map<number, number>();
  #captures = 0;

  constructor(options: NodeKillClientOptions) {
    this.#options = options;
    this.space = `project/nodes-${options.name}`;
    this.key = options.key;
  }

  async talk(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      // oxlint-disable-next-line no-await-in-loop -- One request after the other.
      const isAnswered = await (this.#options.random() < 0.7 ? this.#ask() : this.#capture());
      // oxlint-disable-next-line no-await-in-loop
      if (!isAnswered) await sleep(PAUSE_MS);
    }
  }

  /** Sends a conversation of one prompt. If its answer is lost, the client has seen nothing that must be kept. */
  async #ask(): Promise<boolean> {
    const { name, key, two, random, answers } = this.#options;
    const model = `kill-${name}-${this.sent.length}`;
    const prompt = sentence(`Note ${model}:`, random);
    const text = sentence(`Answer ${model}:`, random);
    answers.set(model, { text, isStreamed: random() < 0.5 });
    this.sent.push(model);
    const body = requestWith(DIALECT, [said('user', prompt)], { model });
    const headers = { 'x-svc-memory-space': this.space };
    const answer = await two.send(body, { key, headers }).catch(() => undefined);
    this.#count(answer?.status ?? 0);
    if (answer?.status !== 200 || answer.isCut) return false;
    this.acknowledged.push(prompt, text);
    return true;
  }

  async #capture(): Promise<boolean> {
    const { name, key, two, random } = this.#options;
    this.#captures += 1;
    const texts = [0, 1].map((at) => sentence(`Fact ${name} ${at}:`, random));
    const items = texts.map((text) => itemOf(text));
    const url = `http://127.0.0.1:${two.balancer.port}`;
    const body = { space: this.space, if_generation: 'new', items };
    const asked = {
      key,
      body,
      headers: { 'idempotency-key': `capture-${name}-${this.#captures}` },
    };
    const answer = await callService(url, '/v1/svc/memory/capture', asked).catch(() => undefined);
    this.#count(answer?.status ?? 0);
    if (answer?.status !== 200) return false;
    const results = answer.json.results as { state: string }[];
    this.acknowledged.push(...texts.filter((_, at) => SAFE.has(results[at]?.state ?? '')));
    return true;
  }

  #count(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }
}
