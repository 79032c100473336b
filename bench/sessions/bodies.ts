import type { Session, SessionItem } from './sessions.ts';

/** Writes what a client would have sent at each call of a session, item by item. */

/** The items' JSON in order, and where each stands: a request is a slice of it. */
export class SessionBodies {
  readonly #pieces: readonly Buffer[];
  /** Sessions' items that begin a message, ascending. */
  readonly #starts: readonly number[];
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    const edges = new Set(session.calls.flatMap(({ a, b }) => [a, b]));
    const groups = groupItems(session, edges);
    this.#starts = groups.map(({ start }) => start);
    this.#pieces = groups.map(({ items }) => Buffer.from(messageOf(session, items)));
  }

  /** Where the session's items of each item of such a body begin, and the end of the last one. */
  startsOf(a: number, b: number): readonly number[] {
    return [...this.#starts.filter((start) => start >= a && start < b), b];
  }

  /** The body of a call that saw the items from `a` to `b`. */
  body(a: number, b: number): Buffer {
    const key = this.#session.kind === 'codex' ? 'input' : 'messages';
    const parts: Buffer[] = [Buffer.from(`{"model":"bench","tools":[{"name":"Bash"}],"${key}":[`)];
    for (const [at, start] of this.#starts.entries()) {
      const piece = this.#pieces[at];
      if (start < a || start >= b || piece === undefined) continue;
      if (parts.length > 1) parts.push(COMMA);
      parts.push(piece);
    }
    parts.push(END);
    return Buffer.concat(parts);
  }
}

const COMMA = Buffer.from(',');
const END = Buffer.from(']}');

interface Group {
  readonly start: number;
  readonly items: SessionItem[];
}

/** Blocks of one message: the same role and call, and no request ends between them. */
function groupItems(session: Session, edges: ReadonlySet<number>): readonly Group[] {
  const groups: Group[] = [];
  for (const [at, item] of session.items.entries()) {
    const last = groups.at(-1);
    const before = last?.items.at(-1);
    const isSame =
      session.kind === 'claude-code' &&
      before !== undefined &&
      !edges.has(at) &&
      before.role === item.role &&
      before.call === item.call &&
      item.call !== undefined;
    if (isSame) last?.items.push(item);
    else groups.push({ start: at, items: [item] });
  }
  return groups;
}

function messageOf(session: Session, items: readonly SessionItem[]): string {
  const [first] = items;
  if (first === undefined) return '{}';
  if (session.kind === 'codex') return JSON.stringify(responsesItem(first));
  return JSON.stringify({ role: first.role, content: items.map(block) });
}

function block({ kind, text, tool, tid }: SessionItem): object {
  switch (kind) {
    case 'text':
      return { type: 'text', text };
    case 'thinking':
      return { type: 'thinking', thinking: text, signature: 'c2ln' };
    case 'tool_use':
      return { type: 'tool_use', id: tid, name: tool, input: argumentsOf(tool, text) };
    case 'tool_result':
      return { type: 'tool_result', tool_use_id: tid, content: text };
  }
  return {};
}

function responsesItem({ kind, role, text, tool, tid }: SessionItem): object {
  switch (kind) {
    case 'text':
      return { type: 'message', role, content: text };
    case 'thinking':
      return { type: 'reasoning', summary: [], encrypted_content: text };
    case 'tool_use': {
      const args = JSON.stringify(argumentsOf(tool, text));
      return { type: 'function_call', call_id: tid, name: tool, arguments: args };
    }
    case 'tool_result':
      return { type: 'function_call_output', call_id: tid, output: text };
  }
  return {};
}

/** The logs keep the argument that matters; for these tools it begins with the file. */
function argumentsOf(tool: string | undefined, text: string): object {
  const isFileTool = tool === 'Read' || tool === 'Edit' || tool === 'Write';
  return isFileTool ? { file_path: text.split('\n')[0], text } : { command: text };
}
