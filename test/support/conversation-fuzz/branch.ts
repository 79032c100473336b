import type { Dialect } from '../../../src/core/conversation/view.ts';
import { marked } from '../conversations.ts';
import { requestWith, said, type WireItem } from '../dialect-wire.ts';
import { BINDING_BETA } from '../strict-provider/messages-shape.ts';
import type { Sent } from './prefix.ts';
import type { BranchKind, MemoryHeader } from './steps.ts';

/** One conversation as its client has it, and the requests that the client writes. */

/** Of the second one nothing is stated: it is the space of requests without a project. */
export const SPACES = ['alpha', 'default', 'beta'] as const;

export interface Branch {
  readonly kind: BranchKind;
  readonly session: string | undefined;
  readonly model: string;
  readonly items: readonly WireItem[];
  /** The provider's answer to the newest request: its text, and its thinking as it goes back. */
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
    ...(kind.dropsBlocks && { 'anthropic-beta': BINDING_BETA }),
  };
}

export function bodyOf({ kind, model, items }: Branch): Buffer {
  const { dialect, hasTools, isStreamed, writesParts, dropsBlocks } = kind;
  const block_binding = { prefix_mismatch_behavior: 'drop_block' };
  const extra = {
    model,
    ...(hasTools && { tools: [{ type: 'function', name: 'shell' }] }),
    ...(isStreamed && { stream: true }),
    ...(dropsBlocks &&
      dialect === 'anthropic_messages' && { thinking: { type: 'adaptive', block_binding } }),
  };
  const movesMark = writesParts && dialect === 'anthropic_messages';
  const written = movesMark ? marked(items) : items;
  return Buffer.from(JSON.stringify(requestWith(dialect, written, extra)));
}

/** The items with the provider's answer to them. */
export function answered({ kind, items, answer }: Branch): readonly WireItem[] {
  const { text, thoughts } = answer;
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
