import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { findProgram, isInstalled, readSmall } from '../../adapters/foreign/client-files.ts';
import { parseToml } from '../../adapters/foreign/toml-text.ts';
import { asList, asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { HOOKABLE } from '../clients/hook-files.ts';
import type { Check } from './checks.ts';

/** Checks svc's hooks in clients: whether they are installed twice, trusted, run by a second client, or broken. */

/** A client that has svc's hooks. */
interface Installed {
  readonly name: string;
  readonly title: string;
  /** The client's file of hooks. */
  readonly path: string;
  /** The commands of svc in that file. */
  readonly commands: readonly Words[];
  readonly hasPlugin: boolean;
}

/** A command line as words. */
type Words = readonly string[];

/** Returns the names of the clients that have svc's hooks, in their settings or by svc's plugin. */
export function hookedClients(environment: Environment): readonly string[] {
  return installedHooks(environment).map(({ name }) => name);
}

/** Checks the hooks of all clients. `folder`: the folder where doctor runs, whose settings Copilot CLI would read. */
export function checkHooks(environment: Environment, folder: string): readonly Check[] {
  return installedHooks(environment).flatMap((one): readonly Check[] => {
    const { name, title: subject, path, commands, hasPlugin } = one;
    const gone = missing(environment, one);
    const checks = [
      ...gone,
      ...(name === 'claude' ? otherReaders(environment, { path, commands, folder }) : []),
      ...(name === 'codex' && gone.length === 0 ? untrusted(one) : []),
    ];
    if (hasPlugin && commands.length > 0) {
      const found = `svc's hooks are in ${path} and in its plugin, so each event starts svc twice`;
      const fix = `to keep the plugin: svc disconnect ${name}`;
      checks.push({ level: 'warning', subject, found, fix });
    }
    if (checks.some((check) => check.subject === subject)) return checks;
    return [{ level: 'ok', subject, found: 'gets memory through its hooks' }, ...checks];
  });
}

function installedHooks(environment: Environment): readonly Installed[] {
  if (!isAbsolute(environment['HOME'] ?? '')) return [];
  return HOOKABLE.flatMap((client): readonly Installed[] => {
    const { name, title } = client;
    const { path } = client.form(environment, []);
    const commands = commandsIn(readSmall(path));
    const hasPlugin = isPluginOn(PLUGIN_FILES[name]?.(path));
    return commands.length > 0 || hasPlugin ? [{ name, title, path, commands, hasPlugin }] : [];
  });
}

/** Reports hooks whose program is missing. The session continues without memory. */
function missing(
  environment: Environment,
  { name, title, commands, hasPlugin }: Installed,
): Check[] {
  const hasProgram = findProgram(environment, 'svc') !== undefined;
  const gone = commands.map((words) => goneIn(words, hasProgram)).find((one) => one !== undefined);
  const checks: Check[] = [];
  if (gone !== undefined) {
    const found = `its hooks run ${gone}, which does not exist, so it has no memory`;
    const fix = `svc connect ${name} --hooks`;
    checks.push({ level: 'warning', subject: title, found, fix });
  }
  if (hasPlugin && !hasProgram) {
    const found = 'its plugin of svc finds no svc in the search path, so it has no memory';
    const fix = 'npm install -g svc-local-proxy';
    checks.push({ level: 'warning', subject: title, found, fix });
  }
  return checks;
}

/**
 * Returns the missing program of a hook's command: `svc`, or the path of Node or of svc's script. Undefined if none is
 * missing. The command may begin with `env` and variables.
 */
function goneIn(words: Words, hasProgram: boolean): string | undefined {
  const [program, script] = words
    .filter((word, at) => at > 0 || word !== 'env')
    .filter((word) => !/^\w+=/.test(word));
  if (program === 'svc') return hasProgram ? undefined : 'svc';
  return [program, script].find((path) => path && isAbsolute(path) && !existsSync(path));
}

/** Returns svc's commands in a client's file of hooks, which is JSON or, for opencode and pi, svc's plugin. */
function commandsIn(text: string): readonly Words[] {
  const plugin = /^const COMMAND = (\[.*\]);$/m.exec(text)?.[1];
  if (plugin !== undefined) return [asList(parseJson(plugin.replaceAll("'", '"'))).map(String)];
  return linesIn(asRecord(parseJson(text))['hooks'])
    .map(withoutFallback)
    .filter(isHookOfSvc)
    .map(shellWords);
}

function withoutFallback(line: string): string {
  return line.replace(/^cmd \/d \/c "/, '').replace(/ 2>\S+ \|\| .*$/, '');
}

function isHookOfSvc(line: string): boolean {
  return /svc(?:\.js)?'? hook \w+ \w+$/.test(line);
}

/** Returns every text in a JSON value, because clients nest their hooks to different depths. */
function linesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  const inside = Array.isArray(value) ? value : Object.values(asRecord(value));
  return inside.flatMap(linesIn);
}

/** Splits a command line into words. It removes only the quotes in the form that svc writes. */
function shellWords(line: string): Words {
  const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
  return words.map((word) => word.replaceAll(/'([^']*)'|\\'/g, (_, inner = "'") => String(inner)));
}

