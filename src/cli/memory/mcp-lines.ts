import { Readable } from 'node:stream';
import { parseJson } from '../../core/bytes/json-fields.ts';

/** Where the id of a message is: clients write it first or last. */
const ID_BYTES = 256;
const FIRST_ID = /^\s*\{(?:"jsonrpc":"2\.0",)?"id":(\d{1,15}|"[^"\\]{0,128}")/;
const LAST_ID = /"id":(\d{1,15}|"[^"\\]{0,128}")\}\s*$/;

const LINE_END = 0x0a;

/**
 * The lines of `input` that have at most `bytesMax` bytes. A longer one is dropped, and `onLong`
 * gets the id of its message; undefined where it cannot be read.
 */
export function shortLines(
  input: Readable,
  bytesMax: number,
  onLong: (id: unknown) => void,
): Readable {
  return Readable.from(linesOf(input, bytesMax, onLong));
}

async function* linesOf(
  input: Readable,
  bytesMax: number,
  onLong: (id: unknown) => void,
): AsyncGenerator<Buffer, void, void> {
  let line = new Line();
  for await (const chunk of input) {
    const bytes: Buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    let at = 0;
    for (let end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END, at)) {
      line.add(bytes.subarray(at, end + 1), bytesMax);
      at = end + 1;
      if (line.isLong) onLong(line.id());
      else yield line.take();
      line = new Line();
    }
    line.add(bytes.subarray(at), bytesMax);
  }
}

/** One line as it arrives; of a long one only its ends are kept. */
class Line {
  #pieces: Buffer[] = [];
  #length = 0;
  #start = '';
  #end = '';
  isLong = false;

  add(piece: Buffer, bytesMax: number): void {
    this.#length += piece.length;
    this.#pieces.push(piece);
    if (!this.isLong && this.#length <= bytesMax) return;
    const kept = Buffer.concat(this.#pieces);
    if (!this.isLong) this.#start = kept.toString('utf8', 0, ID_BYTES);
    this.#end = (this.#end + kept.subarray(-ID_BYTES).toString('utf8')).slice(-ID_BYTES);
    this.isLong = true;
    this.#pieces = [];
  }

  take(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  id(): unknown {
    const found = FIRST_ID.exec(this.#start)?.[1] ?? LAST_ID.exec(this.#end)?.[1];
    return found === undefined ? undefined : parseJson(found);
  }
}
