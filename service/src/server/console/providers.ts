import { isoTime } from '../../../../src/core/memory/times.ts';
import type { AuditKind } from '../../core/audit.ts';
import {
  providerCreate,
  type ProviderCreate,
  providerUpdate,
  type ProviderUpdate,
} from '../../core/console-contract.ts';
import { newId } from '../../core/ids.ts';
import {
  customNamesProblem,
  type CustomValue,
  findClash,
  isSecretValue,
  presetOf,
  readProviderBase,
  takesModel,
  type TenantProvider,
  type VaultedValue,
} from '../../core/providers.ts';
import { Secret } from '../../core/secret.ts';
import { defaultAuth } from '../../../../src/core/settings/config-upstreams.ts';
import type { SealedSecret } from '../../ports/vault-store.ts';
import { readValue } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { holdsOwnKey } from '../own-keys.ts';
import {
  type ConsoleCall,
  type ConsoleReply,
  findTenant,
  listReply,
  mustBeDone,
  noteOf,
  pageOf,
  storeOf,
} from './console-call.ts';
import { given } from './keys.ts';

/**
 * Providers of a tenant. Their secrets come in, go to the vault, and never come out again. The
 * address of a saved one does not change, so a credential goes to no other host than it came for.
 */

export async function listProviders(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const page = pageOf(call.query);
  const { after = '', limit } = page;
  const all = await storeOf(call).listProviders();
  const rows = all.filter(({ providerId }) => providerId > after).slice(0, limit);
  return listReply(rows, page, { idOf: ({ providerId }) => providerId, wireOf: providerWire });
}

export async function getProvider(call: ConsoleCall): Promise<ConsoleReply> {
  return { status: 200, body: providerWire(await findProvider(call)) };
}

export async function createProvider(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const asked = readValue(call.body, providerCreate);
  const provider: TenantProvider = {
    providerId: newId('prov', call.parts.randomBytes),
    name: asked.name,
    kind: asked.kind,
    ...given('presetId', asked.preset_id),
    apiStyle: asked.api_style,
    ...(await placeOf(call, asked)),
    headers: [],
    query: [],
    defaultModel: asked.default_model,
    allowedModels: asked.allowed_models,
    isEnabled: asked.enabled ?? true,
    version: 1,
    createdAt: call.now,
    updatedAt: call.now,
  };
  return save(call, { provider, asked, ifVersion: undefined });
}

export async function updateProvider(call: ConsoleCall): Promise<ConsoleReply> {
  const asked = readValue(call.body, providerUpdate);
  const before = await findProvider(call);
  const ifVersion = asked.version ?? call.ifVersion;
  if (ifVersion === undefined) {
    const message = 'Send If-Match with the version of the provider that you read.';
    throw new ServiceFault('INVALID_REQUEST', message, { param: 'If-Match' });
  }
  // The kept members are of this version, so no other one may be replaced.
  checkVersion(call, before);
  if (before.version !== ifVersion) mustBeDone('changed', 'provider');
  const provider: TenantProvider = {
    ...before,
    name: asked.name ?? before.name,
    defaultModel: asked.default_model ?? before.defaultModel,
    allowedModels: asked.allowed_models ?? before.allowedModels,
    isEnabled: asked.enabled ?? before.isEnabled,
    version: ifVersion + 1,
    updatedAt: call.now,
  };
  return save(call, { provider, asked, ifVersion });
}

export async function deleteProvider(call: ConsoleCall): Promise<ConsoleReply> {
  const before = await findProvider(call);
  const { providerId, name } = before;
  checkVersion(call, before);
  const target = { type: 'provider', id: providerId };
  const note = noteOf(call, 'provider.deleted', { target, details: { name } });
  mustBeDone(await storeOf(call).apply({ what: 'provider.remove', providerId }, note), 'provider');
  return { status: 204 };
}

/** Throws ServiceFault CONFLICT where If-Match names another version. */
function checkVersion({ ifVersion }: ConsoleCall, { version }: TenantProvider): void {
  if (ifVersion !== undefined && ifVersion !== version) mustBeDone('changed', 'provider');
}

