import { expect, test } from 'vitest';
import type { ToolCall } from '../../src/core/conversation/view.ts';
import type { LeftOut } from '../../src/core/ledger/entries.ts';
import { repeatedOutputs } from '../../src/core/shortening/elisions.ts';
import { outputsOf, itemTools, type ToolOutput } from '../../src/core/shortening/outputs.ts';
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
  const read = itemTools(view, { ...item, toolCalls }).calls;
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
  const calls = view.items.flatMap((item) => itemTools(view, item).calls);
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
  return outputsOf(view);
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
    return { before: 1_000, marks: at === 199 ? marks : [`other ${at}`] };
  });
  expect(repeatedOutputs(counting, batches).size).toBe(50);
  expect(reads).toBeLessThanOrEqual(2 * outputs.length);
});

test('a text that many batches hold is left out up to the last of them', () => {
  const [output] = outputsOfRounds(1);
  if (output === undefined) throw new Error('no output');
  const marks = [output.digest.slice(0, 12)];
  const batchAt = (before: number): LeftOut => ({ before, marks });
  const isOut = (...batches: LeftOut[]) => repeatedOutputs([output], batches).has(output);
  const { item } = output;
  expect(isOut(batchAt(item))).toBe(false);
  expect(isOut(batchAt(item + 1))).toBe(true);
  expect(isOut(batchAt(item + 1), batchAt(item))).toBe(true);
});
