import type { ServerResponse } from 'node:http';
import { DEFAULT_TENANT } from '../core/tenants.ts';
import type { Health } from '../../../src/core/memory-api/contract.ts';
import { describeFault } from '../../../src/http/faults.ts';
import type { HealthPath } from './routes.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import type { ServingParts } from './parts.ts';

/**
 * Answers whether the process is alive and can serve. Anyone may ask, so the answer contains only the states of the
 * checks and how long each took. No provider is asked.
 */

/** Deadline of a check. A slower node should get no requests. */
const CHECK_MS = 2000;
/** How long a result is reused. Anyone may ask, so this limits queries to the store. */
const FRESH_MS = 1000;

export class HealthCheck {
  readonly #parts: ServingParts;
  #checked: { readonly at: number; readonly answer: Promise<Health> } | undefined;
  /** The names of the checks that failed last time, so that only a change is logged; '' if none failed. */
  #failed = '';

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
    const { store, vault, signer, receipts, limiter } = this.#parts;
    const works: Readonly<Record<string, Check>> = {
      store: async (signal) => void (await store.of(DEFAULT_TENANT).spaceState('default', signal)),
      vault: () => vault.problem(),
      signer: () => signer.problem(),
      journal: async () => receipts.problem(),
      limiter: () => limiter.ping().then(() => undefined),
    };
    const results = await Promise.all(
      Object.entries(works).map(async ([name, work]) => ({ name, ...(await this.#timed(work)) })),
    );
    const failed = results.filter(({ problem }) => problem !== undefined);
    this.#log(Object.fromEntries(failed.map(({ name, problem = '' }) => [name, problem])));
    const checks = results.map(({ name, problem, ms }) => {
      return [name, { status: problem === undefined ? 'ok' : 'fail', ms }] as const;
    });
    return { status: failed.length === 0 ? 'ok' : 'fail', checks: Object.fromEntries(checks) };
  }

  /** Logs why the service is not ready, or that it is ready, if other checks fail than last time. */
  #log(problems: Readonly<Record<string, string>>): void {
    const failed = Object.keys(problems).join();
    if (failed === this.#failed) return;
    this.#failed = failed;
    this.#parts.report(failed === '' ? { code: 'READY' } : { code: 'NOT_READY', fields: problems });
  }

  /** Runs a check within the deadline. `problem` is for the log only, because anyone may read the answer. */
  async #timed(check: Check) {
    const { clock } = this.#parts;
    const start = clock.monotonic();
    const problem = await withinDeadline(CHECK_MS, check).catch((error: unknown) =>
      Object.values(describeFault(error)).join(' '),
    );
    return { problem, ms: Math.round(clock.monotonic() - start) };
  }
}

/** A part of the service that is asked whether it works. Resolves to what is wrong, or undefined. */
type Check = (signal: AbortSignal) => Promise<string | undefined>;
