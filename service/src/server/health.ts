import type { ServerResponse } from 'node:http';
import { DEFAULT_TENANT } from '../core/tenants.ts';
import type { Health } from '../../../src/core/memory-api/contract.ts';
import type { HealthPath } from './routes.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import type { ServingParts } from './parts.ts';

/**
 * Says whether the process lives and can serve. Anyone may ask, so the answer holds nothing else:
 * no name, no count, no version. It never asks a provider.
 */

/** A part that takes longer is not one to send traffic to. */
const CHECK_MS = 2000;
/** Everybody may ask; the store is asked once in so long at most. */
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
      // Clients with an open connection should go elsewhere.
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
        await limiter.ping?.();
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

  /** The problem itself is for the log of the operator, not for everybody who asks. */
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
