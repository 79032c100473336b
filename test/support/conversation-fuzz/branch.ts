import type { Dialect } from '../../../src/core/conversation/view.ts';
import { marked } from '../conversations.ts';
import { requestWith, said, type WireItem } from '../dialect-wire.ts';
import { BINDING_BETA } from '../strict-provider/messages-shape.ts';
import type { Sent } from './prefix.ts';
import { type BranchKind, type MemoryHeader, modelsOf } from './steps.ts';

/** One conversation as its client has it, and the requests that the client writes. */

/** Of the second one nothing is stated: it is the space of requests without a project. */
export const SPACES = ['alpha', 'default', 'beta'] as const;

export interface Branch {
  readonly kind: BranchKind;
  readonly session: string | undefined;
  readonly model: string;
  readonly items: readonly WireItem[];
  /** The provider refused a request for something else than thinking. */
  readonly wasRefused?: boolean;
  /** The next words of the person go into the message before them. */
  readonly isMerging?: boolean;
  /** Counts the changes of the system prompt, and the tools that came late. */
  readonly systems: number;
  readonly tools: number;
  /** The provider's answer to the newest request: its text, and what stood in front of it, as it goes back. */
  readonly answer: { readonly text: string; readonly thoughts: readonly WireItem[] };
  readonly memory: MemoryHeader;
  /** The client asks the provider itself. */
  readonly isAway: boolean;
  /** Which of the two proxies it asks. */
  readonly proxy: 0 | 1;
  /** Thinking that was lost because the person went on without svc: nobody can bring it back. */
  readonly given: ReadonlySet<string>;
  /** All requests of this conversation and of those that it came from. */
  readonly sent: readonly Sent[];
}

export const NO_ANSWER = { text: '', thoughts: [] };

/** A conversation of which nothing was sent yet. */
export function newBranch(
  kind: BranchKind,
  {
    session,
    items = [],
  }: { readonly session: string | undefined; readonly items?: readonly WireItem[] },
): Branch {
  return {
    kind,
    session,
    model: modelOf(kind, kind.model),
    items,
    answer: NO_ANSWER,
    memory: 'on',
    isAway: false,
    proxy: 0,
    systems: 0,
    tools: 0,
    given: new Set(),
    sent: [],
  };
}

export function modelOf({ dialect }: BranchKind, choice: number): string {
  const models = modelsOf(dialect);
  return models[choice % models.length] ?? 'gemini-2.5-pro';
}

export function spaceOf({ space }: BranchKind): (typeof SPACES)[number] {
  return SPACES[space % SPACES.length] ?? 'default';
}

const MEMORY_MODES = { on: undefined, off: 'off', write: 'write', read: 'read' } as const;

export function headersOf({ kind, session, memory }: Branch): Record<string, string> {
  const space = spaceOf(kind);
  const mode = MEMORY_MODES[memory];
  return {
    ...(space !== 'default' && { 'x-svc-memory-space': space }),
    ...(session !== undefined && { 'session-id': session }),
    ...(mode !== undefined && { 'x-svc-memory-mode': mode }),
    ...(kind.dialect === 'anthropic_messages' && {
      'anthropic-beta': betasOf(kind).join(),
    }),
  };
}

/** `clear_at` and `output_config` of a system message need theirs. */
export function betasOf({ dropsBlocks }: BranchKind): readonly string[] {
  const betas = [
    'mid-conversation-system-clear-at-2026-08-21',
    'mid-conversation-output-config-2026-07-01',
    'compact-2026-01-12',
  ];
  return dropsBlocks ? [...betas, BINDING_BETA] : betas;
}

export function bodyOf(
  { kind, model, items, systems, tools }: Branch,
  more: WireItem = {},
): Buffer {
  const { dialect, hasTools, isStreamed, writesParts, dropsBlocks } = kind;
  const block_binding = { prefix_mismatch_behavior: 'drop_block' };
  const extra = {
    model,
    ...more,
    ...(hasTools && { tools: toolsOf(tools) }),
    ...(systems > 0 && {
      [dialect === 'anthropic_messages' ? 'system' : 'instructions']: `It is day ${systems}.`,
    }),
    ...(isStreamed && { stream: true }),
    ...(dropsBlocks &&
      dialect === 'anthropic_messages' && { thinking: { type: 'adaptive', block_binding } }),
  };
  const isNote = JSON.stringify(items.at(-1)?.['content']) === '[]';
  const movesMark = writesParts && dialect === 'anthropic_messages' && !isNote;
  const written = movesMark ? marked(items) : items;
  return Buffer.from(JSON.stringify(requestWith(dialect, written, extra)));
}

function toolsOf(late: number): readonly WireItem[] {
  const names = ['shell', ...Array.from({ length: late }, (_, at) => `late_${at}`)];
  return names.map((name) => ({ type: 'function', name }));
}

/** The items with the provider's answer to them. */
export function answered({ kind, items, answer }: Branch): readonly WireItem[] {
  const { text, thoughts } = answer;
  if (text === '') return items;
  const content =
    kind.writesParts && kind.dialect === 'openai_responses'
      ? [{ type: 'output_text', text, annotations: [] }]
      : text;
  return [...items, ...behindThoughts(kind.dialect, thoughts, [said('assistant', content)])];
}

/** What the model made, with its thinking in front: in the same message, or as items of their own. */
export function behindThoughts(
  dialect: Dialect,
  thoughts: readonly WireItem[],
  made: readonly WireItem[],
): readonly WireItem[] {
  if (thoughts.length === 0) return made;
  if (dialect !== 'anthropic_messages') return [...thoughts, ...made];
  const [first, ...rest] = made;
  const content = first?.['content'];
  const blocks: readonly unknown[] = Array.isArray(content)
    ? content
    : [{ type: 'text', text: content }];
  return [said('assistant', [...thoughts, ...blocks]), ...rest];
}
