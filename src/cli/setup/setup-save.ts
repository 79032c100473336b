import { type ConfigFile, configPath } from '../../adapters/files/config-file.ts';
import { configFolder, dataFolder } from '../../adapters/files/own-folders.ts';
import { updateConfigFile } from '../../adapters/files/config-writer.ts';
import { createLocalToken } from '../../adapters/processes/local-token.ts';
import {
  type Draft,
  newDraft,
  occupantOf,
  putProxySettings,
  putUpstream,
  removeUpstreams,
  type UpstreamDraft,
  upstreamEntries,
  upstreamNames,
} from '../../core/settings/config-draft.ts';
import { isNoToken, parseConfig } from '../../core/settings/config-schema.ts';
import { type Problem, problemText } from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { withoutSettings } from '../../core/settings/config-proxy.ts';
import { CliError } from '../cli-error.ts';
import { findByFiles } from '../proxy/own-proxies.ts';
import type { CommandContext } from '../context.ts';
import { configError, warnOf } from './load-config.ts';
import type { Terminal } from '../terminal.ts';

/** Changes to the configuration file, from flags or answers. Members that are not named here stay unchanged. */
export interface Changes {
  readonly upstreams: readonly UpstreamDraft[];
  /** The changed members of `proxy`. */
  readonly settings: Draft;
  /** The new `memory`; undefined: no change. */
  readonly memory?: Draft;
  /** The names of upstreams to remove. */
  readonly removed: readonly string[];
  /** True: an upstream may replace another one with the same API style. */
  readonly replace: boolean;
  /** True if clients get memory through their hooks. Then a configuration without a provider causes no warning. */
  readonly hooksAlone?: boolean;
}

/** Validates the whole changed configuration, writes it, and returns its content. Throws CliError or FileError. */
export async function saveConfig(changes: Changes, context: CommandContext): Promise<Draft> {
  const folder = configFolder(context.environment);
  let saved: Draft = {};
  let before: Draft = {};
  await updateConfigFile(folder, (old) => {
    refuseUnusable(old);
    const current = isRecord(old?.value) ? old.value : newDraft(createLocalToken());
    const next = changed(withToken(current), changes);
    const { hooksAlone } = changes;
    judge(next, { path: configPath(folder), before: current, hooksAlone }, context);
    before = current;
    saved = next;
    return next;
  });
  context.terminal.note(`Saved: ${configPath(folder)}`);
  if (needsRestart(before, saved)) {
    const { own } = await findByFiles(dataFolder(context.environment));
    if (own.length > 0) context.terminal.warn(RESTART);
  }
  return saved;
}

const RESTART =
  'svc is running, and uses the changed memory or address after a restart: svc stop && svc start --detach';

/** Says whether the changes need a restart: a running proxy applies all others at once. */
function needsRestart(before: Draft, after: Draft): boolean {
  const [old, now] = [before, after].map(({ memory, proxy }) => {
    const { host, port } = isRecord(proxy) ? proxy : {};
    return JSON.stringify([memory, host, port]);
  });
  return old !== now;
}

/** A client whose own settings file setup has just changed, so that it uses svc. */
export interface StartedClient {
  readonly program: string;
  /** True if the client itself starts the proxy when none runs. */
  readonly startsProxy: boolean;
}

/** Prints which command the user can type next. `clients`: those whose settings setup has changed. */
export function noteNext(
  config: Draft,
  terminal: Terminal,
  clients: readonly StartedClient[] = [],
): void {
  const styles = upstreamEntries(config).map((one) => one['apiStyle']);
  if (styles.length === 0 && clients.length === 0) {
    terminal.note(
      'Next, add a provider: svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY',
    );
    return;
  }
  const commands = [
    ...(styles.includes('anthropic_messages') ? ['svc run claude'] : []),
    ...(styles.includes('openai_responses') ? ['svc run codex'] : []),
  ];
  const programs = clients.map(({ program }) => program);
  const needsStart = clients.some(({ startsProxy }) => !startsProxy);
  const start = needsStart ? 'svc start --detach, then ' : '';
  const own =
    commands.length === 0
      ? 'svc start, and set the base URL of your client to its address'
      : commands.join(', or ');
  terminal.note(`Next: ${programs.length === 0 ? own : `${start}${programs.join(', or ')}`}`);
}

