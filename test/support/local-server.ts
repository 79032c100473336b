import { createHash } from 'node:crypto';
import { createBodyDecoder } from '../../src/adapters/encoding/body-decoder.ts';
import type { ProxySettings } from '../../src/core/settings/settings.ts';
import { LocalServer } from '../../src/local/server.ts';
import type { UiDoor } from '../../src/local/ui-door.ts';
import type { SafeLine } from '../../src/ports/report.ts';
import type { ClientRequest, Handler } from '../../src/proxy/dependencies.ts';
import { exchange, parseAnswer, type RawAnswer } from './raw-http.ts';

export const TOKEN = 'svc_local_test-token';

export const PROXY_SETTINGS: ProxySettings = {
  host: '127.0.0.1',
  port: 0,
  memoryMode: 'read-write',
  compressionMode: 'deterministic',
  inputBudget: 8_192,
  recalledTokensMax: 512,
  sessionBrief: true,
  recallQuietPercent: 65,
  secondLook: 'on',
  holdOut: false,
  hookCut: false,
  elisionEnabled: true,
  elisionKeepRounds: 4,
  elisionCaptureLimit: 8,
  cacheTtl: 'client',
  boundShortening: 'off',
  bodyBytesMax: 64 << 20,
  zstdBytesMax: 16 << 20,
  recallMs: 300,
  upstreamHeadersMs: 600_000,
  drainMs: 10_000,
  keepRequests: 0,
  relayPaths: [],
};

export interface TestServer {
  readonly server: LocalServer;
  readonly port: number;
  /** Requests that passed the gate, in order. */
  readonly seen: ClientRequest[];
  readonly reports: SafeLine[];
  /** Replaces the tokens that are valid. */
  setTokens(...tokens: string[]): void;
  /** One request with the given lines after the request line; Host is added unless there is one. */
  ask(request: TestRequest): Promise<RawAnswer>;
  close(): Promise<void>;
}

export interface TestRequest {
  readonly method?: string;
  readonly target?: string;
  readonly version?: string;
  /** Header lines. Default: the token and JSON. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}

export const AUTHORIZED = `Authorization: Bearer ${TOKEN}`;

export async function startServer(
  handler: Handler = answerOk,
  settings: Partial<ProxySettings> = {},
  ui?: UiDoor,
): Promise<TestServer> {
  const seen: ClientRequest[] = [];
  const reports: SafeLine[] = [];
  let digests = [digestOf(TOKEN)];
  const decoder = createBodyDecoder();
  let count = 0;
  const live = { ...PROXY_SETTINGS, ...settings };
  const server = new LocalServer({
    settings: () => live,
    tokenDigests: () => digests,
    decode: decoder.decode,
    handler: async (request, outgoing) => {
      seen.push(request);
      await handler(request, outgoing);
    },
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    ui: () => (ui === undefined ? undefined : Promise.resolve(ui)),
    newId: () => `req_${String((count += 1)).padStart(24, '0')}`,
    report: (line) => reports.push(line),
    version: '0.1.2',
    modeLimits: () => ({
      ...PROXY_SETTINGS,
      ...settings,
      supports: { read: true, write: true },
    }),
  });
  const { port } = await server.listen();
  return {
    server,
    port,
    seen,
    reports,
    setTokens: (...tokens) => {
      digests = tokens.map((token) => digestOf(token));
    },
    ask: async (request) => parseAnswer(await exchange(port, writeRequest(port, request))),
    close: async () => {
      await server.stop(0);
      await decoder.close();
    },
  };
}

/** `connection: close` is added, so that an answer ends with its connection. */
export function writeRequest(port: number, request: TestRequest): Buffer {
  const { method = 'POST', target = '/v1/messages', version = '1.1', body } = request;
  const lines = [...(request.headers ?? [AUTHORIZED, 'Content-Type: application/json'])];
  const names = lines.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
  if (!names.includes('host')) lines.unshift(`Host: 127.0.0.1:${port}`);
  if (!names.includes('connection')) lines.push('Connection: close');
  const bytes = Buffer.from(body ?? '');
  const isFramed = names.includes('content-length') || names.includes('transfer-encoding');
  if (body !== undefined && !isFramed) lines.push(`Content-Length: ${bytes.length}`);
  const head = `${[`${method} ${target} HTTP/${version}`, ...lines].join('\r\n')}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

const answerOk: Handler = async (_request, outgoing) => {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 });
  outgoing.end('{}');
};
