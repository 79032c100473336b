import type { Dialect, ItemTraits, Item, RequestView } from '../conversation/view.ts';
import { DIALECTS } from './apis.ts';
import { MESSAGES } from './anthropic/dialect.ts';
import { CHAT } from './chat/dialect.ts';
import type { DialectDescriptor, HasFrames } from './descriptor.ts';
import { RESPONSES } from './responses/dialect.ts';
import { asList, asRecord, asText, type Fields, parseJson } from '../bytes/json-fields.ts';
import { parseSpan } from '../bytes/json-scan.ts';

const DESCRIPTORS: Readonly<Record<Dialect, DialectDescriptor>> = {
  anthropic_messages: MESSAGES,
  openai_responses: RESPONSES,
  openai_chat_completions: CHAT,
};

export const DIALECT_DESCRIPTORS: readonly DialectDescriptor[] = DIALECTS.map(dialectOf);

export function dialectOf(name: Dialect): DialectDescriptor {
  return DESCRIPTORS[name];
}

export function readItem(name: Dialect, value: unknown, hasFrames?: HasFrames): ItemTraits {
  return DESCRIPTORS[name].readItem(value, hasFrames);
}

export interface Call {
  readonly id: string;
  /** The tool's name; '' if the item has no call with this id. */
  readonly tool: string;
  /** The arguments, if they are an object; otherwise {}. */
  readonly fields: Fields;
  /** The arguments: as the client wrote them if they are a string, otherwise as JSON. */
  readonly text: string;
}

/** Reads the calls of an item: the tool's name and its arguments. Blocks that are no call are read as empty calls. */
export function callsOf(
  { bytes, dialect }: Pick<RequestView, 'bytes' | 'dialect'>,
  item: Item,
): readonly Call[] {
  const value = asRecord(parseSpan(bytes, item));
  // If two calls share an id, the first names the tool.
  const tools = new Map(item.toolCalls.toReversed().map(({ id, name }) => [id, name]));
  return dialectOf(dialect)
    .callArguments(value)
    .map(([id, args]) => {
      const tool = tools.get(id) ?? '';
      const text = typeof args === 'string' ? args : JSON.stringify(args ?? null);
      const fields = asRecord(typeof args === 'string' ? parseJson(args) : args);
      return { id, tool, fields, text };
    });
}

const PATH_FIELDS = ['file_path', 'path', 'filePath', 'absolute_path', 'notebook_path'] as const;

/** Returns the file that a call names; '' if it names none. */
export function pathIn(fields: Fields): string {
  return PATH_FIELDS.map((name) => asText(fields[name])).find((path) => path !== '') ?? '';
}

/**
 * Returns the command of a call of a shell tool; '' if the call has none. Of a list such as `["bash", "-lc", …]` this
 * is the last word; the words of any other list are joined.
 */
export function commandIn(fields: Fields): string {
  const command = fields['command'] ?? fields['cmd'];
  if (typeof command === 'string') return command;
  const words = asList(command).map(asText);
  return words.includes('-lc') || words.includes('-c') ? (words.at(-1) ?? '') : words.join(' ');
}
