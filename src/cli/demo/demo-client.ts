import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { SseReader } from '../../core/answer/sse.ts';
import { CLIENT_HEADER } from '../../core/http/local-token.ts';
import { DEMO_CLIENT } from '../../core/request/clients.ts';
import type { DialectDescriptor } from '../../core/dialects/descriptor.ts';
import { sampleOf } from '../../core/dialects/samples.ts';

/** The model that the stand-in provider claims to be. */
export const DEMO_MODEL = 'stand-in';

/** The client of `svc demo`: each call is a new conversation of one message. */
export interface DemoCall {
  /** Address of the proxy. */
  readonly url: string;
  readonly localToken: string;
  readonly dialect: DialectDescriptor;
  readonly text: string;
  readonly isStreamed: boolean;
  readonly memoryMode: string;
}

export interface DemoAnswer {
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
}

// Everything is on this machine: a slower answer means a hang.
const ANSWER_MS = 10_000;
const EVENT_CHARS_MAX = 65_536;

/** Throws when there is no answer, or one that is not 200. */
export async function callModel(call: DemoCall): Promise<DemoAnswer> {
  const answer = await send(call);
  const body = await text(answer);
  if (answer.statusCode !== 200) {
    throw new Error(`The proxy answered ${answer.statusCode}: ${body}`);
  }
  const { dialect, isStreamed } = call;
  const said = isStreamed
    ? streamedText(dialect, body)
    : sampleOf(dialect.name).textOf(JSON.parse(body));
  return { text: said, headers: answer.headers };
}

async function send(call: DemoCall): Promise<IncomingMessage> {
  const body = JSON.stringify(
    sampleOf(call.dialect.name).request(DEMO_MODEL, call.text, call.isStreamed),
  );
  return new Promise((resolve, reject) => {
    const outgoing = request(`${call.url}${call.dialect.modelPath}`, {
      method: 'POST',
      // A connection of its own, so that nothing holds the proxy open when it is stopped.
      agent: false,
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: {
        authorization: `Bearer ${call.localToken}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        [CLIENT_HEADER]: DEMO_CLIENT,
        'x-svc-memory-mode': call.memoryMode,
      },
    });
    outgoing.on('response', resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function streamedText(dialect: DialectDescriptor, body: string): string {
  let said = '';
  const reader = new SseReader(
    ({ data }) => {
      if (data !== '[DONE]') said += sampleOf(dialect.name).pieceOf(JSON.parse(data));
    },
    { eventCharsMax: EVENT_CHARS_MAX },
  );
  reader.push(Buffer.from(body));
  return said;
}
