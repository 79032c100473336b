import { asList, asRecord, type Fields } from '../../../../src/core/bytes/json-fields.ts';
import { DIALECTS } from '../../../../src/core/dialects/apis.ts';
import {
  closed,
  flag,
  type Infer,
  integer,
  listOf,
  oneOf,
  text,
} from '../../../../src/core/memory-api/shape.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { defaultAuth, UPSTREAM_NAME } from '../../../../src/core/settings/config-upstreams.ts';
import { newId } from '../../core/ids.ts';
import {
  customNamesProblem,
  type CustomValue,
  findClash,
  isSecretValue,
  MODEL_ID,
  presetOf,
  readProviderBase,
  takesModel,
  type TenantProvider,
  type VaultedValue,
} from '../../core/providers.ts';
import { Secret } from '../../core/envelope.ts';
import type { SealedSecret } from '../../ports/vault-store.ts';
import { invalid, ServiceFault } from '../fault.ts';
import { holdsOwnKey } from '../models/provider-settings.ts';
import {
  apply,
  type ArgumentRow,
  command,
  commandName,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  type Given,
  present,
  listReply,
  modelNames,
  mustBeDone,
  noteOf,
  option,
  type OptionRow,
  pageOf,
  type Problem,
  type Reading,
  reads,
  type Say,
  storeOf,
  writes,
} from './operation.ts';

/**
 * Operations on the providers of a tenant. Their secrets are stored in the vault and never returned. The address of a
 * saved provider never changes, so its credential is sent to no other host.
 */

/** The shape of custom headers or query values. Line ends and NUL, which RFC 9110 forbids in a header, are refused. */
const customValues = listOf(
  closed({
    name: text({ min: 1, max: 256, pattern: /^[\u0021-\u007e]*$/ }),
    value: text({ max: 4096, pattern: /^[\t\u0020-\u007e\u0080-\u00ff]*$/ }),
  }),
  { max: 32 },
);

export const credentialShape = text({ min: 1, max: 8192, pattern: /^[\u0021-\u007e]*$/ });

/**
 * Optional members that a new provider and a change share. A change takes no address, because the saved credential
 * would then be sent to another host.
 */
const providerMembers = {
  credential: credentialShape,
  custom_headers: customValues,
  custom_query: customValues,
  enabled: flag,
} as const;
const providerModels = {
  default_model: text({ pattern: MODEL_ID }),
  allowed_models: modelNames,
} as const;

export const providerCreate = closed(
  {
    name: commandName,
    kind: oneOf('preset', 'custom'),
    api_style: oneOf(...DIALECTS),
    ...providerModels,
  },
  {
    ...providerMembers,
    preset_id: text({ pattern: UPSTREAM_NAME }),
    base_url: text({ min: 1, max: 2048 }),
    auth: oneOf('default', 'bearer', 'x-api-key', 'none'),
  },
);
type ProviderCreate = Infer<typeof providerCreate>;

/** The body of a change. `version`: the version that the change replaces. A call states it here or in If-Match. */
export const providerUpdate = closed(
  {},
  { version: integer(1), name: commandName, ...providerModels, ...providerMembers },
);
type ProviderUpdate = Infer<typeof providerUpdate>;

export const PROVIDER: ArgumentRow = { flags: '<name>', about: 'from the list', isProvider: true };

/** The options that `providers add` and `providers update` share. */
const MODELS: readonly OptionRow[] = [
  option(
    '--model <name...>',
    'the models that it serves; the last character may be *',
    'allowed_models',
  ),
  option(
    '--default-model <name>',
    'model for requests that name none (default: the first of --model)',
    'default_model',
  ),
  option('--header <pair...>', 'additional headers, as NAME: VALUE', 'custom_headers', {
    as: pairs(':', 'expected NAME: VALUE.'),
  }),
  option('--query <pair...>', 'additional query values, as NAME=VALUE', 'custom_query', {
    as: pairs('=', 'expected NAME=VALUE.'),
  }),
  option('--key-stdin', 'read the credential from stdin', 'credential', { as: 'stdin' }),
];

