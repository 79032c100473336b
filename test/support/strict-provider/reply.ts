import type { Dialect } from '../../../src/core/conversation/view.ts';
import { writeCompletion } from '../scripted-provider/chat-completions.ts';
import { errorBodyOf } from '../scripted-provider/faults.ts';
import { type Block, writeMessage } from '../scripted-provider/messages.ts';
import { writeResponse } from '../scripted-provider/responses.ts';
import type { AnswerTerms, WrittenAnswer } from '../scripted-provider/scripted-answer.ts';
import type { Reply } from '../story.ts';
import type { Judgement, ModelRequest } from './judgement.ts';

/** What a strict provider says over HTTP: its refusal, or thinking and a text. `seal` replaces its own. */
export function strictReply(
  { dialect, isCount, json }: ModelRequest,
  judgement: Judgement,
  { text, seal }: { readonly text: string; readonly seal?: NonNullable<AnswerTerms['seal']> },
): Reply {
  if (judgement.kind === 'refused') {
    const { status, message } = judgement.refusal;
    return jsonReply(status, errorBodyOf(dialect, status, message));
  }
  if (isCount) return jsonReply(200, { input_tokens: 7 });
  const { usage, transformations } = judgement;
  const terms = { usage, transformations, seal: seal ?? judgement.seal };
  const { whole, events } = written(dialect, json, { text, terms });
  if ((json as { stream?: boolean }).stream !== true) return jsonReply(200, whole);
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: events.join('') };
}

function jsonReply(status: number, body: object): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** Claude and GPT think, the model of another maker does not. */
function written(
  dialect: Dialect,
  json: unknown,
  { text, terms }: { readonly text: string; readonly terms: AnswerTerms },
): WrittenAnswer {
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

export function isThought(part: object): boolean {
  return 'type' in part && (part.type === 'thinking' || part.type === 'reasoning');
}
