import type { Pool } from 'undici';
import { parseUpstreamBase } from '../../../../src/core/http/upstream-target.ts';
import { USUAL_PORTS } from '../../core/providers.ts';
import type { UpstreamSettings } from '../../../../src/core/settings/settings.ts';
import type {
  LinkedProvider,
  ProviderLinks,
  WholeAnswer,
  WholeQuestion,
} from '../../ports/provider-links.ts';
import type { Upstream } from '../../../../src/ports/upstream.ts';
import type { Network } from '../../../../src/adapters/network/addresses.ts';
import type { Trust } from '../../../../src/adapters/network/pinned-connector.ts';
import { wholeBody } from '../../../../src/adapters/network/whole-answer.ts';
import {
  createPool,
  isRefusedBase,
  upstreamOver,
} from '../../../../src/adapters/network/undici-upstream.ts';

/**
 * Connections from a service to providers: TLS only, to public addresses and the networks that the operator allowed,
 * without a network proxy. Presets of one origin share a pool. Each version of a custom provider has its own pool, so
 * no tenant can get a connection that leads to another tenant's gateway.
 */

interface EgressOptions {
  readonly headersMs: number;
  /** Ports that are allowed in addition to the usual ones. */
  readonly ports: readonly number[];
  readonly networks: readonly Network[];
  readonly trust?: Trust;
}

/**
 * Bound on a pool's connections, equal to the bound on the service's clients. All tenants may use one preset's origin,
 * and with fewer connections a tenant's long answers would delay the others.
 */
const CONNECTIONS_MAX = 4_096;
/** Bound on pools. The least recently used pool is closed. */
const POOLS_MAX = 2_000;

export class ProviderPools implements ProviderLinks {
  readonly #options: EgressOptions;
  readonly #pools = new Map<string, Pool>();

  constructor(options: EgressOptions) {
    this.#options = options;
  }

  to({ providerId, version, kind }: LinkedProvider, settings: UpstreamSettings): Upstream {
    const { networks, ports } = this.#options;
    const base = parseUpstreamBase(settings);
    const { port } = new URL(base.origin);
    const rule = { allowPrivate: false, isSecure: base.isSecure, networks };
    const isUsual = USUAL_PORTS.has(port) || ports.includes(Number(port));
    const name = kind === 'preset' ? base.origin : `${providerId} ${version}`;
    return upstreamOver({
      base,
      pool: () => this.#pool(name, base.origin, rule),
      isRefused: !isUsual || !base.isSecure || isRefusedBase(base, rule),
      close: async () => {},
    });
  }

  async ask(provider: LinkedProvider, question: WholeQuestion): Promise<WholeAnswer> {
    const { settings, request, bytesMax, signal } = question;
    const answer = await this.to(provider, settings).send(request, signal);
    const body = await wholeBody(answer, { bytesMax, signal });
    return { status: answer.status, body: typeof body === 'string' ? undefined : body };
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.close()));
  }

  #pool(name: string, origin: string, rule: Parameters<typeof isRefusedBase>[1]): Pool {
    const { headersMs, trust } = this.#options;
    const limits = { headersMs, connectionsMax: CONNECTIONS_MAX, ...trust };
    const pool = this.#pools.get(name) ?? createPool(origin, { rule }, limits);
    this.#pools.delete(name);
    this.#pools.set(name, pool);
    const [oldest] = this.#pools;
    if (this.#pools.size > POOLS_MAX && oldest !== undefined) {
      this.#pools.delete(oldest[0]);
      // close() lets running answers finish.
      void oldest[1].close();
    }
    return pool;
  }
}
