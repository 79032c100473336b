import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { findProgram, isInstalled, readSmall } from '../../adapters/foreign/client-files.ts';
import { parseToml } from '../../adapters/foreign/toml-text.ts';
import { asList, asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { HOOKABLE } from '../clients/hook-files.ts';
import type { Check } from './checks.ts';

/** Doctor's look at svc's hooks: installed twice, run by a second client, or without the program that they name. */

/** The hooks of svc in one client. */
interface Installed {
  readonly name: string;
  readonly title: string;
  /** Its file of hooks. */
  readonly path: string;
  readonly commands: readonly Words[];
  readonly hasPlugin: boolean;
}

type Words = readonly string[];

/** The names of the clients that get memory through hooks, from their settings or from svc's plugin. */
export function hookedClients(environment: Environment): readonly string[] {
  return installedHooks(environment).map(({ name }) => name);
}

/** `folder`: where doctor runs; Copilot CLI reads the settings of a project in it. */
export function checkHooks(environment: Environment, folder: string): readonly Check[] {
  return installedHooks(environment).flatMap((one): readonly Check[] => {
    const { name, title: subject, path, commands, hasPlugin } = one;
    const checks = [
      ...missing(environment, one),
      ...(name === 'claude' ? otherReaders(environment, { path, commands, folder }) : []),
    ];
    if (hasPlugin && commands.length > 0) {
      const found = `svc's hooks are in ${path} and in its plugin, so each event starts svc twice`;
      checks.push({
        level: 'warning',
        subject,
        found,
        fix: `to keep the plugin: svc disconnect ${name}`,
      });
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
    const hasPlugin = name in PLUGIN_FILES && isPluginOn(PLUGIN_FILES[name]?.(path) ?? {});
    return commands.length > 0 || hasPlugin ? [{ name, title, path, commands, hasPlugin }] : [];
  });
}

/** The client goes on without a word where the program of a hook is gone. */
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

/** `svc`, or Node and a script, behind the variables that `env` sets. */
function goneIn(words: Words, hasProgram: boolean): string | undefined {
  const [program, script] = words
    .filter((word, at) => at > 0 || word !== 'env')
    .filter(isNoVariable);
  if (program === 'svc') return hasProgram ? undefined : 'svc';
  return [program, script].find((path) => path && isAbsolute(path) && !existsSync(path));
}

function isNoVariable(word: string): boolean {
  return !/^\w+=/.test(word);
}

/** The commands of svc in a client's file of hooks: JSON, or svc's own plugin. */
function commandsIn(text: string): readonly Words[] {
  const plugin = /^const COMMAND = (\[.*\]);$/m.exec(text)?.[1];
  if (plugin !== undefined) return [asList(parseJson(plugin.replaceAll("'", '"'))).map(String)];
  return linesIn(asRecord(parseJson(text))['hooks'])
    .map((line) => line.replace(/^cmd \/d \/c "/, '').replace(/ 2>\S+ \|\| .*$/, ''))
    .filter((line) => /svc(?:\.js)?'? hook \w+ \w+$/.test(line))
    .map(shellWords);
}

/** Every text in it; a client's groups and handlers differ in depth. */
function linesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  const inside = Array.isArray(value) ? value : Object.values(asRecord(value));
  return inside.flatMap(linesIn);
}

/** Reads the quotes that svc writes; other forms stay as they are. */
function shellWords(line: string): Words {
  const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
  return words.map((word) => word.replaceAll(/'([^']*)'|\\'/g, (_, inner = "'") => String(inner)));
}

/** Where a client keeps which of its plugins are on, read from the folder of its hooks. */
const PLUGIN_FILES: Readonly<Record<string, (hooks: string) => unknown>> = {
  // code.claude.com/docs/en/plugins-reference (2026-08-22).
  claude: (hooks) => asRecord(parseJson(readSmall(hooks)))['enabledPlugins'],
  // `codex plugin add` writes [plugins."NAME@MARKETPLACE"] with `enabled` (2026-11-24).
  codex: (hooks) => {
    const toml = parseToml(readSmall(join(hooks, '..', 'config.toml')).replace(/^\ufeff/, ''));
    return asRecord(toml)['plugins'];
  },
};

/** The name in plugins/. */
const PLUGIN = 'svc-memory@';

function isPluginOn(plugins: unknown): boolean {
  return Object.entries(asRecord(plugins)).some(([name, value]) => {
    const isOff = value === false || asRecord(value)['enabled'] === false;
    return name.startsWith(PLUGIN) && !isOff;
  });
}

/** Clients that run the hooks of Claude Code as their own: svc would take their sessions for Claude Code's. */
function otherReaders(
  environment: Environment,
  { path, commands, folder }: { path: string; commands: readonly Words[]; folder: string },
): readonly Check[] {
  const checks: Check[] = [];
  // cursor.com/docs/reference/third-party-hooks (2026-11-24): the setting is off until a person turns it on.
  const hasCursor = ['cursor', 'cursor-agent'].some((name) => isInstalled(environment, name));
  if (hasCursor && commands.length > 0) {
    const found = `it also runs svc's hooks in ${path} if it includes third-party configs`;
    const fix =
      'turn off "Include third-party Plugins, Skills, and other configs" in its settings, or: svc disconnect claude';
    checks.push({ level: 'warning', subject: 'Cursor', found, fix });
  }
  // docs.github.com/en/copilot/reference/hooks-reference (2026-11): the settings of the project.
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