export const providerOperations: readonly ConsoleOperation[] = [
  writes(
    { name: 'createProvider', route: 'POST providers', role: 'admin', ofTenant: true },
    providerCreate,
    createProvider,
    [
      command('providers add', 'Add a provider', {
        argument: option('<name>', '1 to 63 of a-z 0-9 and -', 'name'),
        options: [
          ...MODELS,
          option(
            '--preset <id>',
            'a provider of the catalog, which gives the address',
            'preset_id',
          ),
          option(
            '--base-url <url>',
            'an https address with a public name, port 443 or 8443',
            'base_url',
          ),
          option(
            '--api-style <style>',
            'anthropic_messages, openai_responses or openai_chat_completions',
            'api_style',
          ),
          option(
            '--auth <how>',
            'bearer, x-api-key or none (default: as usual for the API style)',
            'auth',
          ),
        ],
        examples: [
          `providers add claude --preset anthropic --api-style anthropic_messages --model 'claude-*' \\
      --default-model claude-sonnet-4-5 --key-stdin < key.txt`,
          `providers add gateway --base-url https://models.example.com \\
      --api-style openai_responses --model gpt-5 --header 'x-team: api' --key-stdin < key.txt`,
        ],
        more: `svc reads the credential from stdin and stores it in the vault. In a header or query value, $API_KEY
stands for the credential; such a value is then a secret too.`,
        check: checkAdd,
        ask: (values) => ({
          ...values,
          kind: values['preset_id'] === undefined ? 'custom' : 'preset',
          default_model: values['default_model'] ?? firstWhole(values['allowed_models']),
        }),
        shows: (_answer, _say, { argument: name }) => ({ note: `The provider ${name} is saved.` }),
      }),
    ],
  ),
  reads(
    { name: 'listProviders', route: 'GET providers', role: 'viewer', ofTenant: true },
    listProviders,
    [
      command('providers list', 'List providers, with fingerprint and date of their credentials', {
        list: {
          isWhole: true,
          empty: 'There is no provider yet. Add one: svc-service providers add --help',
          columns: [
            'name',
            ({ enabled }) => (enabled === true ? 'enabled' : 'disabled'),
            'api_style',
            'base_url:48',
            'allowed_models:32',
            credentialText,
          ],
        },
      }),
    ],
  ),
  reads(
    { name: 'getProvider', route: 'GET providers/*', role: 'viewer' },
    async (call) => ({ status: 200, body: providerWire(await findProvider(call)) }),
    [
      command('providers show', 'Show one provider without its secrets', {
        argument: PROVIDER,
        examples: ['providers show claude'],
        shows: (provider, say) => ({ lines: providerLines(provider, say) }),
      }),
    ],
  ),
  writes(
    { name: 'updateProvider', route: 'PATCH providers/*', role: 'admin' },
    providerUpdate,
    updateProvider,
    [
      command(
        'providers update',
        'Change a provider; its address and settings that you do not name stay',
        {
          argument: PROVIDER,
          options: [
            ...MODELS,
            option('--rename <name>', 'the new name', 'name'),
            option('--enable', 'use the provider', 'enabled'),
            option('--disable', 'keep the provider but do not use it', 'enabled', {
              as: { read: () => false, expected: '', hint: '' },
            }),
          ],
          examples: [
            'providers update claude --key-stdin < key.txt',
            'providers update gateway --model gpt-5 gpt-5-mini',
          ],
          nothing: [
            'There is nothing to change.',
            'Give --model, --key-stdin, --disable or another option.',
          ],
          isVersioned: true,
          shows: ({ name }, { line }) => ({ note: `The provider ${line(name)} is changed.` }),
        },
      ),
    ],
  ),
  reads({ name: 'deleteProvider', route: 'DELETE providers/*', role: 'admin' }, deleteProvider, [
    command('providers remove', 'Delete a provider and its secrets', {
      argument: PROVIDER,
      examples: ['providers remove gateway'],
      note: 'The provider and its secrets are deleted.',
    }),
  ]),
];

