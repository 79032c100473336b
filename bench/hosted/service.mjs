/**
 * The built service as a target of the bench: made by `svc-service init`, managed over its console as
 * an operator does. Its provider speaks TLS, because a service sends credentials no other way; so the
 * other targets reach theirs by TLS too.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection, encodeRequest } from '../lib/connection.mjs';
import { PROVIDER_KEY } from '../lib/targets.mjs';

export const PROVIDER_NAME = 'models.bench.test';
const STYLES = ['anthropic_messages', 'openai_chat_completions', 'openai_responses'];
/** Every limit is counted, and none is met. */
const LIMITS = {
  requests_per_minute: 1e9,
  requests_burst: 1e9,
  input_tokens_per_minute: 1e9,
  concurrent_requests: 1e6,
  memory_calls_per_minute: 1e9,
  tokens_per_day: 1e12,
  tokens_per_month: 1e12,
};

export class HostedService {
  host = '127.0.0.1';
  dialects = ['messages', 'chat', 'responses'];
  headers = {};
  command = process.execPath;
  #bin;
  #home;
  #tls;
  #token;
  #console;

  /** `tls`: { port, ca } of the provider; `servers`: { database, redis }, addresses in place of its own file. */
  constructor({ port, folder, bin, tls, name = 'hosted', servers }) {
    this.name = name;
    this.port = port;
    this.#bin = bin;
    this.#home = join(folder, `${name}-home`);
    this.#tls = tls;
    this.args = [bin, 'start', '--log', 'off'];
    this.env = {
      HOME: this.#home,
      SVC_CONFIG_HOME: join(this.#home, 'config'),
      SVC_DATA_HOME: join(this.#home, 'data'),
      XDG_CACHE_HOME: join(this.#home, 'cache'),
      NODE_EXTRA_CA_CERTS: tls.ca,
      NODE_OPTIONS: `--require ${join(import.meta.dirname, 'lookup.cjs')}`,
      BENCH_PROVIDER_NAME: PROVIDER_NAME,
      ...(servers === undefined
        ? {}
        : { SVC_DATABASE_URL: servers.database, SVC_REDIS_URL: servers.redis }),
    };
  }

  /** The database, while no service runs on it. */
  get database() {
    return join(this.folder, 'service.db');
  }

  init() {
    mkdirSync(this.#home, { recursive: true, mode: 0o700 });
    const args = [this.#bin, 'init', '--port', String(this.port), '--json'];
    const env = { PATH: process.env.PATH, ...this.env };
    if (env.SVC_DATABASE_URL !== undefined) {
      execFileSync(this.command, [this.#bin, 'migrate'], { env, stdio: 'ignore' });
    }
    const made = JSON.parse(
      execFileSync(this.command, args, { env, stdio: ['ignore', 'pipe', 'ignore'] }),
    );
    this.folder = made.folder;
    this.#token = made.operatorToken;
    const file = join(this.folder, 'service.json');
    const settings = JSON.parse(readFileSync(file, 'utf8'));
    const egress = { ports: [this.#tls.port], allow: ['127.0.0.0/8'] };
    writeFileSync(file, JSON.stringify({ ...settings, egress }), { mode: 0o600 });
  }

  /** A call of the console; throws for every answer but a 2xx. */
  async ask(method, path, { body, headers = {}, connection } = {}) {
    const parts = [];
    this.#console ??= new Connection(this);
    const request = encodeRequest({
      host: `${this.host}:${this.port}`,
      path: `/v1/svc/console/${path}`,
      method,
      headers: { authorization: `Bearer ${this.#token}`, ...headers },
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    });
    const answer = await (connection ?? this.#console).request(request, {
      onData: (bytes) => parts.push(Buffer.from(bytes)),
    });
    const text = Buffer.concat(parts).toString();
    if (answer.failure !== undefined || answer.status >= 300) {
      throw new Error(`${method} ${path}: ${answer.status} ${answer.failure ?? ''} ${text}`);
    }
    return text === '' ? {} : JSON.parse(text);
  }

  /** The tenant that the bench measures with: all dialects, all limits counted. Gives its key. */
  async furnish() {
    await this.ask('POST', 'plans', { body: { name: 'bench', limits: LIMITS } });
    await this.ask('PATCH', 'tenants/default', { body: { plan: 'bench' } });
    for (const style of STYLES) await this.addProvider('default', style);
    return this.addKey('default');
  }

  async addProvider(tenant, style, connection) {
    const body = {
      name: style.replaceAll('_', '-'),
      kind: 'custom',
      api_style: style,
      base_url: `https://${PROVIDER_NAME}:${this.#tls.port}`,
      credential: PROVIDER_KEY,
      default_model: 'bench-model',
      allowed_models: ['bench-model'],
    };
    await this.ask('POST', 'providers', { body, headers: { 'x-svc-tenant': tenant }, connection });
  }

  async addKey(tenant, connection) {
    const body = { name: 'bench', scopes: ['read', 'write', 'receipt:read'] };
    const headers = { 'x-svc-tenant': tenant };
    return (await this.ask('POST', 'keys', { body, headers, connection })).secret;
  }

  /** Its connections end with it. */
  forget() {
    this.#console?.close();
    this.#console = undefined;
  }
}

/** The same process asked with another header: a row of its own in the tables. */
export function modeOf(service, { name, key, mode }) {
  return {
    name,
    host: service.host,
    port: service.port,
    dialects: service.dialects,
    headers: {
      authorization: `Bearer ${key}`,
      ...(mode === undefined ? {} : { 'x-svc-memory-mode': mode }),
    },
    get process() {
      return service.process;
    },
  };
}
