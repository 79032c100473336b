import { parseJson } from '../../../src/core/bytes/json-fields.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { contractProblem } from './contract-answers.ts';
import { openConsole, type OpenedConsole } from './console.ts';
import { DIALECTS, PATHS, promptOf } from '../../../test/support/dialect-wire.ts';
import type { KeyOptions, TestServiceOptions } from './memory-service.ts';
import { ask, type ClientAnswer, pause } from '../../../test/support/sockets.ts';
import {
  bytesOf,
  type RecordingProvider,
  startRecordingProvider,
} from '../../../test/support/story.ts';
import { FIRST, TestMasterKeys } from './test-vault.ts';

/** A service with a provider for each dialect, which writes down what reaches it. */

export const HOST = 'models.provider.test';
export const PROVIDER_SECRET = 'sk-CANARY-provider-91c2';
export const MODEL = 'm';

let certificate: ReturnType<typeof makeCertificate> | undefined;

/** The certificate of every provider here. */
export function providerCertificate(): ReturnType<typeof makeCertificate> {
  return (certificate ??= makeCertificate(HOST));
}

export interface ModelService extends OpenedConsole {
  readonly provider: RecordingProvider;
  readonly port: number;
  /** Adds a provider of a tenant; some members may be others. */
  readonly addProvider: (dialect: Dialect, more?: object, tenant?: string) => Promise<string>;
  readonly makeKey: (options?: KeyOptions) => Promise<string>;
  readonly send: (
    dialect: Dialect,
    body: object | string | Buffer,
    options: SendOptions,
  ) => Promise<ClientAnswer>;
}

export interface SendOptions {
  readonly key: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly method?: string;
}

export async function openModelService(options: TestServiceOptions = {}): Promise<ModelService> {
  const own = providerCertificate();
  const provider = await startRecordingProvider(own);
  const { port } = new URL(provider.url);
  const opened = await openConsole({
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    masterKeys: new TestMasterKeys(FIRST),
    egress: { ports: [Number(port)], allow: ['127.0.0.0/8'] },
    trust: {
      ca: own.cert,
      resolve: (_name, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
    },
    ...options,
  });
  await opened.ask('POST vault/keys', { key_id: FIRST });
  const addProvider: ModelService['addProvider'] = async (dialect, more = {}, tenant) => {
    const body = {
      name: DIALECTS.indexOf(dialect) === 0 ? 'first' : `other-${DIALECTS.indexOf(dialect)}`,
      kind: 'custom',
      api_style: dialect,
      base_url: `https://${HOST}:${port}`,
      credential: PROVIDER_SECRET,
      default_model: MODEL,
      allowed_models: [MODEL],
      ...more,
    };
    const made = await opened.ask('POST providers', body, tenant === undefined ? {} : { tenant });
    if (made.status !== 201) throw new Error(made.text);
    return String(made.json.provider_id);
  };
  const { service } = opened;
  return {
    ...opened,
    provider,
    port: service.port,
    addProvider,
    makeKey: service.makeKey,
    send: async (dialect, body, { key, headers = {}, path = PATHS[dialect], method }) => {
      const answer = await ask(service.port, {
        path,
        ...(method === undefined ? {} : { method }),
        headers: [
          'authorization',
          `Bearer ${key}`,
          'content-type',
          'application/json',
          ...Object.entries(headers).flat(),
        ],
        body: bytesOf(body),
      });
      checkAnswer(answer, { method: method ?? 'POST', path });
      return answer;
    },
  };
}

/** Throws for an answer that the published contract does not know. */
export function checkAnswer(
  { status, headers, body, isCut }: ClientAnswer,
  asked: { readonly method: string; readonly path: string },
): void {
  if (isCut) return;
  const text = body.toString();
  const isJson = headers['content-type'] === 'application/json';
  const json = isJson ? parseJson(text) : undefined;
  const problem = contractProblem({ ...asked, status, headers, text, json });
  if (problem !== undefined) throw new Error(problem);
}

/** The code, the id of the receipt and the message of an error, in whichever dialect it came. */
export function errorIn(answer: Pick<ClientAnswer, 'body'>) {
  const { error } = JSON.parse(answer.body.toString()) as { error: Record<string, unknown> };
  const svc = error['svc'] as { code?: string; receipt_id: string | null };
  return { code: error['code'] ?? svc.code, receipt: svc.receipt_id, message: error['message'] };
}

export type StoredReceipt = Readonly<Record<string, unknown>>;

/** A receipt once it is stored. */
export async function receiptIn(
  { service }: Pick<ModelService, 'service'>,
  id: unknown,
  tenant = 'default',
): Promise<StoredReceipt> {
  for (let tries = 0; tries < 200; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop
    const found = await service.store.of(tenant).findReceipt(String(id), AbortSignal.timeout(9000));
    if (found !== undefined) return JSON.parse(found.body) as StoredReceipt;
    // oxlint-disable-next-line no-await-in-loop
    await pause(50);
  }
  throw new Error('no receipt');
}

/** Whether a plain request is still answered. */
export async function isServing(
  { send }: Pick<ModelService, 'send'>,
  dialect: Dialect,
  key: string,
): Promise<boolean> {
  return (await send(dialect, promptOf(dialect, 'Are you well?'), { key })).status === 200;
}