/** Throws CliError if the file does not have the shape of a configuration: an edit would drop its content. */
export function refuseUnusable(file: ConfigFile | undefined): void {
  if (file === undefined) return;
  const shapes = ['config', 'version', 'proxy', 'upstreams'];
  const problems = parseConfig(file.value, {}).problems.filter(({ path }) => shapes.includes(path));
  const hasUpstreams = isRecord(file.value) && file.value['upstreams'] !== undefined;
  const wrong = problems.filter(({ path }) => path !== 'upstreams' || hasUpstreams);
  if (wrong.length > 0) throw configError(file.path, wrong);
}

function withToken(draft: Draft): Draft {
  return isNoToken(draft['localToken']) ? { ...draft, localToken: createLocalToken() } : draft;
}

function changed(draft: Draft, changes: Changes): Draft {
  const { upstreams, settings, memory, removed, replace } = changes;
  let next = removed.reduce(withoutUpstream, draft);
  if (memory !== undefined) next = { ...next, memory };
  if (Object.keys(settings).length > 0) next = putProxySettings(next, settings);
  for (const upstream of upstreams) {
    const occupant = occupantOf(next, upstream);
    if (occupant !== undefined && !replace) {
      throw new CliError(
        `${occupant} already serves ${upstream.apiStyle}, and svc has one upstream for each API style.`,
        `To replace it by ${upstream.name}, add --replace.`,
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
  const known =
    names.length === 0
      ? 'No upstream is configured.'
      : `Configured upstreams: ${names.join(', ')}.`;
  throw new CliError('--remove: no upstream has this name.', known);
}

interface Judgement {
  readonly path: string;
  /** The file's content before the change. */
  readonly before: Draft;
  readonly hooksAlone: boolean | undefined;
}

/**
 * Throws CliError for an invalid configuration, and prints warnings. A variable that this shell does not have, or that
 * has a wrong value here, is no error: the shell that runs `svc start` may differ.
 */
function judge(draft: Draft, judged: Judgement, { environment, terminal }: CommandContext): void {
  // Ignore the variables that override settings, because an error in such a variable is no error of the file.
  const { problems, warnings } = parseConfig(draft, withoutSettings(environment));
  const wrong = problems.filter(({ variable, isUnset }) => variable === undefined && !isUnset);
  if (wrong.length > 0) throw notSaved(wrong, judged);
  const others = problems.filter(({ isUnset }) => isUnset !== true);
  const shown = [...warnings, ...others].filter(
    ({ path }) => judged.hooksAlone !== true || path !== 'upstreams',
  );
  warnOf(shown, terminal);
  const unset = problems.filter(({ isUnset }) => isUnset === true);
  if (unset.length === 0) return;
  const named = unset.flatMap(({ variable }) => (variable === undefined ? [] : [`$${variable}`]));
  const which = named.length === 0 ? 'A key' : [...new Set(named)].join(' and ');
  terminal.warn(`${which} is not set in this shell. svc start needs it in its environment.`);
}

/** Returns the error for an invalid result. If the file had such a problem before, the hint is to correct the file. */
function notSaved(wrong: readonly Problem[], { path, before }: Judgement): CliError {
  const known = parseConfig(before, {}).problems.map(problemText);
  const lines = wrong.map(problemText);
  if (lines.some((line) => known.includes(line))) return configError(path, wrong);
  const isAddress = wrong.every(({ path: at }) => /^upstreams.*\.baseUrl$/.test(at));
  const hint = isAddress
    ? 'Nothing was saved. For an address of your own network or machine, add --allow-private.'
    : 'Nothing was saved. See: svc setup --help';
  return new CliError(lines, hint);
}

/** Writes the first configuration, for providers whose keys are in variables. The file names only the variables. */
export async function writeDerivedConfig(
  folder: string,
  upstreams: readonly UpstreamDraft[],
  { terminal }: CommandContext,
): Promise<void> {
  let isWritten = false;
  await updateConfigFile(folder, (old) => {
    // Another process of svc may have created the file meanwhile. Then keep it.
    if (isRecord(old?.value)) return old.value;
    isWritten = true;
    return upstreams.reduce<Draft>(putUpstream, newDraft(createLocalToken()));
  });
  if (!isWritten) return;
  const names = [...new Set(upstreams.map(({ name }) => name))].join(' and ');
  terminal.note(`svc wrote ${configPath(folder)} for ${names}, from the keys in the environment.`);
}
