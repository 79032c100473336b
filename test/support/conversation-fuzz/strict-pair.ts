import type { Dialect } from '../../../src/core/conversation/dialect.ts';
import type { WireItem } from '../dialect-wire.ts';
import { writeCompletion } from '../scripted-provider/chat-completions.ts';
import { errorBodyOf } from '../scripted-provider/faults.ts';
import { type Block, writeMessage } from '../scripted-provider/messages.ts';
import { writeResponse } from '../scripted-provider/responses.ts';
import type { AnswerTerms, WrittenAnswer } from '../scripted-provider/scripted-answer.ts';
import type { Reply, SeenRequest } from '../story.ts';
import type { Accepted, Judgement, Lost, ModelRequest } from '../strict-provider/judgement.ts';
import { strictSettings } from '../strict-provider/settings.ts';
import {
  StrictProvider,
  causedBetween,
  modelRequest,
  sealBoth,
} from '../strict-provider/strict-provider.ts';
import type { Step } from './steps.ts';

/**
 * Two strict providers: the one behind svc gets what svc forwards, the other one is shown what the client
 * sent. What only the first one refuses or drops was caused by svc.
 */
export class StrictPair {
  readonly direct: StrictProvider;
  readonly through: StrictProvider;
  #request: { readonly judgement: Judgement; readonly text: string } | undefined;
  #judgements: Judgement[] = [];
  #thoughts: readonly WireItem[] = [];

  constructor({ account, isStrictest }: Omit<Extract<Step, { kind: 'provider' }>, 'kind'>) {
    const readings = isStrictest ? STRICTEST : {};
    const settings = strictSettings({ account, readings });
    this.direct = new StrictProvider(settings);
    this.through = new StrictProvider(settings);
  }

  /** Before the client sends: the request directly, and the text of the answer to it. */
  expect(request: ModelRequest, text: string): void {
    this.#request = { judgement: this.direct.judge(request), text };
    this.#judgements = [];
    this.#thoughts = [];
  }

  /** The answer to what svc forwarded, or to what the client sent itself. */
  reply(seen: SeenRequest): Reply {
    const json: unknown = JSON.parse(seen.body.toString());
    const request = modelRequest(seen.path, seen.headers, json);
    if (request === undefined || this.#request === undefined) throw new Error('not expected');
    const judgement = this.through.judge(request);
    this.#judgements.push(judgement);
    if (judgement.kind === 'refused') {
      const { status, message } = judgement.refusal;
      return jsonReply(status, errorBodyOf(request.dialect, status, message));
    }
    if (request.isCount) return jsonReply(200, { input_tokens: 7 });
    const terms: AnswerTerms = {
      ...pick(judgement),
      seal: (output) => {
        const sealed = sealBoth(this.#request?.judgement ?? judgement, judgement)(output);
        this.#thoughts = sealed.filter(isThought) as readonly WireItem[];
        return sealed;
      },
    };
    const { whole, events } = written(request.dialect, json, this.#request.text, terms);
    if ((json as { stream?: boolean }).stream !== true) return jsonReply(200, whole);
    const headers = { 'content-type': 'text/event-stream' };
    return { status: 200, headers, body: events.join('') };
  }

  /** Of the newest answer, as the client sends it back. */
  get thoughts(): readonly WireItem[] {
    return this.#thoughts;
  }

  /** The client would have been refused without svc too: it edited its own history. */
  get isRefusedDirectly(): boolean {
    return this.#request?.judgement.kind === 'refused';
  }

  get isRefused(): boolean {
    return this.#judgements.at(-1)?.kind === 'refused';
  }

  /** A form of the last request at least. */
  get hasRefused(): boolean {
    return this.#judgements.some(({ kind }) => kind === 'refused');
  }

  /** What the last request lost, in either way. */
  get lost(): readonly Lost[] {
    return this.#judgements.flatMap((it) => (it.kind === 'accepted' ? it.lost : []));
  }

  /** What svc caused, without the blocks in `except`. */
  caused(except: ReadonlySet<string>): readonly string[] {
    const direct = this.#request?.judgement;
    if (direct === undefined) return [];
    return this.#judgements.flatMap((judgement) =>
      causedBetween(
        direct,
        judgement.kind === 'refused'
          ? judgement
          : { ...judgement, lost: judgement.lost.filter(({ seal }) => !except.has(seal)) },
      ),
    );
  }
}

/** The readings under which most counts as a change. */
const STRICTEST = {
  stringIsOneBlock: false,
  toolOrderCounts: true,
  effortCounts: true,
  earlierReasoningCounts: true,
};

function pick({ usage, transformations }: Accepted): AnswerTerms {
  return { usage, transformations };
}

function jsonReply(status: number, body: object): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Claude and GPT think, the model of another maker does not. */
function written(dialect: Dialect, json: unknown, text: string, terms: AnswerTerms): WrittenAnswer {
  const { model } = json as { model: string };
  switch (dialect) {
    case 'anthropic_messages': {
      const thinking: Block = { type: 'thinking', thinking: 'I consider it.', signature: '' };
      const thinks = model.startsWith('claude');
      return writeMessage(json, [...(thinks ? [thinking] : []), { type: 'text', text }], terms);
    }
    case 'openai_responses': {
      const id = Math.random().toString(36).slice(2);
      const reasoning = {
        type: 'reasoning' as const,
        id: `rs_${id}`,
        summary: [{ type: 'summary_text' as const, text: 'I consider it.' }] as const,
        encrypted_content: '',
      };
      const content = [{ type: 'output_text' as const, text, annotations: [] }] as const;
      const message = {
        type: 'message' as const,
        id: `msg_${id}`,
        role: 'assistant',
        status: 'completed',
        content,
      };
      return writeResponse(json, [...(model.startsWith('gpt') ? [reasoning] : []), message], terms);
    }
    case 'openai_chat_completions':
      return writeCompletion(json, { text, calls: [], reasoning: '' }, terms);
  }
}

function isThought(part: object): boolean {
  return 'type' in part && (part.type === 'thinking' || part.type === 'reasoning');
}
