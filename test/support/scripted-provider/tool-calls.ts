import { randomBytes } from 'node:crypto';
import { type JsonObject, field, isObject, listField, textField } from './loose-json.ts';

/** Calls a client's own tools: finds the one that does what a step asks and fills its arguments. */

export interface ToolSpec {
  readonly name: string;
  readonly schema: unknown;
  /** Codex groups some tools: a call names the group too. */
  readonly namespace?: string;
  /** Takes free text instead of JSON arguments. */
  readonly isFreeForm?: boolean;
}

export interface ToolCall {
  /** Without the dialect's prefix. */
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly input: JsonObject;
  /** Set for a free-form tool: then `input` is empty. */
  readonly freeText?: string;
}

/** What the clients call the tool that does this. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  bash: [
    'Bash',
    'bash',
    'exec_command',
    'shell',
    'shell_command',
    'local_shell',
    'run_shell_command',
    'execute_command',
    'run_terminal_command',
    'exec',
  ],
  read: ['Read', 'read', 'read_file', 'view'],
  write: ['Write', 'write', 'write_file', 'create_file'],
  task: ['Task', 'Agent', 'task', 'agent', 'spawn_agent', 'new_task'],
  search: ['ToolSearch', 'tool_search', 'search_tools'],
};

/** Undefined when the client offers no such tool: the step is passed over. */
export function callTool(
  kind: string,
  argument: string,
  tools: readonly ToolSpec[],
): ToolCall | undefined {
  const tool = findTool(kind, tools);
  if (tool === undefined) return undefined;
  const call = {
    id: randomBytes(12).toString('hex'),
    name: tool.name,
    ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
  };
  if (tool.isFreeForm === true)
    return { ...call, input: {}, freeText: freeText(tool.name, argument) };
  const required = requiredInput(tool.schema);
  return { ...call, input: { ...required, ...knownInput(kind, argument, tool.schema) } };
}

function findTool(kind: string, tools: readonly ToolSpec[]): ToolSpec | undefined {
  for (const name of NAMES[kind] ?? [kind]) {
    const tool = tools.find((it) => it.name === name);
    if (tool !== undefined) return tool;
  }
  return undefined;
}

// Codex can offer its shell as a function to call from JavaScript.
function freeText(toolName: string, argument: string): string {
  if (toolName !== 'exec') return argument;
  return `const r = await tools.exec_command({cmd: ${JSON.stringify(argument)}}); text(r.output ?? JSON.stringify(r));`;
}

/** A value of the right type for everything that the schema demands. */
function requiredInput(schema: unknown): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const name of listField(schema, 'required')) {
    if (typeof name === 'string') input[name] = anyValue(name, property(schema, name));
  }
  return input;
}

function anyValue(name: string, schema: unknown): unknown {
  const [firstChoice] = listField(schema, 'enum');
  if (firstChoice !== undefined) return firstChoice;
  const type = field(schema, 'type');
  switch (Array.isArray(type) ? type[0] : type) {
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return 1;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return name;
  }
}

function knownInput(kind: string, argument: string, schema: unknown): Record<string, unknown> {
  switch (kind) {
    case 'bash':
      return shellInput(argument === '' ? 'ls -1' : argument, schema);
    case 'read':
      return sameForAll(['file_path', 'path', 'filePath'], argument, schema);
    case 'task':
      return {
        ...sameForAll(['prompt', 'message', 'task'], argument, schema),
        ...sameForAll(['description'], 'scripted sub task', schema),
        ...sameForAll(['task_name'], 'scripted', schema),
        ...sameForAll(['subagent_type'], 'general-purpose', schema),
      };
    case 'search':
      return sameForAll(['query'], argument, schema);
    default:
      return otherInput(argument, schema);
  }
}

function shellInput(command: string, schema: unknown): Record<string, unknown> {
  const takesList = (name: string) => textField(property(schema, name), 'type') === 'array';
  return {
    ...sameForAll(['cmd'], takesList('cmd') ? [command] : command, schema),
    ...sameForAll(['command'], takesList('command') ? ['bash', '-lc', command] : command, schema),
    ...sameForAll(['description'], 'scripted step', schema),
  };
}

/** Arguments as JSON, or as the one text that the tool's first argument takes. */
function otherInput(argument: string, schema: unknown): Record<string, unknown> {
  if (argument === '') return {};
  if (argument.startsWith('{')) return { ...(JSON.parse(argument) as object) };
  const properties = field(schema, 'properties');
  const [first = isObject(properties) ? Object.keys(properties)[0] : undefined] = listField(
    schema,
    'required',
  );
  return typeof first === 'string' ? { [first]: argument } : {};
}

function sameForAll(
  names: readonly string[],
  value: unknown,
  schema: unknown,
): Record<string, unknown> {
  const known = names.filter((name) => property(schema, name) !== undefined);
  return Object.fromEntries(known.map((name) => [name, value]));
}

function property(schema: unknown, name: string): unknown {
  return field(field(schema, 'properties'), name);
}
