import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLAUDE_FOLDER, CODEX_FOLDER } from '../../adapters/foreign/client-files.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import type { ClientFileForm } from './client-file.ts';
import { clientFolder, clientHome, CONFIG_FOLDER } from './client-home.ts';
import { jsonSettings, type JsonSetting } from './json-settings.ts';
import { commandLine } from './own-command.ts';

/**
 * Writes svc's hooks into the file in which each client looks for hooks. As long as svc and its folders stay in place,
 * the command for an event is the same at every `svc connect`, because Codex asks the user to trust a changed hook
 * again.
 */

interface HookableClient {
  readonly name: string;
  readonly title: string;
  /** Returns the form of the file. `command`: the words before the event's name; empty when hooks are removed. */
  form(environment: Environment, command: readonly string[]): ClientFileForm;
  /** Notes for the user: what must happen before the client uses the hooks. */
  readonly next: readonly string[];
}

/** The events of Claude Code and Codex, with time limits in seconds. A busy machine may need seconds to start svc. */
const EVENTS = [
  ['SessionStart', 10],
  ['UserPromptSubmit', 5],
  ['PostToolUse', 5],
  ['PreCompact', 5],
  ['Stop', 10],
  ['SessionEnd', 3],
] as const;

/** Matches the tools of Claude Code whose calls say which files and names the work is about. */
const LOOKED_TOOLS = 'Bash|Read|Grep|Glob|Edit|Write';

export const HOOKABLE: readonly HookableClient[] = [
  {
    name: 'claude',
    title: 'Claude Code',
    next: ['Sessions that run already use it after /hooks, or when they begin anew.'],
    form: (environment, command) => {
      return jsonSettings({
        path: join(clientFolder(environment, CLAUDE_FOLDER), 'settings.json'),
        name: 'claude',
        settings: groups('claude', command, { PostToolUse: LOOKED_TOOLS }),
        refusesComments: 'Claude Code',
      });
    },
  },
  {
    name: 'codex',
    title: 'Codex',
    next: [
      'Start codex, and choose "Trust all" where it asks about new hooks. Until then it skips them.',
    ],
    form: (environment, command) => {
      const path = join(clientFolder(environment, CODEX_FOLDER), 'hooks.json');
      return jsonSettings({ path, name: 'codex', settings: groups('codex', command, {}) });
    },
  },
  {
    name: 'copilot',
    title: 'Copilot CLI',
    next: [],
    form: (environment, command) => {
      const path = join(clientHome(environment), '.copilot', 'hooks', 'svc.json');
      return jsonSettings({ path, name: 'copilot', settings: copilotSettings(command) });
    },
  },
  {
    name: 'opencode',
    title: 'opencode',
    next: ['Restart opencode to load it.'],
    form: (environment, command) => {
      const config = clientFolder(environment, CONFIG_FOLDER);
      return pluginFile(join(config, 'opencode', 'plugins', 'svc.js'), 'opencode/svc.js', command);
    },
  },
  {
    name: 'pi',
    title: 'pi',
    next: ['Restart pi to load it.'],
    form: (environment, command) => {
      const path = join(clientHome(environment), '.pi', 'agent', 'extensions', 'svc.ts');
      return pluginFile(path, 'pi/svc.ts', command);
    },
  },
];

export function hookableOf(name: string): HookableClient | undefined {
  return HOOKABLE.find((one) => one.name === name);
}

/**
 * Returns a setting for each event: a group of hooks, as Claude Code and Codex expect it. Returns none for an empty
 * command. `matchers`: for an event, the tools for which its hook runs; without one it runs for all tools.
 */
function groups(
  client: 'claude' | 'codex',
  command: readonly string[],
  matchers: Readonly<Record<string, string>>,
): readonly JsonSetting[] {
  if (command.length === 0) return [];
  return EVENTS.map(([event, timeout]): JsonSetting => {
    const words = [...command, event];
    // On Windows Claude Code runs hooks in Git Bash.
    const isPosix = client === 'claude' || process.platform !== 'win32';
    const line = isPosix ? posixLine(client, words) : windowsLine(words);
    const hook = { type: 'command', command: line, timeout };
    const matcher = matchers[event];
    const value = { ...(matcher !== undefined && { matcher }), hooks: [hook] };
    return { path: ['hooks', event], value, isItem: true };
  });
}

/**
 * Returns the hook's command for a POSIX shell. If svc is not installed any more, the command reports that only at the
 * start of a session, and does nothing at other events.
 */
function posixLine(client: string, words: readonly string[]): string {
  const message = `svc has no memory here: it is not installed any more. To remove its hooks, install it and run: svc disconnect ${client}`;
  const isStart = /^sessionStart$/i.test(words.at(-1) ?? '');
  const otherwise = isStart ? `echo '${JSON.stringify({ systemMessage: message })}'` : ':';
  return `${commandLine(words)} 2>/dev/null || ${otherwise}`;
}

/**
 * Returns the hook's command in a form for both cmd.exe and PowerShell, because the version of Codex decides which one
 * runs it (2026-11-24). It prints nothing if svc is not installed.
 */
function windowsLine(words: readonly string[]): string {
  return `cmd /d /c "${words.join(' ')} 2>nul || exit /b 0"`;
}

const COPILOT_EVENTS = [
  'sessionStart',
  'userPromptTransformed',
  'postToolUse',
  'preCompact',
  'agentStop',
  'sessionEnd',
] as const;

function copilotSettings(command: readonly string[]): readonly JsonSetting[] {
  if (command.length === 0) return [];
  return [
    { path: ['version'], value: 1 },
    ...COPILOT_EVENTS.map((event): JsonSetting => {
      const words = [...command, event];
      const lines = { bash: posixLine('copilot', words), powershell: windowsLine(words) };
      const value = { type: 'command', ...lines, timeoutSec: 5 };
      return { path: ['hooks', event], value, isItem: true };
    }),
  ];
}

/** Returns the form of a plugin file: a copy of the plugin in this package, without any lines of the user. */
export function pluginFile(
  path: string,
  source: string,
  command: readonly string[],
): ClientFileForm {
  return {
    path,
    byHand: () => `delete ${path}.`,
    apply: (text) => {
      if (text.trim() !== '') {
        const remedy = 'Move it away, then try again.';
        throw new CliError(`${path} is there already, and is not svc's.`, remedy);
      }
      const whole = pluginText(source, command);
      return { text: whole, change: { whole } };
    },
    revert: (text, { whole }) => {
      if (text.trim() === '') return 'absent';
      return text === whole ? { text: '' } : 'edited';
    },
    isEmpty: (text) => text.trim() === '',
    hasMark: () => false,
  };
}

/** Returns the plugin's source with the command of this installation. */
function pluginText(source: string, command: readonly string[]): string {
  const file = import.meta.filename;
  const packageFolder = join(dirname(file), file.endsWith('.ts') ? '../../..' : '..');
  const text = readFileSync(join(packageFolder, 'plugins', source), 'utf8');
  // Omit the last two words, `hook` and the client's name, because the plugin adds them and the event.
  const words = JSON.stringify(command.slice(0, -2)).replaceAll('"', "'");
  return text.replace("const COMMAND = ['svc'];", () => `const COMMAND = ${words};`);
}
