import { expect, test } from 'vitest';
import { viewRequest } from '../support/view-of.ts';
import { canReadMemory } from '../../src/core/shortening/removal.ts';

test.each([
  [true, [{ name: 'Bash' }]],
  [true, [{ name: 'Read' }, { type: 'function', function: { name: 'run_shell_command' } }]],
  [true, [{ type: 'local_shell' }]],
  [true, [{ type: 'bash_20250124', name: 'bash' }]],
  [true, [{ name: 'exec_command' }]],
  [true, [{ name: 'container.exec' }]],
  [true, [{ name: 'executeCommand' }]],
  [true, [{ name: 'mcp__svc__memory_get' }]],
  [false, [{ name: 'Read' }, { name: 'WebSearch' }]],
  [false, [{ name: 'execute_sql' }, { name: 'shellfish_lookup' }]],
  [false, [null, 7, { function: 'Bash' }]],
  [false, 'Bash'],
  [false, undefined],
])('a tool can read the memory: %s of %j', (expected, tools) => {
  const body = { model: 'm', messages: [], ...(tools === undefined ? {} : { tools }) };
  const view = viewRequest(Buffer.from(JSON.stringify(body)), 'anthropic_messages');
  expect(view !== undefined && canReadMemory(view)).toBe(expected);
});
