import type { MessagePort } from 'node:worker_threads';

/** A shorter chunk costs less than freeing it by hand. */
const FREED_BYTES_MIN = 16 << 10;

/** Closed on both sides: what is sent into it is dropped at once. */
let nowhere: MessagePort | undefined;

/**
 * Frees the memory of a chunk that was copied; the chunk is empty afterwards. Without this the memory
 * stays until V8 collects garbage, and much of such memory makes V8 collect the whole heap more often.
 * To be called only by the one owner of the chunk. A chunk that shares its memory with others is left
 * as it is.
 */
export function freeChunk(chunk: Uint8Array<ArrayBuffer>): void {
  const { buffer, byteLength } = chunk;
  if (byteLength < FREED_BYTES_MIN || byteLength !== buffer.byteLength) return;
  nowhere ??= closedPort();
  // `ArrayBuffer.transfer` came after Node 20. A port takes the memory away from the chunk likewise.
  nowhere.postMessage(undefined, [buffer]);
}

function closedPort(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  port2.close();
  return port1;
}
