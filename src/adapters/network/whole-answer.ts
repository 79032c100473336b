import type { UpstreamAnswer } from '../../ports/upstream.ts';

/** Limits for an answer that svc itself has asked for, such as a list of models or a catalog. */
export interface WholeAnswerLimits {
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/**
 * Reads an answer's body. If it cannot be read whole within the limits, returns the reason, and drops the connection.
 */
export function wholeBody(
  answer: UpstreamAnswer,
  { bytesMax, signal }: WholeAnswerLimits,
): Promise<Buffer | 'cut' | 'late' | 'too_long'> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const settle = (body: Buffer | 'cut' | 'late' | 'too_long'): void => {
      signal.removeEventListener('abort', onAbort);
      resolve(body);
    };
    const giveUp = (why: 'late' | 'too_long'): void => {
      answer.abort();
      settle(why);
    };
    const onAbort = (): void => giveUp('late');
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    answer.deliver({
      data: (chunk) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > bytesMax) giveUp('too_long');
        return true;
      },
      end: () => settle(Buffer.concat(chunks)),
      cut: () => settle('cut'),
    });
  });
}
