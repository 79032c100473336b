import { isAbsolute, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { jsonFault, parseJsonText, withJsonValue } from '../../adapters/files/json-text.ts';
import type { ClientChange, JsonChange } from '../../core/foreign/client-change.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { CliError } from '../cli-error.ts';
import type { ClientFileForm, Reverted } from './client-file.ts';
import { clientHome } from './client-home.ts';

/**
 * Claude Code's settings.json. svc sets single keys, because JSON has no comments to mark a block
 * with, and the client writes the file anew whenever it changes a setting. The record knows the
 * keys.
 */
export function claudeFile(
  environment: Environment,
  settings: readonly Omit<JsonChange, 'before'>[],
): ClientFileForm {
  const own = environment['CLAUDE_CONFIG_DIR'] ?? '';
  const folder = isAbsolute(own) ? own : join(clientHome(environment), '.claude');
  const path = join(folder, 'settings.json');
  return {
    path,
    undoCommand: 'svc print-config claude --undo',
    byHand: (changes) => `look at ${namesIn(changes)}.`,
    apply: (text) => apply(path, text, settings),
    revert: (text, { json }) => (json === undefined ? 'absent' : revert(text, json)),
    isEmpty: (text) => isDeepStrictEqual(parseJsonText(text), {}),
    // Without a record these are the person's own settings, which give way and come back.
    hasMark: () => false,
  };
}

function apply(
  path: string,
  text: string,
  settings: readonly Omit<JsonChange, 'before'>[],
): { readonly text: string; readonly change: Omit<ClientChange, 'hash'> } {
  const before = text.trim() === '' ? {} : parseJsonText(text);
  if (isRecord(before) && text.trim() !== '' && jsonFault(text) === 'relaxed') {
    throw new CliError(
      `${path} has comments or trailing commas: Claude Code refuses the whole file, so what svc writes would have no effect.`,
      'Take them out, then try again. Nothing was changed.',
    );
  }
  if (!isRecord(before)) {
    throw new CliError(`${path} is not a valid JSON object.`, 'Correct it first, then try again.');
  }
  if (before['env'] !== undefined && !isRecord(before['env'])) {
    throw new CliError(`${path}: env is not an object.`, 'Correct it first, then try again.');
  }
  const start = text.trim() === '' ? '{}\n' : text;
  const after = settings.reduce((now, { path: at, value }) => withJsonValue(now, at, value), start);
  const json = settings.map((setting): JsonChange => {
    const old = valueAt(before, setting.path);
    return old === undefined ? setting : { ...setting, before: old };
  });
  // A key that stands twice would keep its second value: the outcome is read again, not believed.
  if (!isDeepStrictEqual(plain(parseJsonText(after)), plain(withSettings(before, settings)))) {
    throw new CliError(
      `${path} says a setting twice, or in a form that svc does not edit.`,
      'Put in by hand what this prints: svc print-config claude --json',
    );
  }
  return { text: after, change: { json } };
}

function withSettings(
  before: Readonly<Record<string, unknown>>,
  settings: readonly Omit<JsonChange, 'before'>[],
): unknown {
  const env = isRecord(before['env']) ? before['env'] : {};
  const wanted: Record<string, unknown> = { ...before };
  for (const { path, value } of settings) {
    const [first = '', second] = path;
    if (second === undefined) wanted[first] = value;
    else wanted[first] = { ...(isRecord(wanted[first]) ? wanted[first] : env), [second]: value };
  }
  return wanted;
}

function revert(text: string, changes: readonly JsonChange[]): Reverted {
  const now = parseJsonText(text);
  if (!isRecord(now)) return 'edited';
  // A key that a person took out, or set back, by hand counts as undone.
  const left = changes.filter(({ path, before }) => {
    const value = valueAt(now, path);
    return value !== undefined && !isDeepStrictEqual(value, before);
  });
  if (left.length === 0) return 'absent';
  if (left.some(({ path, value }) => !isDeepStrictEqual(valueAt(now, path), value)))
    return 'edited';
  const reverted = left.reduce((at, { path, before }) => withJsonValue(at, path, before), text);
  const env = valueAt(parseJsonText(reverted), ['env']);
  const isEnvMade = changes.every(({ path, before }) => path[0] !== 'env' || before === undefined);
  const isEnvLeft = isEnvMade && isDeepStrictEqual(env, {});
  return { text: isEnvLeft ? withJsonValue(reverted, ['env'], undefined) : reverted };
}

function namesIn(changes: readonly ClientChange[]): string {
  const names = changes.flatMap(({ json = [] }) => json.map(({ path }) => path.join('.')));
  return [...new Set(names)].join(', ');
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value);
}

/** Key order does not count. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
