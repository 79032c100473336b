import { type ConfigFile, configPath } from '../adapters/config-file.ts';
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
} from '../core/config-draft.ts';
import { parseConfig } from '../core/config-schema.ts';
import { isEnvironmentName, isRecord } from '../core/config-values.ts';
import { withoutSettings } from '../core/config-proxy.ts';
import { CliError } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { configError, warnOf } from './load-config.ts';

/**
 * Writes what flags or answers have changed. The result is judged as a whole before anything is
 * written, and what a change does not name stays as it is.
 */
export interface Changes {
  readonly upstreams: readonly UpstreamDraft[];
  /** Members of `proxy`. */
  readonly settings: Draft;
  /** The whole of `memory`; absent: it stays as it is. */
  readonly memory?: Draft;
  /** Names of upstreams that go. */
  readonly removed: readonly string[];
  /** An upstream may take the place of another one with the same API style. */
  readonly replace: boolean;
}

export async function saveConfig(changes: Changes, context: CommandContext): Promise<void> {
  const folder = configFolder(context.environment);
  const { upstreams } = changes;
  await updateConfigFile(folder, (old) => {
    refuseUnusable(old);
    const current = isRecord(old?.value) ? old.value : newDraft(createLocalToken());
    const next = changed(withToken(current), changes);
    judge(next, { path: configPath(folder), upstreams }, context);
    return next;
  });
  context.terminal.note(`Saved: ${configPath(folder)}`);
}

/** Refuses to edit what has not the shape of a configuration: an edit would throw it away. */
export function refuseUnusable(file: ConfigFile | undefined): void {
  if (file === undefined) return;
  const shapes = ['config', 'version', 'proxy', 'upstreams'];
  const problems = parseConfig(file.value, {}).problems.filter(({ path }) => shapes.includes(path));
  const hasUpstreams = isRecord(file.value) && file.value['upstreams'] !== undefined;
  const wrong = problems.filter(({ path }) => path !== 'upstreams' || hasUpstreams);
  if (wrong.length > 0) throw configError(file.path, wrong);
}

function withToken(draft: Draft): Draft {
  return draft['localToken'] === undefined ? { ...draft, localToken: createLocalToken() } : draft;
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
  const { problems, warnings } = parseConfig(draft, withoutSettings(environment));
  const wrong = problems.filter(({ isUnset }) => isUnset !== true);
  if (wrong.length > 0) throw configError(path, wrong);
  warnOf(warnings, terminal);
  if (problems.length > 0) {
    const service = isRecord(draft['memory']) ? draft['memory']['serviceKey'] : undefined;
    const keys = [...upstreams.map(({ providerKey }) => providerKey), service];
    const names = keys.map((key) => (isRecord(key) ? key['env'] : undefined));
    const named = names.filter((name) => isEnvironmentName(name));
    const unset = [...new Set(named)].filter((name) => !environment[name]);
    const which = unset.length === 0 ? 'A key' : unset.map((name) => `$${name}`).join(' and ');
    terminal.warn(`${which} is not set in this shell: svc start needs it where it runs.`);
  }
}