/** Functions that read a client's list of plugins. `hooks`: the path of the client's file of hooks. */
const PLUGIN_FILES: Readonly<Record<string, (hooks: string) => unknown>> = {
  // Source: code.claude.com/docs/en/plugins-reference (2026-08-22).
  claude: (hooks) => asRecord(parseJson(readSmall(hooks)))['enabledPlugins'],
  // `codex plugin add` writes [plugins."NAME@MARKETPLACE"] with `enabled` (2026-11-24).
  codex: (hooks) => {
    const toml = parseToml(readSmall(join(hooks, '..', 'config.toml')));
    return asRecord(toml)['plugins'];
  },
};

/** The beginning of the name of svc's plugin in a client's list. The marketplace follows. */
const PLUGIN = 'svc-memory@';

function isPluginOn(plugins: unknown): boolean {
  return Object.entries(asRecord(plugins)).some(([name, value]) => {
    const isOff = value === false || asRecord(value)['enabled'] === false;
    return name.startsWith(PLUGIN) && !isOff;
  });
}

/**
 * Reports hooks that Codex skips because the user has not trusted them yet. Codex says so only in its own window.
 *
 * Its config.toml has a table [hooks.state."FILE:EVENT:GROUP:HANDLER"] with `trusted_hash` for each trusted hook. For a
 * plugin FILE is NAME@MARKETPLACE:hooks/hooks.json (Codex 0.169.0, 2026-11-27). svc does not compare the hash, which
 * depends on Codex's version: after a change of the hook Codex itself asks.
 */
function untrusted({ title, path, hasPlugin }: Installed): readonly Check[] {
  const trusted = trustedHooks(dirname(path));
  if (trusted === undefined) return [];
  const files = [path, join(realpathSync(dirname(path)), basename(path))];
  const skipped = eventsIn(path).filter(
    ({ place }) => !files.some((file) => trusted.has(`${file}:${place}`)),
  );
  const isPluginSkipped = hasPlugin && ![...trusted].some((key) => key.startsWith(PLUGIN));
  const fix = 'start codex, and choose "Trust all" where it asks, or trust them in /hooks';
  const finding = (found: string): Check => ({ level: 'warning', subject: title, found, fix });
  const checks: Check[] = [];
  if (skipped.length > 0) {
    const events = skipped.map(({ event }) => event).join(', ');
    checks.push(finding(`it skips svc's hooks in ${path} that it does not trust yet: ${events}`));
  }
  if (isPluginSkipped) {
    checks.push(finding('it skips the hooks of its plugin of svc, which it does not trust yet'));
  }
  return checks;
}

/** Returns the keys of the trusted hooks in the configuration files of Codex; undefined if one cannot be read. */
function trustedHooks(folder: string): ReadonlySet<string> | undefined {
  const texts = configsIn(folder)?.map((name) => readSmall(join(folder, name)));
  if (texts === undefined || texts.includes('')) return undefined;
  const tables = texts.map((text) => parseToml(text));
  if (tables.includes(undefined)) return undefined;
  const states = tables.flatMap((one) =>
    Object.entries(asRecord(asRecord(one?.['hooks'])['state'])),
  );
  return new Set(
    states.flatMap(([key, state]) => (asRecord(state)['trusted_hash'] === undefined ? [] : [key])),
  );
}

function configsIn(folder: string): readonly string[] | undefined {
  try {
    return readdirSync(folder).filter((name) => /(?:^|\.)config\.toml$/.test(name));
  } catch {
    return undefined;
  }
}

/** Returns svc's hooks in Codex's file. `place`: EVENT:GROUP:HANDLER, the end of the key of a trusted hook. */
function eventsIn(path: string): readonly { readonly event: string; readonly place: string }[] {
  const events = Object.entries(asRecord(asRecord(parseJson(readSmall(path)))['hooks']));
  return events.flatMap(([event, groups]) => {
    const name = event.replaceAll(/\B[A-Z]/g, '_$&').toLowerCase();
    return asList(groups).flatMap((group, at) =>
      asList(asRecord(group)['hooks']).flatMap((handler, place) => {
        const line = withoutFallback(asText(asRecord(handler)['command']));
        return isHookOfSvc(line) ? [{ event, place: `${name}:${at}:${place}` }] : [];
      }),
    );
  });
}

/** Reports clients that also run Claude Code's hooks: svc would record their sessions as those of Claude Code. */
function otherReaders(
  environment: Environment,
  { path, commands, folder }: { path: string; commands: readonly Words[]; folder: string },
): readonly Check[] {
  const checks: Check[] = [];
  // Cursor runs Claude Code's hooks if a setting is on. It is off by default
  // (cursor.com/docs/reference/third-party-hooks, 2026-11-24).
  const hasCursor = ['cursor', 'cursor-agent'].some((name) => isInstalled(environment, name));
  if (hasCursor && commands.length > 0) {
    const found = `it also runs svc's hooks in ${path} if it includes third-party configs`;
    const fix =
      'turn off "Include third-party Plugins, Skills, and other configs" in its settings, or: svc disconnect claude';
    checks.push({ level: 'warning', subject: 'Cursor', found, fix });
  }
  // Copilot CLI runs Claude Code's hooks of a project (docs.github.com/en/copilot/reference/hooks-reference, 2026-11).
  const own = join(folder, '.claude', 'settings.json');
  if (isInstalled(environment, 'copilot') && commandsIn(readSmall(own)).length > 0) {
    const found = `it also runs svc's hooks for Claude Code in ${own}`;
    const fix =
      own === path
        ? 'start it in the folder of a project'
        : `remove them from that file, then: svc connect claude --hooks`;
    checks.push({ level: 'warning', subject: 'Copilot CLI', found, fix });
  }
  return checks;
}
