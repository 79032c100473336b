import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { decompress as unzstd } from 'fzstd';

/** Undoes the one content coding of a request body. */
export function decodeBody(bytes: Buffer, coding: string | undefined): Buffer {
  switch (coding) {
    case undefined:
    case 'identity':
      return bytes;
    case 'gzip':
      return gunzipSync(bytes);
    case 'deflate':
      return inflateSync(bytes);
    case 'br':
      return brotliDecompressSync(bytes);
    case 'zstd':
      return Buffer.from(unzstd(bytes));
    default:
      throw new Error(`no test client sends the content coding ${coding}`);
  }
}
