import { randomBytes, randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { onTestFinished } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { recordBytes, recordOfText } from '../../../src/core/memory-api/canonical.ts';
import { contentDigest, type TextRole } from '../../../src/core/memory/reference.ts';
import {
  formatServiceKey,
  PUBLIC_BYTES,
  SECRET_BYTES,
} from '../../../src/core/memory-api/service-key.ts';
import { providersOf } from '../../../src/core/settings/catalog.ts';
import type { Scope } from '../../../src/core/memory-api/contract.ts';
import { hashKey } from '../../../src/core/memory-api/keys.ts';
import type { Trust } from '../../../src/adapters/network/pinned-connector.ts';
import { openModels } from '../../src/cli/compose-models.ts';
import { type Egress, NO_EGRESS } from '../../src/core/providers.ts';
import type { ShelfBounds } from '../../src/server/models/handler-shelf.ts';
import type { CallRow, ModelParts, ServiceLimits } from '../../src/server/parts.ts';
import { MemoryService, type TlsMaterial } from '../../src/server/server.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { ReceiptJournal } from '../../src/adapters/journals/receipt-journal.ts';
import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import type { Limiter } from '../../src/ports/limiter.ts';
import type { MasterKeys } from '../../src/ports/vault-store.ts';
import type { SafeLine } from '../../../src/ports/report.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { ChangeWatch } from '../../src/server/change-watch.ts';
import { withVault } from '../../src/server/signer.ts';
import { addKeyTo } from './service-control.ts';
import { contractProblem } from './contract-answers.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

/** A real memory service on a real socket, with a store of its own. */

export interface TestServiceOptions {
  readonly folder?: string;
  /** Instead of a file in the folder; it is closed with the service. */
  readonly store?: ServiceStore;
  readonly tls?: TlsMaterial;
  readonly limits?: Partial<ServiceLimits>;
  readonly pepper?: Uint8Array;
  readonly port?: number;
  readonly spaceBytesMax?: number;
  readonly recallMs?: number;
  /** The real one otherwise. */
  readonly clock?: Clock;
  readonly masterKeys?: MasterKeys;
  readonly limiter?: Limiter;
  readonly egress?: Egress;
  /** Of the ways to providers. */
  readonly trust?: Trust;
  /** Of the handlers of all keys. */
  readonly bounds?: ShelfBounds;
  /** Milliseconds that a provider may take for its head. */
  readonly providerHeadersMs?: number;
  /** Stands between the service and its store. */
  readonly wrapStore?: (store: ServiceStore) => ServiceStore;
  /** Bytes of the journal of receipts. */
  readonly journalBytesMax?: number;
}

export interface KeyOptions {
  readonly scopes?: readonly Scope[];
  readonly spaces?: readonly string[];
  readonly expiresAt?: number;
  readonly name?: string;
  readonly tenant?: string;
}

export interface TestService {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly store: ServiceStore;
  readonly pepper: Uint8Array;
  readonly models: ModelParts;
  /** Resolves when everything captured so far is in the store. */
  readonly flush: (withinMs?: number) => Promise<void>;
  readonly calls: CallRow[];
  readonly reports: SafeLine[];
  /** It reads when a test says so. */
  readonly changes: ChangeWatch;
  /** A whole key, good from now on. */
  readonly makeKey: (options?: KeyOptions) => Promise<string>;
  readonly renew: (tls: TlsMaterial) => void;
  readonly receipts: ReceiptJournal;
  readonly stop: (drainMs?: number) => Promise<void>;
}

export async function startMemoryService(options: TestServiceOptions = {}): Promise<TestService> {
  const { tls, limits, port = 0, spaceBytesMax } = options;
  const folder = options.folder ?? tempFolder();
  const pepper = options.pepper ?? randomBytes(32);
  const clock = options.clock ?? { now: () => Date.now(), monotonic: () => performance.now() };
  const calls: CallRow[] = [];
  const reports: SafeLine[] = [];
  const ownStore =
    options.store ??
    openServiceStore({
      folder,
      serves: true,
      creates: true,
      ...(spaceBytesMax === undefined ? {} : { spaceBytesMax }),
      report: (line) => reports.push({ code: line }),
    });
  const store = options.wrapStore?.(ownStore) ?? ownStore;
  const masterKeys = options.masterKeys ?? { find: async () => undefined };
  const { signer } = withVault({ store, pepper, masterKeys, clock, randomBytes });
  const receipts = new ReceiptJournal({
    folder,
    node: `node_${randomBytes(12).toString('hex')}`,
    version: '0.1.2',
    store,
    sign: (canonical) => signer.signTexts(canonical),
    now: () => clock.now(),
    report: (line) => reports.push({ code: line }),
    ...(options.journalBytesMax === undefined ? {} : { bytesMax: options.journalBytesMax }),
  });
  const egress = options.egress ?? NO_EGRESS;
  const changes = new ChangeWatch({ store, clock });
  const opened = openModels({
    folder,
    store,
    changes,
    egress,
    // A machine that runs many tests at once may need longer than a person should wait.
    recallMs: options.recallMs ?? 10_000,
    ...(options.providerHeadersMs === undefined ? {} : { headersMs: options.providerHeadersMs }),
    ...(options.trust === undefined ? {} : { trust: options.trust }),
    report: (line) => reports.push({ code: line }),
  });
  const service = new MemoryService({
    store,
    changes,
    models: { ...opened.models, ...(options.bounds && { bounds: options.bounds }) },
    receipts,
    pepper,
    limiter: options.limiter ?? new ProcessLimiter(clock),
    listCatalog: async () => providersOf({}),
    masterKeys,
    clock,
    newRequestId: () => `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`,
    randomBytes,
    report: (line) => reports.push(line),
    onCall: (row) => calls.push(row),
    version: '0.1.2',
    settings: { requestsPerMinute: null, isBehindProxy: false, egress, ...limits },
    host: '127.0.0.1',
    port,
    tls,
  });
  const address = await service.listen().catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const stop = async (drainMs = 0): Promise<void> => {
    await service.stop(drainMs);
    await opened.close();
    await receipts.close();
    await store.close();
  };
  onTestFinished(() => stop());
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${address.port}`,
    port: address.port,
    folder,
    store,
    pepper,
    receipts,
    models: opened.models,
    flush: (withinMs = 30_000) => opened.flush(withinMs),
    calls,
    reports,
    changes,
    makeKey: (given) => addKey(store, pepper, given),
    renew: (material) => service.renew(material),
    stop,
  };
}

export const ALL_SCOPES: readonly Scope[] = ['read', 'write', 'receipt:read'];

export async function addKey(
  store: ServiceStore,
  pepper: Uint8Array,
  { scopes = ALL_SCOPES, spaces, expiresAt, name = 'test', tenant = 'default' }: KeyOptions = {},
): Promise<string> {
  const key = formatServiceKey(randomBytes(PUBLIC_BYTES), randomBytes(SECRET_BYTES));
  await addKeyTo(store.of(tenant), {
    keyId: keyIdOf(key),
    name,
    hash: hashKey(pepper, key),
    scopes,
    createdAt: Date.now(),
    ...(spaces === undefined ? {} : { spaces }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });
  return key;
}

/** The public part of a key. */
export function keyIdOf(key: string): string {
  return key.split('_')[2] ?? '';
}

export interface ServiceAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // A test looks into answers of every shape.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

export interface CallOptions {
  readonly key?: string;
  readonly method?: string;
  /** A value is sent as JSON, a buffer or text as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The certificate to trust. */
  readonly ca?: string;
  readonly servername?: string;
}

/** One call on its own connection. Rejects an answer that the published contract does not know. */
export function callService(
  url: string,
  path: string,
  options: CallOptions = {},
): Promise<ServiceAnswer> {
  const { key, body, headers = {}, ca, servername = 'localhost' } = options;
  const bytes = bodyOf(body);
  const method = options.method ?? (bytes === undefined ? 'GET' : 'POST');
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${url}${path}`,
      {
        method,
        agent: false,
        ...(ca === undefined ? {} : { ca, servername }),
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(bytes === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': bytes.length }),
          ...headers,
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const isJson = incoming.headers['content-type'] === 'application/json';
          const answer = {
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text,
            json: isJson ? JSON.parse(text) : undefined,
          };
          const problem = contractProblem({ method, path, ...answer });
          if (problem === undefined) resolve(answer);
          else reject(new Error(problem));
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(bytes);
  });
}

function bodyOf(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** An item of a capture: one text, with its true digest. */
export function itemOf(said: string, role: TextRole = 'user', more: object = {}) {
  const record = recordOfText(role, said);
  const bytes = recordBytes(record) ?? Buffer.alloc(0);
  return {
    digest: contentDigest(bytes),
    bytes: bytes.length,
    record,
    observed_at: '2026-05-01T12:00:00.000Z',
    ...more,
  };
}
