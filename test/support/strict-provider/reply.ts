import type { Dialect } from '../../../src/core/conversation/view.ts';
import { writeCompletion } from '../scripted-provider/chat-completions.ts';
import { errorBodyOf } from '../scripted-provider/faults.ts';
import { type Block, writeMessage } from '../scripted-provider/messages.ts';
import { type OutputItem, writeResponse } from '../scripted-provider/responses.ts';
import { randomId } from '../scripted-provider/script.ts';
import type { AnswerTerms, WrittenAnswer } from '../scripted-provider/scripted-answer.ts';
import type { Reply } from '../story.ts';
import type { Judgement, ModelRequest } from './judgement.ts';

/** What a strict provider says over HTTP: its refusal, or thinking and a text. `seal` replaces its own. */
export function strictReply(
  { dialect, isCount, json }: ModelRequest,
  judgement: Judgement,
  answer: StrictAnswer,
): Reply {
  if (judgement.kind === 'refused') {
    const { status, message } = judgement.refusal;
    return jsonReply(status, errorBodyOf(dialect, status, message));
  }
  if (isCount) return jsonReply(200, { input_tokens: 7 });
  const { usage, transformations } = judgement;
  const terms = { usage, transformations, seal: answer.seal ?? judgement.seal };
  const { whole, events } = written(dialect, json, { ...answer, terms });
  if ((json as { stream?: boolean }).stream !== true) return jsonReply(200, whole);
  const reply = { status: 200, headers: { 'content-type': 'text/event-stream' } };
  if (answer.endsAfter === undefined) return { ...reply, body: events.join('') };
  const { words, by } = answer.endsAfter;
  const body = events.slice(0, 1 + events.findIndex((event) => event.includes(words))).join('');
  // The rest of an answer that the client stopped would come.
  return by === 'client'
    ? { ...reply, body, hangs: true }
    : { ...reply, body, cutAfter: body.length };
}

/**
 * How the thinking of an answer looks: one block, two with a text between them, one whose text is empty (the
 * default of Opus 5.5, whats-new-opus-5-5, 2026-09), or one that nobody but the provider can read.
 */
export type Thinks = 'once' | 'twice' | 'empty' | 'redacted';

export interface StrictAnswer {
  readonly text: string;
  readonly thinks?: Thinks;
  /** The provider has compacted the history, and says so in front of the answer. */
  readonly compacts?: boolean;
  /** A stream ends behind the event that has these words. */
  readonly endsAfter?: { readonly words: string; readonly by: 'provider' | 'client' } | undefined;
  readonly seal?: NonNullable<AnswerTerms['seal']>;
}

function jsonReply(status: number, body: object): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Claude and GPT think, the model of another maker does not. */
function written(
  dialect: Dialect,
  json: unknown,
  {
    text,
    terms,
    thinks = 'once',
    compacts = false,
  }: StrictAnswer & { readonly terms: AnswerTerms },
): WrittenAnswer {
  const { model } = json as { model: string };
  switch (dialect) {
    case 'anthropic_messages': {
      const compaction: Block = { type: 'compaction', content: 'They spoke about walruses.' };
      const thoughts = model.startsWith('claude') ? CLAUDE_THOUGHTS[thinks] : [];
      const before = compacts ? [compaction, ...thoughts] : thoughts;
      return writeMessage(json, [...before, { type: 'text', text }], terms);
    }
    case 'openai_responses': {
      const lead =
        thinks === 'twice'
          ? [reasoning(), messageItem('I look first.'), reasoning()]
          : [reasoning()];
      const output = [...(model.startsWith('gpt') ? lead : []), messageItem(text)];
      return writeResponse(json, output, terms);
    }
    case 'openai_chat_completions':
      return writeCompletion(json, { text, calls: [], reasoning: '' }, terms);
  }
}

const THOUGHT: Block = { type: 'thinking', thinking: 'I consider it.', signature: '' };

const CLAUDE_THOUGHTS: Readonly<Record<Thinks, readonly Block[]>> = {
  once: [THOUGHT],
  twice: [THOUGHT, { type: 'text', text: 'I look first.' }, THOUGHT],
  empty: [{ ...THOUGHT, thinking: '' }],
  redacted: [{ type: 'redacted_thinking', data: '' }],
};

function reasoning(): OutputItem {
  const summary = [{ type: 'summary_text' as const, text: 'I consider it.' }] as const;
  return { type: 'reasoning', id: randomId('rs_'), summary, encrypted_content: '' };
}

function messageItem(text: string): OutputItem {
  const content = [{ type: 'output_text' as const, text, annotations: [] }] as const;
  const item = {
    type: 'message' as const,
    id: randomId('msg_'),
    role: 'assistant',
    status: 'completed',
  };
  return { ...item, content };
}

const THOUGHTS: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking', 'reasoning']);

export function isThought(part: object): boolean {
  return 'type' in part && THOUGHTS.has(part.type);
}
