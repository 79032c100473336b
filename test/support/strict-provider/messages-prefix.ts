import {
  type JsonObject,
  field,
  isObject,
  listField,
  textField,
} from '../scripted-provider/loose-json.ts';
import { measure } from './canonical.ts';
import type { Readings } from './settings.ts';

/** A Messages request as the prefix check and the prompt cache see it: pieces in the order of the prompt. */

export interface Piece {
  readonly digest: string;
  readonly tokens: number;
  readonly path: string;
  /** The lifetime of the cache entry that a mark on it asks for. */
  readonly mark: '5m' | '1h' | undefined;
  /** Set for thinking, which is no part of the prefix of later thinking. */
  readonly thought: Thought | undefined;
}

export interface Thought {
  readonly type: 'thinking' | 'redacted_thinking' | 'connector_text';
  readonly seal: string;
  readonly text: string;
}

export interface MessagesPrefix {
  readonly tools: readonly Piece[];
  readonly system: readonly Piece[];
  readonly messages: readonly Piece[];
}

export function readMessages(json: unknown, readings: Readings): MessagesPrefix {
  const pieceAt = (value: unknown, path: string): Piece => pieceOf(value, path, readings);
  const tools = listField(json, 'tools').filter((tool) => field(tool, 'defer_loading') !== true);
  const messages = listField(json, 'messages').flatMap((message, at) =>
    piecesOfMessage(message, `messages.${at}`, readings),
  );
  return {
    tools: tools.map((tool, at) => pieceAt(tool, `tools.${at}`)),
    system: blocksOf(field(json, 'system'), readings).map((it, at) => pieceAt(it, `system.${at}`)),
    messages: sinceCompaction(messages),
  };
}

/** The message itself is a piece before its blocks, with what it says beside its content. */
export function piecesOfMessage(
  message: unknown,
  path: string,
  readings: Readings,
): readonly (Piece & { readonly isCompaction: boolean })[] {
  const { content, ...rest } = isObject(message) ? message : {};
  const start = { ...pieceOf({ message: rest }, path, readings), isCompaction: false };
  const blocks = blocksOf(content, readings).map((block, at) => ({
    ...pieceOf(block, `${path}.content.${at}`, readings),
    isCompaction: field(block, 'type') === 'compaction',
  }));
  return [start, ...blocks];
}

/**
 * "With server-side compaction, the checked prefix starts at the most recent compaction block"
 * (preserved-thinking, 2026-09-26).
 */
function sinceCompaction(
  pieces: readonly (Piece & { readonly isCompaction: boolean })[],
): readonly Piece[] {
  const last = pieces.findLastIndex(({ isCompaction }) => isCompaction);
  return pieces.slice(Math.max(0, last));
}

function pieceOf(block: unknown, path: string, readings: Readings): Piece {
  const mark = field(block, 'cache_control');
  return {
    ...measure(sameForm(block, readings)),
    path,
    mark: mark === undefined ? undefined : textField(mark, 'ttl') === '1h' ? '1h' : '5m',
    thought: thoughtOf(block),
  };
}

function thoughtOf(block: unknown): Thought | undefined {
  switch (field(block, 'type')) {
    case 'thinking':
      return {
        type: 'thinking',
        seal: textField(block, 'signature'),
        text: textField(block, 'thinking'),
      };
    // Bound too: @anthropic-ai/sdk 1.14.0, `input_transformations` of a beta message, read 2026-11-30.
    case 'connector_text':
      return {
        type: 'connector_text',
        seal: textField(block, 'signature'),
        text: textField(block, 'text'),
      };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', seal: textField(block, 'data'), text: '' };
    default:
      return undefined;
  }
}

/** The same for a result of a tool, whose content has both forms too. */
function sameForm(block: unknown, readings: Readings): unknown {
  if (!isObject(block) || block['type'] !== 'tool_result') return block;
  return { ...block, content: blocksOf(block['content'], readings) } satisfies JsonObject;
}

function blocksOf(content: unknown, { stringIsOneBlock }: Readings): readonly unknown[] {
  if (Array.isArray(content)) return content;
  if (typeof content !== 'string') return [];
  return [stringIsOneBlock ? { type: 'text', text: content } : { string: content }];
}
