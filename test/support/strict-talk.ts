import type { Dialect } from '../../src/core/conversation/view.ts';
import { requestWith, said, type WireItem } from './dialect-wire.ts';
import { recordOf } from './records.ts';
import {
  type RecordingProvider,
  type SeenRequest,
  startRecordingProvider,
  startStory,
  type Story,
} from './story.ts';
import { StrictProvider } from './strict-provider/strict-provider.ts';
import { strictSettings } from './strict-provider/settings.ts';

/** A proxy in front of a strict provider, whose answers think. */

export const BINDING = 'claude-opus-5-5';
export const QUESTION = 'On which port does the staging database of the walrus shop listen?';
export const SECOND = 'Who owns the billing dashboard and its Grafana alerts?';
export const FACTS = [
  'The staging database of the walrus shop listens on port 6431.',
  'Marta owns the billing dashboard and its Grafana alerts.',
];

export interface StrictTalk {
  readonly provider: RecordingProvider;
  readonly strict: StrictProvider;
  readonly story: Story;
  /** Sends the items through svc, and gives back the answer's own item. */
  readonly ask: (items: readonly WireItem[], options?: AskOptions) => Promise<Asked>;
  /** The same without svc. */
  readonly direct: (items: readonly WireItem[], model?: string) => WireItem;
}

interface AskOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly model?: string;
  readonly path?: string;
}

interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly item: WireItem;
  /** What the provider got. */
  readonly sent: string;
}

const DIALECT: Dialect = 'anthropic_messages';
export const NAMED = { 'session-id': 'session-one' };

export async function startTalk(
  options: Partial<Parameters<typeof startStory>[0]> & { strict?: StrictProvider } = {},
): Promise<StrictTalk> {
  const strict = options.strict ?? new StrictProvider(strictSettings());
  const provider = options.provider ?? (await startRecordingProvider());
  provider.reply = (request) => replyOf(strict, request);
  const story = await startStory({ ...options, provider });
  const records = FACTS.map((text) => recordOf(text, { space: 'default', conversation: text }));
  await story.memory.capture(records, AbortSignal.timeout(30_000));
  const bodyOf = (items: readonly WireItem[], model = BINDING): WireItem =>
    requestWith(DIALECT, items, { model, thinking: { type: 'adaptive' } });
  return {
    provider,
    strict,
    story,
    ask: async (items, { headers = NAMED, model } = {}) => {
      const answer = await story.send(DIALECT, bodyOf(items, model), headers);
      const text = answer.body.toString();
      const sent = provider.seen.at(-1)?.body.toString() ?? '';
      return { status: answer.status, headers: answer.headers, text, item: itemOf(text), sent };
    },
    direct: (items, model) => {
      const json = JSON.stringify(bodyOf(items, model));
      const seen = { path: '/v1/messages', headers: [], body: Buffer.from(json) };
      return itemOf(replyOf(strict, seen).body);
    },
  };
}

let answers = 0;

function replyOf(strict: StrictProvider, { path, headers, body }: SeenRequest) {
  const json = JSON.parse(body.toString()) as WireItem;
  const isCount = path.includes('count_tokens');
  const betas = headers.flatMap((name, at) =>
    name.toLowerCase() === 'anthropic-beta' ? (headers[at + 1] ?? '').split(',') : [],
  );
  const judgement = strict.judge({ dialect: DIALECT, isCount, betas, json });
  const type = { 'content-type': 'application/json' };
  if (judgement.kind === 'refused') {
    const { message } = judgement.refusal;
    const error = { type: 'invalid_request_error', message };
    return { status: 400, headers: type, body: JSON.stringify({ type: 'error', error }) };
  }
  if (isCount) return { status: 200, headers: type, body: '{"input_tokens":1}' };
  answers += 1;
  const content = judgement.seal([
    { type: 'thinking', thinking: 'Hm.' },
    { type: 'text', text: `Answer number ${answers}.` },
  ]);
  const message = {
    id: `msg_${answers}`,
    type: 'message',
    role: 'assistant',
    model: json['model'],
    content,
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  return { status: 200, headers: type, body: JSON.stringify(message) };
}

function itemOf(text: string): WireItem {
  const { content } = JSON.parse(text) as { content?: unknown };
  return said('assistant', content ?? []);
}