function checkAdd({ preset, baseUrl, apiStyle, auth, model, defaultModel, keyStdin }: Given) {
  const problems: readonly (Problem | false)[] = [
    (preset === undefined) === (baseUrl === undefined) && [
      'Give exactly one of --preset and --base-url.',
      'For example: --preset openai, or --base-url https://models.example.com',
    ],
    !DIALECTS.some((style) => style === apiStyle) && [
      `--api-style: expected ${DIALECTS.join(', ')}.`,
      'Try --api-style anthropic_messages',
    ],
    model === undefined && ['No model is named.', 'Name each allowed model: --model gpt-5'],
    keyStdin !== true &&
      auth !== 'none' && [
        'No credential is given.',
        'Pipe it in: --key-stdin < key.txt. For a provider without a credential: --auth none',
      ],
    // A prefix of model names cannot be the default model.
    defaultModel === undefined &&
      firstWhole(model) === undefined && [
        'Each --model is only a prefix.',
        'Name the model for requests that name none: --default-model claude-sonnet-4-5',
      ],
  ];
  return problems.find((problem) => problem !== false);
}

function firstWhole(models: unknown): unknown {
  return asList(models).find((one) => !String(one).endsWith('*'));
}

function pairs(separator: ':' | '=', expected: string): Reading {
  const read = (given: unknown): unknown => {
    const found = asList(given).map(String);
    if (found.some((pair) => pair.indexOf(separator) <= 0)) return undefined;
    return found.map((pair) => {
      const at = pair.indexOf(separator);
      return { name: pair.slice(0, at).trim(), value: pair.slice(at + 1).trim() };
    });
  };
  return {
    read,
    expected,
    hint: "Try --header 'x-team: api', with $API_KEY in place of the credential",
  };
}

function providerLines(provider: Fields, say: Say): readonly string[] {
  const { line } = say;
  const known = ['name', 'kind', 'preset_id', 'api_style', 'base_url', 'auth'].filter(
    (member) => provider[member] !== null,
  );
  const custom = ['custom_headers', 'custom_query'].flatMap((member) =>
    asList(provider[member]).map((one) => {
      const { name, value, secret } = asRecord(one);
      return `${member}: ${line(name, 64)}: ${secret === true ? '(secret)' : line(value, 64)}`;
    }),
  );
  return [
    ...known.map((member) => `${member}: ${line(provider[member])}`),
    `credential: ${credentialText(provider, say)}`,
    ...custom,
    `default_model: ${line(provider['default_model'])}`,
    `allowed_models: ${line(provider['allowed_models'], Infinity)}`,
    `enabled: ${provider['enabled'] === true ? 'yes' : 'no'}`,
  ];
}

function credentialText({ credential: saved }: Fields, { line, time }: Say): string {
  if (saved === null) return 'no credential';
  const { fingerprint, saved_at: at } = asRecord(saved);
  return `${line(fingerprint)} saved ${time(at)}`;
}

async function listProviders(call: ConsoleCall): Promise<ConsoleReply> {
  const page = pageOf(call.query);
  const { after = '', limit } = page;
  const all = await storeOf(call).listProviders();
  const rows = all.filter(({ providerId }) => providerId > after).slice(0, limit);
  return listReply(rows, page, { idOf: ({ providerId }) => providerId, wireOf: providerWire });
}

