import type { ServerResponse } from 'node:http';
import { DEFAULT_TENANT } from '../core/service/tenants.ts';
import type { Health } from '../core/memory-api/contract.ts';
import type { HealthPath } from '../core/service/routes.ts';
import type { ServiceParts } from './parts.ts';

/**
 * Says whether the process lives and can serve. Anyone may ask, so the answer holds nothing else:
 * no name, no count, no version. It never asks a provider.
 */

/** A store that takes longer is not one to send traffic to. */
const STORE_MS = 2000;
/** Everybody may ask; the store is asked once in so long at most. */
const FRESH_MS = 1000;

export class HealthCheck {
  readonly #parts: ServiceParts;
  #checked: { readonly at: number; readonly answer: Promise<Health> } | undefined;

  constructor(parts: ServiceParts) {
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
    const { clock, store } = this.#parts;
    const start = clock.monotonic();
    const patience = AbortSignal.timeout(STORE_MS);
    const isWell = await store
      .of(DEFAULT_TENANT)
      .spaceState('default', patience)
      .then(
        () => true,
        () => false,
      );
    const status = isWell ? 'ok' : 'fail';
    const ms = Math.round(clock.monotonic() - start);
    return { status, checks: { store: { status, ms } } };
  }
}
