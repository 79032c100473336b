import { listField } from '../scripted-provider/loose-json.ts';
import type { Accepted, Judgement } from './judgement.ts';
import type { StrictProvider } from './strict-provider.ts';

/** A conversation of a test with the strict provider: each answer thinks, and goes back as it came. */

export type Item = Readonly<Record<string, unknown>>;

export interface Request {
  readonly model: string;
  readonly system?: unknown;
  readonly tools?: unknown;
  readonly thinking?: unknown;
  readonly messages: readonly Item[];
}

export const BETA = 'thinking-binding-controls-2026-08-01';

export function judgeMessages(
  provider: StrictProvider,
  json: Request | Readonly<Record<string, unknown>>,
  { betas = [], isCount = false }: { betas?: readonly string[]; isCount?: boolean } = {},
): Judgement {
  return provider.judge({ dialect: 'anthropic_messages', isCount, betas, json });
}

/** The request with the provider's answer to it, and with a further prompt. */
export function goOn(
  provider: StrictProvider,
  request: Request,
  answer: readonly Item[] = [thinking(), text(`answer ${request.messages.length}`)],
): Request {
  const content = accepted(judgeMessages(provider, request)).seal(answer);
  return withMessages(request, { role: 'assistant', content }, user('and now?'));
}

export function withMessages(request: Request, ...more: readonly Item[]): Request {
  return { ...request, messages: [...request.messages, ...more] };
}

export function accepted(judgement: Judgement): Accepted {
  if (judgement.kind === 'refused') throw new Error(judgement.refusal.message);
  return judgement;
}

/** The message of the refusal, or what was lost. */
export function outcome(judgement: Judgement): string | readonly string[] {
  if (judgement.kind === 'refused') return judgement.refusal.message;
  return judgement.lost.map(({ path, reason, isAllowed }) =>
    [isAllowed ? 'allowed' : 'dropped', reason, path].join(' '),
  );
}

export function user(content: unknown): Item {
  return { role: 'user', content };
}

export function text(words: string): Item {
  return { type: 'text', text: words };
}

export function thinking(words = 'I think.'): Item {
  return { type: 'thinking', thinking: words, signature: '' };
}

/** The request with one message changed. */
export function edited(request: Request, at: number, change: (message: Item) => Item): Request {
  const messages = request.messages.map((message, index) =>
    index === at ? change(message) : message,
  );
  return { ...request, messages };
}

export function withoutThinking(message: Item): Item {
  const content = listField(message, 'content').filter(
    (block) => (block as Item)['type'] !== 'thinking',
  );
  return { ...message, content };
}