async function createProvider(call: ConsoleCall, asked: ProviderCreate): Promise<ConsoleReply> {
  const provider: TenantProvider = {
    providerId: newId('prov', call.parts.randomBytes),
    name: asked.name,
    kind: asked.kind,
    ...present('presetId', asked.preset_id),
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

async function updateProvider(call: ConsoleCall, asked: ProviderUpdate): Promise<ConsoleReply> {
  const before = await findProvider(call);
  const ifVersion = asked.version ?? call.ifVersion;
  if (ifVersion === undefined) {
    throw invalid('Send If-Match with the version of the provider that you read.', 'If-Match');
  }
  // The unchanged members are copied from `before`, so the change must replace exactly that version.
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

async function deleteProvider(call: ConsoleCall): Promise<ConsoleReply> {
  const before = await findProvider(call);
  const { providerId, name } = before;
  checkVersion(call, before);
  await apply(
    call,
    storeOf(call),
    { what: 'provider.remove', providerId },
    { kind: 'provider.deleted', id: providerId, details: { name } },
  );
  return { status: 204 };
}

/** Throws ServiceFault CONFLICT if If-Match names another version. */
function checkVersion({ ifVersion }: ConsoleCall, { version }: TenantProvider): void {
  if (ifVersion !== undefined && ifVersion !== version) mustBeDone('changed', 'provider');
}

export async function findProvider(call: ConsoleCall): Promise<TenantProvider> {
  const all = await storeOf(call).listProviders();
  const found = all.find(({ providerId }) => providerId === call.parameter);
  if (found === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such provider.');
  return found;
}

/**
 * Returns the address of a new provider, and how its key is sent. For a preset both come from the catalog, but an
 * `auth` other than `default` replaces how the key is sent.
 */
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
  const { publicUrl } = parts.settings;
  if (publicUrl !== undefined && new URL(publicUrl).host === new URL(read.url).host) {
    throw wrong('base_url', 'is the address of this service');
  }
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
    ...present(
      'credential',
      credential === undefined ? undefined : await sealer.seal('credential', credential),
    ),
    ...present('headers', headers && (await sealer.sealAll('headers', headers))),
    ...present('query', query && (await sealer.sealAll('query', query))),
  };
  checkWhole(next);
  const isNew = ifVersion === undefined;
  const kind = isNew ? 'provider.created' : 'provider.updated';
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

/**
 * Refuses a key of this service in a credential, header or query value, because the provider would then be the service
 * itself.
 */
async function refuseOwnKeys(
  { parts }: ConsoleCall,
  { credential, custom_headers: headers = [], custom_query: query = [] }: Draft['asked'],
): Promise<void> {
  const texts = [
    ['credential', credential ?? ''],
    ...headers.map(({ value }) => ['custom_headers', value]),
    ...query.map(({ value }) => ['custom_query', value]),
  ];
  for (const [param = '', value = ''] of texts) {
    // oxlint-disable-next-line no-await-in-loop -- The error names the first such text.
    if (!(await holdsOwnKey(parts, value))) continue;
    throw wrong(param, 'is a key of this service, which cannot be its own provider');
  }
}

/**
 * Makes the error for two providers with the same model. It names both providers, because the user has to change one.
 */
async function clashOf(call: ConsoleCall, provider: TenantProvider): Promise<ServiceFault> {
  const clash = findClash(provider, await storeOf(call).listProviders());
  const { other, entry } = clash ?? { other: provider, entry: '' };
  const message = `The providers ${provider.name} and ${other.name} both have the model ${entry}.`;
  return new ServiceFault('CONFLICT', message, { param: 'allowed_models' });
}

/** Throws ServiceFault if members of a provider contradict each other. */
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
  return invalid(`${param} ${what}.`, param);
}

/** Seals the secrets of one provider, and collects them for the transaction that saves the provider. */
class Sealer {
  readonly #call: ConsoleCall;
  readonly #provider: TenantProvider;
  readonly secrets: SealedSecret[] = [];

  constructor(call: ConsoleCall, provider: TenantProvider) {
    this.#call = call;
    this.#provider = provider;
  }

  async seal(purpose: string, secret: string): Promise<VaultedValue> {
    const { parts, tenantId, now } = this.#call;
    const secretId = newId('sec', parts.randomBytes);
    const { providerId: owner, version } = this.#provider;
    const context = { tenant: tenantId, secretId, owner, purpose, version };
    const { fingerprint, ...sealed } = await parts.vault.seal(context, new Secret(secret), now);
    this.secrets.push({ fingerprint, ...sealed });
    return { secretId, fingerprint, savedAt: now };
  }

  /** Seals the whole of each value that contains the placeholder `$API_KEY`, and copies the others. */
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
