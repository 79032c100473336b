import { expect, test } from 'vitest';
import { thoughtId } from '../../src/core/conversation/thoughts.ts';
import { AnswerWatch } from '../../src/proxy/relay.ts';
import { startRelaying } from '../support/relaying.ts';
import { ask, chunk, LAST_CHUNK, startProvider, STREAM_HEAD } from '../support/sockets.ts';

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

const PIECES = [
  data({ type: 'message_start', message: { model: 'claude-opus-5-5' } }),
  data({ type: 'content_block_start', index: 0, content_block: { type: 'thinking' } }),
  data({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'signature_delta', signature: 'signed' },
  }),
  data({ type: 'content_block_stop', index: 0 }),
  data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
  data({ type: 'message_stop' }),
];

test('a signed thought is reported before the client can have the bytes that complete it', async () => {
  const provider = await startProvider(({ socket }) => {
    socket.end([STREAM_HEAD, ...PIECES.map((piece) => chunk(piece)), LAST_CHUNK].join(''));
  });
  const log: string[] = [];
  const watcher = new AnswerWatch(
    { route: { kind: 'model', dialect: 'anthropic_messages' } },
    { status: 200, headers: ['content-type', 'text/event-stream'] },
    {
      onAnswer: () => log.push('answer'),
      onThought: (id, model) => log.push(`${id} ${model}`),
    },
  );
  const { port } = await startRelaying(provider.url, {
    watcher,
    onOutgoing: (outgoing) => {
      const write = outgoing.write.bind(outgoing);
      outgoing.write = (bytes: Uint8Array) => {
        log.push(`written ${/"type":"(\w+)"/.exec(Buffer.from(bytes).toString())?.[1]}`);
        return write(bytes);
      };
    },
  });
  expect((await ask(port)).body.toString()).toBe(PIECES.join(''));
  expect(log).toEqual([
    'written message_start',
    'written content_block_start',
    'written content_block_delta',
    `${thoughtId('signed')} claude-opus-5-5`,
    'written content_block_stop',
    'written message_delta',
    'answer',
    'written message_stop',
  ]);
});
