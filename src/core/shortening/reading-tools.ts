import { asList, asRecord, asText } from '../bytes/json-fields.ts';
import type { RequestView, Shell } from '../conversation/view.ts';

/** Finds out whether a request offers the model a tool with which it can read the memory. */

/** A shell runs `svc memory get`; the others are those of `svc mcp`, under whatever prefix. */
const SHELLS: ReadonlySet<string> = new Set(['bash', 'shell', 'powershell', 'terminal', 'exec']);
const READERS =
  /(?:^|[^a-z])(?:(?:exec|execute|run)_(?:shell_|terminal_)?commands?|memory_(?:get|search))$/;

const known = new WeakMap<Shell, boolean>();

export function canReadMemory({ shell }: Pick<RequestView, 'shell'>): boolean {
  const found = known.get(shell) ?? asList(shell.value['tools']).some(reads);
  known.set(shell, found);
  return found;
}

/** Tools are named in the tool, in its `function`, or by a type that the provider knows. */
function reads(tool: unknown): boolean {
  const { name, type, function: own } = asRecord(tool);
  return [name, type, asRecord(own)['name']].some((value) => {
    const words = asText(value)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
      .toLowerCase();
    return READERS.test(words) || words.split(/[^a-z]+/).some((word) => SHELLS.has(word));
  });
}
