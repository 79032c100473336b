import { AUTHS, defaultAuth, UPSTREAM_NAME } from '../../core/settings/config-upstreams.ts';
import {
  type Draft,
  draftsOf,
  existingUpstream,
  type UpstreamDraft,
} from '../../core/settings/config-draft.ts';
import {
  isRoutable,
  type Provider,
  WELL_KNOWN_NAMES,
  wellKnown,
  type WellKnown,
} from '../../core/settings/catalog.ts';
import { isCredential, isEnvironmentName } from '../../core/settings/config-values.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { DIALECTS } from '../../core/dialects/apis.ts';
import type { Credential } from '../../core/settings/settings.ts';
import type { UpstreamAuth } from '../../core/http/header-rules.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';

/** Makes upstreams from flags of `svc setup`. No flag contains a key, because process lists show arguments. */

export interface UpstreamFlags {
  readonly upstream?: string;
  /** The name of the variable with the key. The file stores this name instead of a key. */
  readonly keyEnv?: string;
  readonly keyStdin?: boolean;
  readonly baseUrl?: string;
  readonly apiStyle?: string;
  readonly auth?: string;
  readonly allowPrivate?: boolean;
}

export interface UpstreamSources {
  readonly context: CommandContext;
  /** Returns the providers of the catalog. It is called only for a name that neither svc nor the file knows. */
  readonly listProviders: () => Promise<readonly Provider[]>;
}

/** Returns the upstreams to write, one for each API style. `draft`: the file's content; flags override it. */
export async function chooseUpstreams(
  flags: UpstreamFlags,
  draft: Draft,
  { context, listProviders }: UpstreamSources,
): Promise<readonly UpstreamDraft[]> {
  const name = flags.upstream ?? '';
  if (!UPSTREAM_NAME.test(name)) {
    throw usage('--upstream: expected up to 40 lower-case letters, digits, - and _.');
  }
  const apiStyle = choice('--api-style', flags.apiStyle, DIALECTS);
  const auth = choice('--auth', flags.auth, AUTHS);
  const existing = DIALECTS.filter((style) => existingUpstream(draft, name, style) !== undefined);
  const isInFile = existing.length > 0;
  const known = wellKnown(name) ?? (isInFile ? undefined : await listed(name, listProviders));
  const places = placesOf({ name, apiStyle, existing, known, hasUrl: flags.baseUrl !== undefined });
  const isNew = !places.some((place) => existing.includes(place.apiStyle));
  const key = await keyOf({ flags, auth, known, isNew, context });
  const changes = {
    ...(flags.baseUrl === undefined ? {} : { baseUrl: flags.baseUrl }),
    ...(auth === undefined ? {} : { auth }),
    ...(flags.allowPrivate === undefined ? {} : { allowPrivate: flags.allowPrivate }),
    ...(key === undefined ? {} : { providerKey: key }),
  };
  return places.map((place) => ({ ...place, ...changes }));
}

async function listed(
  name: string,
  listProviders: UpstreamSources['listProviders'],
): Promise<WellKnown | undefined> {
  const provider = (await listProviders()).find(({ id }) => id === name);
  if (provider?.baseUrl === undefined || !isRoutable(provider)) return undefined;
  return { ...provider, baseUrl: provider.baseUrl };
}

interface Wanted {
  readonly name: string;
  readonly apiStyle: Dialect | undefined;
  /** The API styles for which the file has an upstream of this name. */
  readonly existing: readonly Dialect[];
  readonly known: WellKnown | undefined;
  readonly hasUrl: boolean;
}

