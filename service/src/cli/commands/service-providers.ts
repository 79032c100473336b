import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { DIALECTS } from '../../../../src/core/conversation/view.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { timeText } from '../../../../src/cli/listing.ts';
import { readKey } from '../../../../src/cli/setup/setup-upstream.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { type ConsoleAccess, type Fields, textOf, timeOf } from './console-fields.ts';

/** `svc-service providers`: where a tenant's model requests go. A credential comes by stdin alone. */

export interface ProviderOptions extends ConsoleOptions {
  readonly model?: readonly string[];
  readonly defaultModel?: string;
  /** `Name: value`. */
  readonly header?: readonly string[];
  /** `name=value`. */
  readonly query?: readonly string[];
  readonly keyStdin?: boolean;
}

export interface ProviderAddOptions extends ProviderOptions {
  readonly preset?: string;
  readonly baseUrl?: string;
  readonly apiStyle?: string;
  readonly auth?: string;
}

export interface ProviderUpdateOptions extends ProviderOptions {
  readonly rename?: string;
  readonly enable?: boolean;
  readonly disable?: boolean;
}

export async function addProvider(
  name: string,
  options: ProviderAddOptions,
  context: CommandContext,
): Promise<void> {
  const { preset, baseUrl, apiStyle, auth, model } = options;
  if ((preset === undefined) === (baseUrl === undefined)) {
    const hint = 'For example: --preset openai, or --base-url https://models.example.com';
    throw new CliError('Give exactly one of --preset and --base-url.', hint, 2);
  }
  if (!DIALECTS.some((style) => style === apiStyle)) {
    throw new CliError(
      `--api-style: expected ${DIALECTS.join(', ')}.`,
      'Try --api-style anthropic_messages',
      2,
    );
  }
  if (model === undefined || model.length === 0) {
    throw new CliError('No model is named.', 'Name each allowed model: --model gpt-5', 2);
  }
  if (options.keyStdin !== true && auth !== 'none') {
    const hint =
      'Pipe it in: --key-stdin < key.txt. For a provider without a credential: --auth none';
    throw new CliError('No credential is given.', hint, 2);
  }
  const body = {
    name,
    kind: preset === undefined ? 'custom' : 'preset',
    ...(preset === undefined ? { base_url: baseUrl } : { preset_id: preset }),
    api_style: apiStyle,
    ...(auth === undefined ? {} : { auth }),
    default_model: defaultModelOf(options),
    ...(await changesOf(options, context)),
  };
  const made = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: 'providers', body }),
  );
  if (options.json === true) context.terminal.json(made);
  context.terminal.note(`The provider ${name} is saved.`);
}

/** The beginning of a name is no model that a provider could be asked for. */
function defaultModelOf({ model = [], defaultModel }: ProviderOptions): string {
  const whole = defaultModel ?? model.find((one) => !one.endsWith('*'));
  if (whole !== undefined) return whole;
  const hint = 'Name the model for requests that name none: --default-model claude-sonnet-4-5';
  throw new CliError('Each --model is only a prefix.', hint, 2);
}

