import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { urlOf } from '../listing.ts';
import type { DialectDescriptor } from '../../core/dialects/descriptor.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import { memberAt, sampleOf, textAt } from '../../core/dialects/samples.ts';
import { DEMO_MODEL } from './demo-client.ts';

/**
 * The stand-in provider of `svc demo`. It answers a question from the texts of the same request and
 * remembers nothing, so a right answer proves that svc sent it the fact. It speaks all three
 * dialects.
 */
export interface DemoProvider {
  readonly url: string;
  /** The last request: what left for the provider. */
  received(): ReceivedRequest;
  stop(): Promise<void>;
}

export interface ReceivedRequest {
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export async function startDemoProvider(): Promise<DemoProvider> {
  let last: ReceivedRequest = { headers: {}, body: undefined };
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const body: unknown = JSON.parse(await text(request));
      last = { headers: request.headers, body };
      answer(request.url ?? '', body, response);
    };
    serve().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  const url = urlOf({ host: address.address, port: address.port });
  return { url, received: () => last, stop: () => stopServer(server) };
}

function answer(path: string, body: unknown, response: ServerResponse): void {
  const dialect = DIALECT_DESCRIPTORS.find((it) => it.modelPath === path);
  if (dialect === undefined) {
    response.writeHead(404).end();
    return;
  }
  const reply = answerFrom(textsIn(sampleOf(dialect.name).newestMessage(body)));
  if (memberAt(body, 'stream') === true) sendEvents(response, dialect, reply);
  else sendJson(response, sampleOf(dialect.name).answer(DEMO_MODEL, reply));
}

/** The line that shares most words with the question, when it shares enough to be about it. */
function answerFrom(texts: readonly string[]): string {
  const lines = texts.flatMap((it) => it.split('\n'));
  const question = lines.find((line) => line.includes('?'));
  if (question === undefined) return 'Noted.';
  const asked = wordsOf(question);
  let best = { line: '', shared: 0 };
  for (const line of lines) {
    if (line.includes('?')) continue;
    const shared = [...wordsOf(line)].filter((word) => asked.has(word)).length;
    if (shared > best.shared) best = { line, shared };
  }
  // Two shared words can be chance; a line about the matter shares its subject and more.
  if (best.shared < 3) return 'I do not know: nothing in this request says it.';
  return `This request says: ${best.line.replace(/^- /, '')}`;
}

function wordsOf(line: string): ReadonlySet<string> {
  return new Set(line.toLowerCase().match(/[a-z]{4,}/g));
}

/** Every text in a message, whether its content is a string or a list of parts. */
export function textsIn(message: unknown): readonly string[] {
  const content = memberAt(message, 'content');
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.map((part) => textAt(part, 'text'));
}

function sendJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, dialect: DialectDescriptor, reply: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const sample = sampleOf(dialect.name);
  for (const event of sample.events(DEMO_MODEL, reply.match(/\S+\s*/g) ?? [])) {
    const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(sample.streamEnd);
}

async function stopServer(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
