import { expect, test } from 'vitest';
import { folderSpace } from '../../src/core/request/space.ts';
import { Conversations } from '../../src/proxy/conversations.ts';
import { settleProject } from '../../src/proxy/read-request.ts';
import { readRequest } from '../support/view-of.ts';

/** A service reads no folder of its callers. */

function readingIn(folder: string, headers: readonly string[] = []) {
  const conversations = new Conversations();
  const body = {
    system: `Working directory: ${folder}`,
    messages: [{ role: 'user', content: 'hello' }],
  };
  const reading = readRequest(conversations, {
    id: 'r',
    route: { kind: 'model', dialect: 'anthropic_messages' },
    method: 'POST',
    target: '/v1/messages',
    headers: ['user-agent', 'opencode/1.18.33', ...headers],
    body: Buffer.from(JSON.stringify(body)),
    startedAt: 0,
  });
  if (reading === undefined) throw new Error('The body was not read.');
  return { reading };
}

test('where no folder can be read, a project is the folder that the client states', async () => {
  const { reading } = readingIn('/home/anna/shop');
  expect(reading.place.space).toBe(folderSpace('/home/anna/shop'));
  expect(reading.unknownPlace).toBeUndefined();
  expect(reading.workplace).toBeUndefined();
  expect(await settleProject(reading, undefined)).toBe(reading);
});

test('a space that a header names comes before it', () => {
  const { reading } = readingIn('/home/anna/shop', ['x-svc-memory-space', 'team/shop']);
  expect(reading.place.space).toBe('team/shop');
});
