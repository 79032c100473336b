import {
  type ConfigFile,
  configPath,
  readConfigFile,
  repairModes,
} from '../adapters/config-file.ts';
import { configFolder } from '../adapters/config-folder.ts';
import { updateConfigFile } from '../adapters/config-writer.ts';
import { createLocalToken } from '../adapters/local-token.ts';
import {
  type Draft,
  newDraft,
  occupantOf,
  putProxySettings,
  putUpstream,
  removeUpstreams,
  type UpstreamDraft,
  upstreamNames,
  upstreamsFromEnvironment,
} from '../core/config-draft.ts';
import {
  flagNameOf,
  parseProxySetting,
  type ProxyFlags,
  type ProxySettingName,
} from '../core/config-proxy.ts';
import { parseConfig } from '../core/config-schema.ts';
import { isRecord } from '../core/config-values.ts';
import { CliError } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { configError, warnOf } from './load-config.ts';
import { chooseUpstreams, type UpstreamFlags } from './setup-upstream.ts';

/**
 * `svc setup`: makes the configuration, or changes it. The result is judged as a whole before
 * anything is written, and what a change does not name stays as it is.
 */

export interface SetupOptions extends UpstreamFlags {
  readonly yes?: boolean;
  readonly remove?: string;
  readonly replace?: boolean;
  readonly flags: ProxyFlags;
}

const EXAMPLES =
  'For example: svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY (see svc setup --help)';

export async function setup(options: SetupOptions, context: CommandContext): Promise<void> {
  const { environment, terminal } = context;
  if (options.yes !== true) {
    throw new CliError('setup has no questions yet: say what to do, and --yes.', EXAMPLES, 2);
  }
  const folder = configFolder(environment);
  // Read once before asking for a key, so that a broken file is told first.
  const before = await readConfigFile(folder);
  refuseUnusable(before);
  for (const path of await repairModes(folder)) terminal.note(`Made private: ${path}`);
  const draft = isRecord(before?.value) ? before.value : undefined;
  const upstreams = await chosenUpstreams(options, draft, context);
  const changes = proxyChanges(options.flags);
  await updateConfigFile(folder, (old) => {
    refuseUnusable(old);
    const current = isRecord(old?.value) ? old.value : newDraft(createLocalToken());
    const next = changed(withToken(current), { upstreams, changes, options });
    judge(next, { path: configPath(folder), upstreams }, context);
    return next;
  });
  terminal.note(`Saved: ${configPath(folder)}`);
  terminal.note('Next: svc start, and in another shell: eval "$(svc print-config claude)"');
}

/** Refuses to edit what has not the shape of a configuration: an edit would throw it away. */
function refuseUnusable(file: ConfigFile | undefined): void {
  if (file === undefined) return;
  const shapes = ['config', 'version', 'proxy', 'upstreams'];
  const problems = parseConfig(file.value, {}).problems.filter(({ path }) => shapes.includes(path));
  const hasUpstreams = isRecord(file.value) && file.value['upstreams'] !== undefined;
  const wrong = problems.filter(({ path }) => path !== 'upstreams' || hasUpstreams);
  if (wrong.length > 0) throw configError(file.path, wrong);
}

async function chosenUpstreams(
  options: SetupOptions,
  draft: Draft | undefined,
  context: CommandContext,
): Promise<readonly UpstreamDraft[]> {
  if (options.upstream !== undefined) return chooseUpstreams(options, draft ?? {}, context);
  const needless = ['keyEnv', 'keyStdin', 'baseUrl', 'apiStyle', 'auth', 'allowPrivate'] as const;
  if (needless.some((name) => options[name] !== undefined)) {
    throw new CliError('Which provider is that for? Name it with --upstream.', EXAMPLES, 2);
  }
  // A first setup that names nothing takes what the environment offers, as start does.
  return draft === undefined ? upstreamsFromEnvironment(context.environment) : [];
}

function proxyChanges(flags: ProxyFlags): Draft {
  const names = Object.keys(flags).filter((name): name is ProxySettingName => name !== '');
  const wrong: string[] = [];
  const changes = names.map((name): [string, unknown] => {
    const value = parseProxySetting(name, flags[name] ?? '');
    if (value === undefined) wrong.push(flagNameOf(name));
    return [name, value];
  });
  if (wrong.length === 0) return Object.fromEntries(changes);
  const { problems } = parseConfig({}, {}, flags);
  throw configError(
    '',
    problems.filter(({ origin }) => origin !== undefined),
  );
}

function withToken(draft: Draft): Draft {
  return draft['localToken'] === undefined ? { ...draft, localToken: createLocalToken() } : draft;
}

interface Changes {
  readonly upstreams: readonly UpstreamDraft[];
  readonly changes: Draft;
  readonly options: SetupOptions;
}

function changed(draft: Draft, { upstreams, changes, options }: Changes): Draft {
  let next = options.remove === undefined ? draft : withoutUpstream(draft, options.remove);
  if (Object.keys(changes).length > 0) next = putProxySettings(next, changes);
  for (const upstream of upstreams) {
    const occupant = occupantOf(next, upstream);
    if (occupant !== undefined && options.replace !== true) {
      throw new CliError(
        `${occupant} already speaks ${upstream.apiStyle}, and svc has one upstream for each API style.`,
        `To put ${upstream.name} in its place, add --replace.`,
      );
    }
    next = putUpstream(next, upstream);
  }
  return next;
}

function withoutUpstream(draft: Draft, name: string): Draft {
  const { draft: next, removed } = removeUpstreams(draft, name);
  if (removed > 0) return next;
  const names = upstreamNames(draft);
  const known = names.length === 0 ? 'There is none at all.' : `There is: ${names.join(', ')}.`;
  throw new CliError('--remove: no upstream has this name.', known);
}

interface Judged {
  readonly path: string;
  readonly upstreams: readonly UpstreamDraft[];
}

// A key that is named and not set is right for the file: the shell that runs `svc start` may have it.
function judge(
  draft: Draft,
  { path, upstreams }: Judged,
  { environment, terminal }: CommandContext,
): void {
  // Variables and flags of this shell say nothing about the file.
  const { problems, warnings } = parseConfig(draft, environmentOfKeys(environment));
  const wrong = problems.filter(({ isUnset }) => isUnset !== true);
  if (wrong.length > 0) throw configError(path, wrong);
  warnOf(warnings, terminal);
  if (problems.length > 0) {
    const names = upstreams.map(({ providerKey }) => providerKey).filter((key) => isRecord(key));
    const unset = [...new Set(names.map(({ env }) => env))].filter((name) => !environment[name]);
    const which = unset.length === 0 ? 'A key' : unset.map((name) => `$${name}`).join(' and ');
    terminal.warn(`${which} is not set in this shell: svc start needs it where it runs.`);
  }
}

function environmentOfKeys(
  environment: CommandContext['environment'],
): CommandContext['environment'] {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith('SVC_')),
  );
}
