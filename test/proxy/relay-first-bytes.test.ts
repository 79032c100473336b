import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startRelaying } from '../support/relaying.ts';
import { ask, chunk, LAST_CHUNK, startProvider, STREAM_HEAD } from '../support/sockets.ts';
import type { AnswerWatcher } from '../../src/proxy/dependencies.ts';

const TERMINAL = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

test('the first bytes of an answer that comes all at once do not wait for what its end asks for', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.end(
      Buffer.concat([
        Buffer.from(STREAM_HEAD),
        chunk(Buffer.from('data: first\n\n')),
        chunk(Buffer.from(TERMINAL)),
        Buffer.from(LAST_CHUNK),
      ]),
    );
  });
  const held: number[] = [];
  let response: ServerResponse | undefined;
  const watcher: AnswerWatcher = {
    data: (bytes) => Buffer.from(bytes).includes('message_stop'),
    beforeLast: () => {
      held.push(response?.socket?.writableLength ?? -1);
      return true;
    },
  };
  const onOutgoing = (outgoing: ServerResponse): void => {
    response = outgoing;
  };
  const { port } = await startRelaying(provider.url, { watcher, onOutgoing });
  expect((await ask(port)).body.toString()).toBe(`data: first\n\n${TERMINAL}`);
  expect(held).toEqual([0]);
});
