import type { Shell } from '../../../../src/core/conversation/view.ts';
import { MemoryError, ProxyError } from '../../../../src/core/errors.ts';
import type { TenantProvider } from '../../core/providers.ts';
import { type NamedModel, namedModel, routeModel, withModel } from '../../core/routing.ts';
import type { StoredKey } from '../../../../src/core/memory-api/keys.ts';
import type { ConfiguredUpstream, UpstreamQuestion } from '../../../../src/proxy/dependencies.ts';
import { Confirmed } from '../change-watch.ts';
import { ServiceFault } from '../fault.ts';
import type { ServingParts } from '../parts.ts';
import { openSettings } from './provider-settings.ts';

/** Finds the provider of a request and decrypts its secrets. */

export interface ProviderChoiceMade {
  readonly provider: TenantProvider;
  readonly model: string;
  readonly configured: ConfiguredUpstream;
  /** The body with the default model added; undefined if the body names a model. */
  readonly body?: Buffer;
}

/** Bound on a body, in bytes, that is parsed only to find out whether it is JSON. That takes 5 ms. */
const PARSED_BYTES_MAX = 1 << 20;
/** Bound on the names of models in an error message, which counts the rest. */
const NAMES_MAX = 20;

export class ProviderChoice {
  readonly #parts: ServingParts;
  readonly #lists: Confirmed<readonly TenantProvider[]>;
  /** Decrypted providers, by their object in the cached list. A list that is read again has new objects. */
  readonly #opened = new WeakMap<TenantProvider, Promise<ConfiguredUpstream>>();
  readonly #named = new WeakMap<Shell, NamedModel>();

  constructor(parts: ServingParts) {
    this.#parts = parts;
    this.#lists = new Confirmed({
      ...parts,
      concerns: ({ kind, tenant }, name) => kind === 'provider' && tenant === name,
    });
  }

  /** Returns the model that a body names; undefined if it names none. Throws ProxyError and ServiceFault. */
  modelOf({ request: { body }, read }: UpstreamQuestion): string | undefined {
    return modelIn(body === undefined ? { kind: 'unreadable' } : this.#read(body, read));
  }

  /** Chooses a request's provider. `model`: the result of modelOf(). Throws ProxyError, ServiceFault or MemoryError. */
  async choose(
    { tenant, allowedModels }: Pick<StoredKey, 'tenant' | 'allowedModels'>,
    { request: { route, body } }: UpstreamQuestion,
    model: string | undefined,
  ): Promise<ProviderChoiceMade> {
    const dialect = 'dialect' in route ? route.dialect : undefined;
    if (dialect === undefined || body === undefined) throw noProvider();
    const providers = await this.providers(tenant);
    const routed = routeModel({ providers, dialect, model, keyModels: allowedModels });
    if (routed.kind !== 'routed') throw refusal(routed);
    const { provider } = routed;
    const configured = await this.#open(tenant, provider);
    const more = model === undefined ? { body: withModel(body, routed.model) } : {};
    return { provider, model: routed.model, configured, ...more };
  }

  /** Lists the tenant's providers. Throws ServiceFault STORE_UNAVAILABLE. */
  async providers(tenant: string): Promise<readonly TenantProvider[]> {
    const look = () => this.#parts.store.of(tenant).listProviders();
    return this.#lists.ask(tenant, look).catch((error: unknown) => {
      if (!(error instanceof MemoryError)) throw error;
      throw new ServiceFault('STORE_UNAVAILABLE', 'The providers cannot be read now.');
    });
  }

  #read(body: Buffer, read: UpstreamQuestion['read']): NamedModel {
    if (typeof read !== 'string') {
      const known = this.#named.get(read.shell) ?? namedModel(body, read.list);
      this.#named.set(read.shell, known);
      return known;
    }
    if (read === 'unparseable' && body.length <= PARSED_BYTES_MAX && !isJson(body)) {
      return { kind: 'unreadable' };
    }
    return namedModel(body);
  }

  #open(tenant: string, provider: TenantProvider): Promise<ConfiguredUpstream> {
    const known = this.#opened.get(provider);
    if (known !== undefined) return known;
    const configured = this.#openNow(tenant, provider);
    this.#opened.set(provider, configured);
    configured.catch(() => this.#opened.delete(provider));
    return configured;
  }

  async #openNow(tenant: string, provider: TenantProvider): Promise<ConfiguredUpstream> {
    const settings = await openSettings(this.#parts, tenant, provider);
    return { settings, upstream: this.#parts.models.links.to(provider, settings) };
  }
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return true;
  } catch {
    return false;
  }
}

/** Returns the model; undefined if the body names none. */
function modelIn(named: NamedModel): string | undefined {
  switch (named.kind) {
    case 'named':
      return named.model;
    case 'missing':
      return undefined;
    case 'ambiguous':
      throw ambiguous('The body does not name exactly one model in the member "model".');
    case 'unreadable':
      throw new ProxyError('BODY_UNREADABLE', 'The body is not a JSON object.');
  }
}

type Refusal = Exclude<ReturnType<typeof routeModel>, { kind: 'routed' }>;

function refusal(routed: Refusal): ServiceFault {
  switch (routed.kind) {
    case 'no-provider':
      return noProvider();
    case 'no-default':
      return ambiguous('The body names no model, and there is no single default model.');
    case 'not-allowed': {
      const { allowed } = routed;
      const shown = allowed.slice(0, NAMES_MAX).join(', ');
      const more = allowed.length > NAMES_MAX ? ` and ${allowed.length - NAMES_MAX} more` : '';
      const message = `The model is not allowed here. Allowed: ${shown || 'none'}${more}.`;
      return new ServiceFault('MODEL_NOT_FOUND', message);
    }
  }
}

function ambiguous(message: string): ServiceFault {
  return new ServiceFault('MODEL_AMBIGUOUS', message);
}

function noProvider(): ServiceFault {
  const message = 'No provider is configured for this API style.';
  return new ServiceFault('PROVIDER_NOT_CONFIGURED', message);
}
