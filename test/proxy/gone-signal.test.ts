import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { goneSignal } from '../../src/proxy/relay.ts';

interface Stub extends EventEmitter {
  destroyed: boolean;
  writableFinished: boolean;
}

function answer(destroyed = false): { readonly stub: Stub; readonly outgoing: ServerResponse } {
  const stub: Stub = Object.assign(new EventEmitter(), { destroyed, writableFinished: false });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the signal reads no more of it
  return { stub, outgoing: stub as unknown as ServerResponse };
}

test('a client that hangs up aborts once, for those who still listen', () => {
  const { stub, outgoing } = answer();
  const gone = goneSignal(outgoing);
  const calls: string[] = [];
  const left = (): void => void calls.push('left');
  gone.addEventListener('abort', left);
  gone.addEventListener('abort', () => calls.push('stayed'));
  gone.removeEventListener('abort', left);
  expect(gone.aborted).toBe(false);
  gone.throwIfAborted();

  stub.emit('close');
  stub.emit('close');
  expect(calls).toEqual(['stayed']);
  expect(gone.aborted).toBe(true);
  expect(() => gone.throwIfAborted()).toThrow('The client has gone.');
});

test('an answer that is whole aborts nothing', () => {
  const { stub, outgoing } = answer();
  const gone = goneSignal(outgoing);
  stub.writableFinished = true;
  stub.emit('close');
  expect(gone.aborted).toBe(false);
});

test('a client that went before is gone from the start', () => {
  const gone = goneSignal(answer(true).outgoing);
  expect(gone.aborted).toBe(true);
});
