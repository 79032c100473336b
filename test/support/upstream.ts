import type { UpstreamSettings } from '../../src/core/settings/settings.ts';
import type { AnswerSink, UpstreamAnswer, UpstreamRequest } from '../../src/ports/upstream.ts';

export function upstreamSettings(changes: Partial<UpstreamSettings>): UpstreamSettings {
  return {
    name: 'test',
    apiStyle: 'anthropic_messages',
    baseUrl: 'https://provider.test',
    providerKey: 'provider-key',
    auth: 'x-api-key',
    headers: {},
    query: {},
    allowPrivate: false,
    ...changes,
  };
}

export function upstreamRequest(changes: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { method: 'POST', target: '/v1/messages', headers: [], body: [], ...changes };
}

/** Reads a whole answer; says how it ended. `onData` is called when some of it came. */
export async function readAnswer(
  answer: UpstreamAnswer,
  onData: () => void = () => {},
): Promise<{ body: Buffer; end: 'end' | 'cut' }> {
  const chunks: Uint8Array[] = [];
  return await new Promise((resolve) => {
    const finish = (end: 'end' | 'cut'): void => resolve({ body: Buffer.concat(chunks), end });
    const sink: AnswerSink = {
      data: (bytes) => {
        chunks.push(bytes);
        onData();
        return true;
      },
      end: () => finish('end'),
      cut: () => finish('cut'),
    };
    answer.deliver(sink);
  });
}
