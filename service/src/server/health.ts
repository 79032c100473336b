import type { ServerResponse } from 'node:http';
import { DEFAULT_TENANT } from '../core/tenants.ts';
import type { Health } from '../../../src/core/memory-api/contract.ts';
import type { HealthPath } from './routes.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import type { ServingParts } from './parts.ts';

/**
 * Answers whether the process is alive and can serve. Anyone may ask, so the answer contains no name, count or version.
 * No provider is asked.
 */

/** Deadline of a check. A slower node should get no requests. */
const CHECK_MS = 2000;
/** How long a result is reused. Anyone may ask, so this limits queries to the store. */
const FRESH_MS = 1000;

export class HealthCheck {
  readonly #parts: ServingParts;
  #checked: { readonly at: number; readonly answer: Promise<Health> } | undefined;

  constructor(parts: ServingParts) {
    this.#parts = parts;
  }

  async answer(outgoing: ServerResponse, path: HealthPath, isStopping: boolean): Promise<number> {
    const health = await this.#healthFor(path, isStopping);
    const isWell = health.status === 'ok';
    const body = JSON.stringify(health);
    outgoing.writeHead(isWell || path === '/health' ? 200 : 503, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // Clients with an open connection should connect to another node.
      ...(isStopping ? { connection: 'close' } : {}),
    });
    outgoing.end(body);
    return Buffer.byteLength(body);
  }

  async #healthFor(path: HealthPath, isStopping: boolean): Promise<Health> {
    if (path === '/livez') return { status: 'ok' };
    if (isStopping) return { status: 'shutting_down' };
    const now = this.#parts.clock.monotonic();
    if (this.#checked === undefined || now - this.#checked.at > FRESH_MS) {
      this.#checked = { at: now, answer: this.#check() };
    }
    return this.#checked.answer;
  }

  async #check(): Promise<Health> {
    const { vault, signer, receipts, limiter } = this.#parts;
    const [store, vaultCheck, signerCheck, journal, limits] = await Promise.all([
      this.#timed(() => this.#askStore()),
      this.#timed(() => vault.problem()),
      this.#timed(() => signer.problem()),
      this.#timed(async () => receipts.problem()),
      this.#timed(async () => {
        await limiter.ping();
        return undefined;
      }),
    ]);
    const checks = { store, vault: vaultCheck, signer: signerCheck, journal, limiter: limits };
    const isWell = Object.values(checks).every(({ status }) => status === 'ok');
    return { status: isWell ? 'ok' : 'fail', checks };
  }

  async #askStore(): Promise<undefined> {
    const patience = AbortSignal.timeout(CHECK_MS);
    await this.#parts.store.of(DEFAULT_TENANT).spaceState('default', patience);
    return undefined;
  }

  /** Runs a check within the deadline. The result does not say what is wrong, because anyone may ask. */
  async #timed(check: () => Promise<string | undefined>): Promise<HealthState> {
    const { clock } = this.#parts;
    const start = clock.monotonic();
    const problem = await withinDeadline(CHECK_MS, check).catch(() => 'failed');
    const ms = Math.round(clock.monotonic() - start);
    return { status: problem === undefined ? 'ok' : 'fail', ms };
  }
}

interface HealthState {
  readonly status: 'ok' | 'fail';
  readonly ms: number;
}
