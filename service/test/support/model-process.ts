import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { runServiceHere, tempFolder } from '../../../test/support/cli.ts';
import { DIALECTS } from '../../../test/support/dialect-wire.ts';
import { callService, type ServiceAnswer } from './memory-service.ts';
import { runServiceWith, type ServiceProcess } from './service-process.ts';
import { type RecordingProvider, startRecordingProvider } from '../../../test/support/story.ts';

/**
 * The built service as a process of its own, with model traffic: tenants, providers, keys, and one
 * recording provider behind all of them. It may be killed and started again.
 */

export interface ModelHome {
  readonly home: string;
  /** Settings, database and journals of the service. */
  readonly folder: string;
  readonly provider: RecordingProvider;
  readonly token: string;
  /** The address at which providers are added. */
  readonly baseUrl: string;
  start(...flags: string[]): Promise<ServiceProcess>;
  /** For a start that a test does not wait for. */
  readonly environment: Readonly<Record<string, string>>;
  svc(...words: string[]): ReturnType<typeof runServiceHere>;
}

/** The name of every provider: it resolves to this machine without any set-up. */
const NAME = 'localhost';
/** Without one, a service leaves no tool output out. */
const PUBLIC_URL = 'https://svc.example';

export interface ModelHomeOptions {
  /** Variables of every command, beside the folder and the provider's certificate. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Further settings of service.json. */
  readonly settings?: object;
}

/** `databaseUrl`: of an empty PostgreSQL, instead of a file in the folder. */
export async function initModelHome(
  databaseUrl?: string,
  { environment: more = {}, settings: moreSettings = {} }: ModelHomeOptions = {},
): Promise<ModelHome> {
  const home = tempFolder();
  const folder = join(home, 'svc');
  const certificate = makeCertificate(NAME);
  const ca = join(home, 'ca.pem');
  writeFileSync(ca, certificate.cert);
  const provider = await startRecordingProvider(certificate);
  const { port } = new URL(provider.url);
  const environment = {
    SVC_SERVICE_HOME: folder,
    NODE_EXTRA_CA_CERTS: ca,
    // No test asks the public catalog.
    SVC_CATALOG_URL: 'off',
    ...(databaseUrl === undefined ? {} : { SVC_DATABASE_URL: databaseUrl }),
    ...more,
  };
  const svc: ModelHome['svc'] = (...words) => runServiceHere(words, { home, env: environment });
  if (databaseUrl !== undefined) await svc('migrate');
  const made = await svc('init', '--port', '0', '--json');
  if (made.code !== 0) throw new Error(made.stderr);
  const file = join(folder, 'service.json');
  const settings = JSON.parse(readFileSync(file, 'utf8')) as object;
  const egress = { ports: [Number(port)], allow: ['127.0.0.0/8'] };
  writeFileSync(
    file,
    JSON.stringify({ ...settings, publicUrl: PUBLIC_URL, ...moreSettings, egress }),
  );
  return {
    home,
    folder,
    provider,
    token: String((JSON.parse(made.stdout) as { operatorToken: unknown }).operatorToken),
    baseUrl: `https://${NAME}:${port}`,
    environment,
    start: (...flags) => runServiceWith(home, environment, ...flags),
    svc,
  };
}

export interface ConsoleCallOptions {
  readonly tenant?: string;
  /** The version that the caller has seen. */
  readonly ifVersion?: number;
}

export interface ConsoleCaller {
  (call: string, body?: unknown, options?: ConsoleCallOptions): Promise<ServiceAnswer>;
}

/** Calls of the console as the operator, such as `POST keys`; a refusal is an error here. */
export function consoleOf({ url }: Pick<ServiceProcess, 'url'>, token: string): ConsoleCaller {
  return async (call, body, { tenant, ifVersion } = {}) => {
    const [method = '', path = ''] = call.split(' ');
    const answer = await callService(url, `/v1/svc/console/${path}`, {
      key: token,
      method,
      headers: {
        ...(tenant === undefined ? {} : { 'x-svc-tenant': tenant }),
        ...(ifVersion === undefined ? {} : { 'if-match': `"${ifVersion}"` }),
      },
      ...(body === undefined ? {} : { body }),
    });
    if (answer.status < 300) return answer;
    throw new Error(`${call}: ${answer.status} ${answer.text}`);
  };
}

export function providerBody(dialect: Dialect, baseUrl: string, more: object = {}): object {
  return {
    name: `p-${DIALECTS.indexOf(dialect)}`,
    kind: 'custom',
    api_style: dialect,
    base_url: baseUrl,
    credential: `sk-provider-${randomBytes(12).toString('hex')}`,
    default_model: 'm',
    allowed_models: ['*'],
    ...more,
  };
}
