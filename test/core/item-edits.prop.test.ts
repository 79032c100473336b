import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { dialectOf } from '../../src/core/dialects/dialects.ts';
import {
  applyEdits,
  contentForm,
  type ContentForm,
  type Edit,
  insertBlock,
} from '../../src/core/plan/item-edits.ts';
import { viewRequest } from '../support/view-of.ts';
import { recordedBodies } from '../support/recorded-bodies.ts';
import { bodyOf, bodyParts } from '../support/json-texts.ts';

const FORMS: readonly ContentForm[] = ['text', 'part'];
const block = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('<memory>\n"quoted" \\ back\u2028\n</memory>', '\ud83d', '', '😀'),
);

describe.each(DIALECTS)('%s', (dialect) => {
  test.each(FORMS)(
    'law 1: a block added as %s changes the value as said and no other byte',
    (form) => {
      fc.assert(
        fc.property(bodyParts(dialect), block, (parts, text) => {
          const bytes = bodyOf(parts);
          const items = viewRequest(bytes, dialect)?.items ?? [];
          for (let at = 0; at < items.length; at += 1) check({ bytes, dialect, at, text, form });
        }),
        { numRuns: 400 },
      );
    },
  );
});

describe.each([
  ['claude-code-2.1.329/long-26-steps', 'anthropic_messages'],
  ['codex-0.169.0/long-26-steps', 'openai_responses'],
] as const)('%s', (scenario, dialect) => {
  test.each(FORMS)(
    'law 1: a block added as %s to any recorded item changes nothing else',
    (form) => {
      const bytes = recordedBodies(scenario).at(2) ?? Buffer.alloc(0);
      const items = viewRequest(bytes, dialect)?.items ?? [];
      expect(items.length).toBeGreaterThan(3);
      for (let at = 0; at < items.length; at += 1) {
        check({ bytes, dialect, at, text: 'recalled: "x"\n', form });
      }
    },
  );
});

interface Case {
  readonly bytes: Buffer;
  readonly dialect: Dialect;
  /** Which item takes the block. */
  readonly at: number;
  readonly text: string;
  readonly form: ContentForm;
}

function check({ bytes, dialect, at, text, form }: Case): void {
  const view = viewRequest(bytes, dialect);
  const item = view?.items[at];
  if (view === undefined || item === undefined) throw new Error('The body has no such item.');
  const edits = insertBlock(view, item, { block: text, form });
  const expected = JSON.parse(bytes.toString()) as Record<string, unknown[]>;
  const items = expected[dialectOf(dialect).listKey] ?? [];
  const isResult = item.toolResultIds.length > 0 && item.role !== 'assistant';
  items[at] =
    isResult && form === 'text'
      ? withResultBlock(items[at], dialect, text)
      : withBlock(items[at], { dialect, text, form });

  const pieces = applyEdits(bytes, edits);
  expect(JSON.parse(Buffer.concat(pieces).toString())).toEqual(expected);
  expect(
    edits.every(({ start, end }) => start === end && start > item.start && end < item.end),
  ).toBe(true);
  expect(Buffer.concat(pieces.filter((piece) => !isNew(piece, edits))).equals(bytes)).toBe(true);
  // A block goes into the text of a result, and never beside it.
  if (!isResult) expect(edits.length > 0).toBe(contentForm(view, item) !== undefined);
}

function isNew(piece: Uint8Array, edits: readonly Edit[]): boolean {
  return edits.some((edit) => edit.bytes === piece);
}

type Json = Record<string, unknown>;

/** The block at the end of the newest result's text; the item as it is where that has none. */
function withResultBlock(given: unknown, dialect: Dialect, text: string): unknown {
  const item = structuredClone(given) as Json;
  const results =
    dialect === 'anthropic_messages' && Array.isArray(item['content'])
      ? (item['content'] as Json[]).filter((part) => part?.['type'] === 'tool_result')
      : [item];
  const result = results.at(-1);
  const key = dialect === 'openai_responses' ? 'output' : 'content';
  const said = result?.[key];
  if (result !== undefined && typeof said === 'string') result[key] = `${said}\n\n${text}`;
  if (!Array.isArray(said)) return item;
  const parts = said as Json[];
  const isPlain = parts.every((part) => /text|image/.test(String(part?.['type'])));
  const last = parts.findLast((part) => typeof part?.['text'] === 'string');
  if (isPlain && last !== undefined) last['text'] = `${String(last['text'])}\n\n${text}`;
  return item;
}

/** The same change, made on the parsed item. */
function withBlock(item: unknown, { dialect, text, form }: Omit<Case, 'bytes' | 'at'>): unknown {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return item;
  const content: unknown = Reflect.get(item, 'content');
  const type = dialect === 'openai_responses' ? 'input_text' : 'text';
  const part = { type, text };
  if (typeof content === 'string') {
    const asText = `${content}\n\n${text}`;
    return { ...item, content: form === 'text' ? asText : [{ type, text: content }, part] };
  }
  if (!Array.isArray(content)) return item;
  const last = content.at(-1) as { type?: unknown; text?: unknown } | null | undefined;
  const isText = last?.type === 'text' || last?.type === 'input_text';
  if (form === 'part' || !isText || typeof last.text !== 'string') {
    return { ...item, content: [...content, part] };
  }
  return {
    ...item,
    content: [...content.slice(0, -1), { ...last, text: `${last.text}\n\n${text}` }],
  };
}