/** Returns the name and API style of each upstream to write, and for a new one what svc knows of its provider. */
function placesOf({ name, apiStyle, existing, known, hasUrl }: Wanted): readonly UpstreamDraft[] {
  if (apiStyle === undefined && existing.length > 0) {
    return existing.map((style) => ({ name, apiStyle: style }));
  }
  if (apiStyle !== undefined && existing.includes(apiStyle)) return [{ name, apiStyle }];
  if (known !== undefined) {
    const styles = apiStyle === undefined ? known.apiStyles : [apiStyle];
    if (styles.length === 0) {
      throw usage(
        `Which API does ${name} serve? Give --api-style.`,
        `One of: ${DIALECTS.join(', ')}.`,
      );
    }
    const { auth: own } = known;
    const auth = apiStyle === undefined || own === 'none' ? own : defaultAuth(apiStyle);
    return draftsOf(name, { ...known, apiStyles: styles, auth }, {});
  }
  if (apiStyle !== undefined && hasUrl) {
    return [{ name, apiStyle, auth: defaultAuth(apiStyle) }];
  }
  throw usage(
    'svc does not know a provider of this name: give --base-url and --api-style.',
    `Known names: ${WELL_KNOWN_NAMES.join(', ')}, and those of the catalog, which svc setup shows. API styles: ${DIALECTS.join(', ')}.`,
  );
}

interface KeySource {
  readonly flags: UpstreamFlags;
  readonly auth: UpstreamAuth | undefined;
  readonly known: WellKnown | undefined;
  readonly isNew: boolean;
  readonly context: CommandContext;
}

async function keyOf({ flags, auth, known, isNew, context }: KeySource) {
  const { keyEnv, keyStdin } = flags;
  const given = await keyGiven('--key', keyEnv, keyStdin, context);
  if (given !== undefined) return given;
  const takesKey = (auth ?? known?.auth) !== 'none';
  if (!isNew || !takesKey) return undefined;
  const offered = known?.keyEnv ?? '';
  if (offered !== '' && context.environment[offered]) return { env: offered };
  const name = offered === '' ? 'NAME' : offered;
  throw usage(
    'Where is the key of this provider?',
    `Give --key-env ${name} (the file then names the variable), or --key-stdin and the key on stdin.`,
  );
}

/**
 * Returns the key, or the name of its variable, as one of two options gives it: PREFIX-env names a variable, and
 * PREFIX-stdin means that stdin has the key. Undefined if neither is given.
 */
export async function keyGiven(
  prefix: string,
  env: string | undefined,
  isPiped: boolean | undefined,
  { stdin }: CommandContext,
): Promise<Credential | undefined> {
  if (env !== undefined && isPiped === true) {
    throw usage(`${prefix}-env and ${prefix}-stdin exclude each other.`);
  }
  if (isPiped === true) return readKey(stdin, `${prefix}-stdin`);
  if (env === undefined || isEnvironmentName(env)) return env === undefined ? undefined : { env };
  throw usage(`${prefix}-env: expected the name of an environment variable, not a key.`);
}

/** Bound on the bytes of a key. The longest are tokens of service accounts. */
const KEY_BYTES_MAX = 8192;

/** Reads a key from stdin. `flag`: the option to name in errors. */
export async function readKey(stdin: CommandContext['stdin'], flag: string): Promise<string> {
  if (stdin === undefined || stdin.isTTY === true) {
    // The screen would show a key that the user types here.
    throw usage(`${flag} reads a key from a pipe or a file, not from the keyboard.`);
  }
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of stdin) {
    const bytes = Buffer.from(piece);
    pieces.push(bytes);
    length += bytes.length;
    if (length > KEY_BYTES_MAX) break;
  }
  const key = Buffer.concat(pieces).toString('utf8').trim();
  if (length <= KEY_BYTES_MAX && isCredential(key)) return key;
  const what = key === '' ? 'nothing' : 'something that is not a key';
  throw new CliError(`stdin held ${what}.`, `Pipe in only the key: add < key.txt after ${flag}`);
}

export function choice<T extends string>(
  name: string,
  text: string | undefined,
  values: readonly T[],
): T | undefined {
  if (text === undefined) return undefined;
  const chosen = values.find((value) => value === text);
  if (chosen !== undefined) return chosen;
  throw usage(`${name}: expected one of ${values.join(', ')}.`);
}

export function usage(line: string, hint = 'See: svc setup --help'): CliError {
  return new CliError(line, hint, 2);
}
