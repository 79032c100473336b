import type { UpstreamAnswer } from '../../ports/upstream.ts';

/** Reads an answer whole, for the few that svc itself needs: a list of models, a catalog; never a client's answer. */
export interface WholeAnswerLimits {
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** Returns the body; undefined if it is cut, late or too long. Its connection is then dropped. */
export function wholeBody(
  answer: UpstreamAnswer,
  { bytesMax, signal }: WholeAnswerLimits,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const giveUp = (): void => {
      answer.abort();
      resolve(undefined);
    };
    if (signal.aborted) {
      giveUp();
      return;
    }
    signal.addEventListener('abort', giveUp, { once: true });
    const settle = (body: Buffer | undefined): void => {
      signal.removeEventListener('abort', giveUp);
      resolve(body);
    };
    answer.deliver({
      data: (chunk) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > bytesMax) giveUp();
        return true;
      },
      end: () => settle(Buffer.concat(chunks)),
      cut: () => settle(undefined),
    });
  });
}