export async function listProviders(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const providers = await withConsole(options, context, (console) => listAll(console, 'providers'));
  if (options.json === true) {
    terminal.json(providers);
    return;
  }
  if (providers.length === 0) {
    terminal.note('There is no provider yet. Add one: svc-service providers add --help');
    return;
  }
  const rows = providers.map((provider) => [
    textOf(provider['name']),
    provider['enabled'] === true ? 'enabled' : 'disabled',
    textOf(provider['api_style']),
    oneLine(textOf(provider['base_url']), 48),
    oneLine(modelsOf(provider).join(' '), 32),
    credentialText(provider),
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3, 4, 5] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function showProvider(
  name: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const provider = await withConsole(options, context, async (console) => {
    const found = await findProvider(console, name);
    return console.call({ method: 'GET', path: pathOf(found) });
  });
  if (options.json === true) {
    terminal.json(provider);
    return;
  }
  for (const member of ['name', 'kind', 'preset_id', 'api_style', 'base_url', 'auth']) {
    if (provider[member] !== null) terminal.out(`${member}: ${textOf(provider[member])}`);
  }
  terminal.out(`credential: ${credentialText(provider)}`);
  for (const member of ['custom_headers', 'custom_query']) {
    for (const custom of recordsOf(provider[member])) {
      const value = custom['secret'] === true ? '(secret)' : textOf(custom['value']);
      terminal.out(`${member}: ${oneLine(textOf(custom['name']), 64)}: ${oneLine(value, 64)}`);
    }
  }
  terminal.out(`default_model: ${textOf(provider['default_model'])}`);
  terminal.out(`allowed_models: ${modelsOf(provider).join(' ')}`);
  terminal.out(`enabled: ${provider['enabled'] === true ? 'yes' : 'no'}`);
}

export async function updateProvider(
  name: string,
  options: ProviderUpdateOptions,
  context: CommandContext,
): Promise<void> {
  const { rename, enable, disable } = options;
  const changes = {
    ...(rename === undefined ? {} : { name: rename }),
    ...(enable === true ? { enabled: true } : {}),
    ...(disable === true ? { enabled: false } : {}),
    ...(await changesOf(options, context)),
  };
  if (Object.keys(changes).length === 0) {
    const hint = 'Give --model, --key-stdin, --disable or another option.';
    throw new CliError('There is nothing to change.', hint, 2);
  }
  const changed = await withConsole(options, context, async (console) => {
    const found = await findProvider(console, name);
    const body = { version: found['version'], ...changes };
    return console.call({ method: 'PATCH', path: pathOf(found), body });
  });
  if (options.json === true) context.terminal.json(changed);
  context.terminal.note(`The provider ${textOf(changed['name'])} is changed.`);
}

export async function removeProvider(
  name: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  await withConsole(options, context, async (console) => {
    const found = await findProvider(console, name);
    return console.call({ method: 'DELETE', path: pathOf(found) });
  });
  context.terminal.note('The provider and its secrets are deleted.');
}

async function changesOf(options: ProviderOptions, context: CommandContext): Promise<Fields> {
  const { model, defaultModel, header, query, keyStdin } = options;
  return {
    ...(model === undefined ? {} : { allowed_models: model }),
    ...(defaultModel === undefined ? {} : { default_model: defaultModel }),
    ...(header === undefined ? {} : { custom_headers: header.map((text) => pairOf(text, ':')) }),
    ...(query === undefined ? {} : { custom_query: query.map((text) => pairOf(text, '=')) }),
    ...(keyStdin === true ? { credential: await readKey(context.stdin, '--key-stdin') } : {}),
  };
}

function pairOf(text: string, separator: ':' | '='): Fields {
  const at = text.indexOf(separator);
  if (at > 0) return { name: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
  throw new CliError(
    separator === ':' ? '--header: expected NAME: VALUE.' : '--query: expected NAME=VALUE.',
    "Try --header 'x-team: api', with $API_KEY in place of the credential",
    2,
  );
}

export async function findProvider(
  console: Pick<ConsoleAccess, 'call'>,
  name: string,
): Promise<Fields> {
  const all = await listAll(console, 'providers');
  const found = all.find((one) => one['name'] === name || one['provider_id'] === name);
  if (found !== undefined) return found;
  throw new CliError('There is no such provider.', 'See: svc-service providers list');
}

export function pathOf(provider: Fields): string {
  return `providers/${textOf(provider['provider_id'])}`;
}

function credentialText(provider: Fields): string {
  if (provider['credential'] === null) return 'no credential';
  const credential = asRecord(provider['credential']);
  const savedAt = timeOf(credential['saved_at']);
  const when = savedAt === undefined ? '' : ` saved ${timeText(savedAt)}`;
  return `${textOf(credential['fingerprint'])}${when}`;
}

function modelsOf(provider: Fields): readonly string[] {
  const models = provider['allowed_models'];
  return Array.isArray(models) ? models.map(textOf) : [];
}

function recordsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(asRecord) : [];
}