export async function findProvider(call: ConsoleCall): Promise<TenantProvider> {
  const all = await storeOf(call).listProviders();
  const found = all.find(({ providerId }) => providerId === call.parameter);
  if (found === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such provider.');
  return found;
}

/** Where the requests go and how the key is sent. A preset's address is copied from the catalog. */
async function placeOf(
  { parts }: ConsoleCall,
  {
    kind,
    api_style: apiStyle,
    base_url: base,
    preset_id: presetId,
    auth = 'default',
  }: ProviderCreate,
): Promise<Pick<TenantProvider, 'baseUrl' | 'auth'>> {
  if (kind === 'preset') {
    if (base !== undefined) throw wrong('base_url', 'comes from the catalog for a preset');
    const preset = presetOf(await parts.listCatalog(), presetId ?? '', apiStyle);
    if (preset === undefined) {
      throw wrong(
        'preset_id',
        'names no preset of this api_style: svc-service providers presets lists them',
      );
    }
    return auth === 'default' ? preset : { ...preset, auth };
  }
  if (presetId !== undefined) throw wrong('preset_id', 'belongs to a preset');
  const read = readProviderBase(base ?? '', parts.settings.egress);
  if (!('url' in read)) throw wrong('base_url', read.problem);
  return { baseUrl: read.url, auth: auth === 'default' ? defaultAuth(apiStyle) : auth };
}

interface Draft {
  readonly provider: TenantProvider;
  readonly asked: ProviderCreate | ProviderUpdate;
  readonly ifVersion: number | undefined;
}

async function save(
  call: ConsoleCall,
  { provider, asked, ifVersion }: Draft,
): Promise<ConsoleReply> {
  const sealer = new Sealer(call, provider);
  const { credential, custom_headers: headers, custom_query: query } = asked;
  await refuseOwnKeys(call, asked);
  const next: TenantProvider = {
    ...provider,
    ...(credential === undefined
      ? {}
      : { credential: await sealer.seal('credential', credential) }),
    ...(headers === undefined ? {} : { headers: await sealer.sealAll('headers', headers) }),
    ...(query === undefined ? {} : { query: await sealer.sealAll('query', query) }),
  };
  checkWhole(next);
  const isNew = ifVersion === undefined;
  const kind: AuditKind = isNew ? 'provider.created' : 'provider.updated';
  const details = {
    name: next.name,
    api_style: next.apiStyle,
    host: new URL(next.baseUrl).host,
    models: next.allowedModels.length,
    enabled: next.isEnabled,
    secrets: sealer.secrets.length,
  };
  const target = { type: 'provider', id: next.providerId };
  const change = {
    what: 'provider.put',
    provider: next,
    ifVersion,
    secrets: sealer.secrets,
  } as const;
  const outcome = await storeOf(call).apply(change, noteOf(call, kind, { target, details }));
  if (outcome === 'clash') throw await clashOf(call, next);
  mustBeDone(outcome, 'provider');
  return { status: isNew ? 201 : 200, body: providerWire(next) };
}

/** A request would come back, and be sent again. */
async function refuseOwnKeys(
  { parts }: ConsoleCall,
  { credential, custom_headers: headers = [], custom_query: query = [] }: Draft['asked'],
): Promise<void> {
  const texts = [
    ['credential', credential ?? ''],
    ...headers.map(({ value }) => ['custom_headers', value]),
    ...query.map(({ value }) => ['custom_query', value]),
  ];
  for (const [param = '', text = ''] of texts) {
    // oxlint-disable-next-line no-await-in-loop -- The first one found is named.
    if (!(await holdsOwnKey(parts, text))) continue;
    throw wrong(param, 'is a key of this service, which cannot be its own provider');
  }
}

/** Names both: the reader has to change one of them. */
async function clashOf(call: ConsoleCall, provider: TenantProvider): Promise<ServiceFault> {
  const clash = findClash(provider, await storeOf(call).listProviders());
  const { other, entry } = clash ?? { other: provider, entry: '' };
  const message = `The providers ${provider.name} and ${other.name} both have the model ${entry}.`;
  return new ServiceFault('CONFLICT', message, { param: 'allowed_models' });
}

/** Throws ServiceFault for members that do not fit each other. */
function checkWhole({ auth, credential, headers, query, ...models }: TenantProvider): void {
  if (!models.allowedModels.some((entry) => takesModel(entry, models.defaultModel))) {
    throw wrong('default_model', 'is not one of allowed_models');
  }
  const needsKey = auth !== 'none' || [...headers, ...query].some(({ secretId }) => secretId);
  if (needsKey && credential === undefined) throw wrong('credential', 'is missing');
  if (!needsKey && credential !== undefined)
    throw wrong('credential', 'has no header or query value that uses it');
}

function wrong(param: string, what: string): ServiceFault {
  return new ServiceFault('INVALID_REQUEST', `${param} ${what}.`, { param });
}

/** Seals the secrets of one provider, and collects them for the transaction that saves it. */
class Sealer {
  readonly #call: ConsoleCall;
  readonly #provider: TenantProvider;
  readonly secrets: SealedSecret[] = [];

  constructor(call: ConsoleCall, provider: TenantProvider) {
    this.#call = call;
    this.#provider = provider;
  }

  async seal(purpose: string, text: string): Promise<VaultedValue> {
    const { parts, tenantId, now } = this.#call;
    const secretId = newId('sec', parts.randomBytes);
    const { providerId: owner, version } = this.#provider;
    const context = { tenant: tenantId, secretId, owner, purpose, version };
    const { fingerprint, ...sealed } = await parts.vault.seal(context, new Secret(text), now);
    this.secrets.push({ fingerprint, ...sealed });
    return { secretId, fingerprint, savedAt: now };
  }

  /** A value that takes the credential in is vaulted whole. */
  async sealAll(
    member: 'headers' | 'query',
    values: readonly { readonly name: string; readonly value: string }[],
  ): Promise<readonly CustomValue[]> {
    const problem = customNamesProblem(
      member,
      values.map(({ name }) => name),
    );
    if (problem !== undefined) throw wrong(`custom_${member}`, problem);
    return Promise.all(
      values.map(async ({ name, value }) =>
        isSecretValue(value)
          ? { name, secretId: (await this.seal(member, value)).secretId }
          : { name, value },
      ),
    );
  }
}

function providerWire(provider: TenantProvider): object {
  const { credential } = provider;
  return {
    provider_id: provider.providerId,
    name: provider.name,
    kind: provider.kind,
    preset_id: provider.presetId ?? null,
    api_style: provider.apiStyle,
    base_url: provider.baseUrl,
    auth: provider.auth,
    credential:
      credential === undefined
        ? null
        : { fingerprint: credential.fingerprint, saved_at: isoTime(credential.savedAt) },
    custom_headers: provider.headers.map(customWire),
    custom_query: provider.query.map(customWire),
    default_model: provider.defaultModel,
    allowed_models: provider.allowedModels,
    enabled: provider.isEnabled,
    version: provider.version,
    created_at: isoTime(provider.createdAt),
    updated_at: isoTime(provider.updatedAt),
  };
}

function customWire({ name, value }: CustomValue): object {
  return { name, value: value ?? null, secret: value === undefined };
}
