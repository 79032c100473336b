import { expect, test } from 'vitest';
import type { Item, RequestView, ToolCall } from '../../src/core/conversation/view.ts';
import type { LeftOut } from '../../src/core/ledger/entries.ts';
import { repeatedOutputs } from '../../src/core/shortening/elisions.ts';
import { outputsOf } from '../../src/core/shortening/output-list.ts';
import {
  type ItemCall,
  type ItemTools,
  readItemTools,
  type ToolOutput,
} from '../../src/core/shortening/outputs.ts';
import { countRereads } from '../../src/core/shortening/rereads.ts';
import { longOutput, sessionBody } from '../support/tool-session.ts';
import { viewOf } from '../support/view-of.ts';

/**
 * Work that grew with the square of the calls, of the batches or of the files held the process for
 * minutes. These tests count what is read, because times say little on a busy machine.
 */

/** The same object, which counts how often its property is read. */
function counted<Value extends object>(value: Value, name: keyof Value, count: () => void): Value {
  const own = value[name];
  return Object.defineProperty({ ...value }, name, {
    enumerable: true,
    get: () => {
      count();
      return own;
    },
  });
}

const CALLS = 2_000;

test('the calls of one item are read once each', () => {
  const calls = Array.from({ length: CALLS }, (_, at) => ({
    type: 'tool_use',
    id: `c${at}`,
    name: `tool ${at % 7}`,
    input: {},
  }));
  const view = viewOf('anthropic_messages', { messages: [{ role: 'assistant', content: calls }] });
  const [item] = view.items;
  if (item === undefined) throw new Error('no item');
  let reads = 0;
  const toolCalls = item.toolCalls.map((call): ToolCall =>
    counted(call, 'id', () => {
      reads += 1;
    }),
  );
  const read = readItemTools(view, { ...item, toolCalls }).calls;
  expect(read.map(({ tool }) => tool)).toEqual(calls.map(({ name }) => name));
  expect(reads).toBeLessThanOrEqual(2 * CALLS);
});

test('two calls with one id: the first names the tool', () => {
  const call = { type: 'tool_use', id: 'same', input: {} };
  const content = [
    { ...call, name: 'first' },
    { ...call, name: 'second' },
  ];
  const view = viewOf('anthropic_messages', { messages: [{ role: 'assistant', content }] });
  const calls = view.items.flatMap((item) => readItemTools(view, item).calls);
  expect(calls.map(({ tool }) => tool)).toEqual(['first', 'first']);
});

function outputsOfRounds(count: number): readonly ToolOutput[] {
  const rounds = Array.from({ length: count }, (_, at) => ({
    id: `c${at}`,
    tool: 'Bash',
    args: {},
    output: longOutput(`${at}`, 40),
  }));
  const view = viewOf('anthropic_messages', sessionBody('anthropic_messages', rounds));
  return outputsOf(view, (item) => readItemTools(view, item));
}

test('an output is looked at once, however many batches there are', () => {
  const outputs = outputsOfRounds(50);
  const marks = outputs.map(({ digest }) => digest.slice(0, 12));
  let reads = 0;
  const counting = outputs.map((output) =>
    counted(output, 'mark', () => {
      reads += 1;
    }),
  );
  const batches = Array.from({ length: 200 }, (_, at): LeftOut => {
    return { before: 1_000, stubForm: 2, marks: at === 199 ? marks : [`other ${at}`] };
  });
  expect(repeatedOutputs(counting, batches).size).toBe(50);
  expect(reads).toBeLessThanOrEqual(2 * outputs.length);
});

test('a text that many batches hold is left out up to the last of them', () => {
  const [output] = outputsOfRounds(1);
  if (output === undefined) throw new Error('no output');
  const marks = [output.digest.slice(0, 12)];
  const batchAt = (before: number, stubForm: number): LeftOut => ({ before, stubForm, marks });
  const formOf = (...batches: LeftOut[]) => repeatedOutputs([output], batches).get(output);
  const { item } = output;
  expect(formOf(batchAt(item, 2))).toBeUndefined();
  expect(formOf(batchAt(item + 1, 2), batchAt(item, 2))).toBe(2);
  // The older form ended before this output, so its words are those of the newer one.
  expect(formOf(batchAt(item, 1), batchAt(item + 1, 2))).toBe(2);
  expect(formOf(batchAt(item + 1, 2), batchAt(item + 1, 1))).toBe(1);
});

test('a file that is read again is looked up once, however many were left out', () => {
  let reads = 0;
  const callOf = (id: string, file: string): ItemCall =>
    counted({ id, tool: 'Read', path: file, prints: [], references: [] }, 'path', () => {
      reads += 1;
    });
  const earlier = Array.from({ length: CALLS }, (_, at) => callOf(`c${at}`, `/a/b/${at}.ts`));
  const again = Array.from({ length: CALLS }, (_, at) => callOf(`d${at}`, `b/${at + 10}.ts`));
  const view = viewOf('anthropic_messages', {
    messages: [
      roundOf(earlier.map(({ id }) => id)).calls,
      roundOf(earlier.map(({ id }) => id)).results,
      roundOf(again.map(({ id }) => id)).calls,
      roundOf(again.map(({ id }) => id)).results,
    ],
  });
  const toolsOf = (item: Item): ItemTools => ({
    calls: item === view.items[0] ? earlier : item === view.items[2] ? again : [],
    outputs: [],
  });
  const elided = outputsIn(view).slice(0, CALLS);
  expect(countRereads(view, elided, toolsOf)).toEqual({ outputs: 0, files: CALLS - 10 });
  expect(reads).toBeLessThanOrEqual(10 * CALLS);
});

function outputsIn(view: RequestView): readonly ToolOutput[] {
  return outputsOf(view, (item) => readItemTools(view, item));
}

function roundOf(ids: readonly string[]) {
  return {
    calls: {
      role: 'assistant',
      content: ids.map((id) => ({ type: 'tool_use', id, name: 'Read', input: {} })),
    },
    results: {
      role: 'user',
      content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'text' })),
    },
  };
}
