import type { ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { createUpstream } from '../../src/adapters/network/undici-upstream.ts';
import { answerHeaders, forwardHeaders } from '../../src/core/http/header-rules.ts';
import type { HoldBack } from '../../src/proxy/dependencies.ts';
import { relay, type RelayEnd, type RelayOptions } from '../../src/proxy/relay.ts';
import { startServer } from './sockets.ts';
import { upstreamSettings } from './upstream.ts';
import type { AnswerWatcher } from '../../src/proxy/dependencies.ts';

export const TERMINAL = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

/** Writes down what it is shown, and in which order. */
export function recordingWatcher(log: string[] = []): AnswerWatcher & { readonly seen: Buffer[] } {
  const seen: Buffer[] = [];
  return {
    seen,
    data(bytes) {
      log.push('data');
      seen.push(Buffer.from(bytes));
      return Buffer.from(bytes).includes('message_stop');
    },
    beforeLast() {
      log.push('beforeLast');
      return true;
    },
  };
}

export interface Relaying {
  readonly port: number;
  /** How each relay ended, in order. */
  readonly ends: readonly RelayEnd[];
}

interface RelayingOptions {
  readonly watcher?: AnswerWatcher;
  readonly onChunk?: RelayOptions['onChunk'];
  readonly holdBack?: HoldBack;
  /** Sees the response object before anything is written to it. */
  /** Added to the head, as evidence is. */
  readonly evidence?: readonly string[];
  readonly onOutgoing?: (outgoing: ServerResponse) => void;
}

/** The smallest proxy: real server, real upstream, and between them nothing but the relay. */
export async function startRelaying(
  providerUrl: string,
  { watcher, onChunk, holdBack, onOutgoing, evidence = [] }: RelayingOptions = {},
): Promise<Relaying> {
  const ends: RelayEnd[] = [];
  const settings = upstreamSettings({ baseUrl: providerUrl, allowPrivate: true });
  const upstream = createUpstream(settings, { headersMs: 600_000 });
  onTestFinished(() => {
    void upstream.close();
  });
  const port = await startServer((incoming, outgoing) => {
    const stop = new AbortController();
    outgoing.on('close', () => stop.abort());
    onOutgoing?.(outgoing);
    const body: Buffer[] = [];
    incoming.on('data', (bytes: Buffer) => body.push(bytes));
    incoming.on('end', () => {
      const { method = '', url = '' } = incoming;
      const headers = forwardHeaders(incoming.rawHeaders, settings);
      const handle = async (): Promise<void> => {
        const answer = await upstream.send({ method, target: url, headers, body }, stop.signal);
        const head = {
          status: answer.status,
          headers: [...answerHeaders(answer.headers, answer.status), ...evidence],
        };
        ends.push(await relay({ answer, outgoing, watcher, onChunk, holdBack, head }));
      };
      handle().catch(() => outgoing.destroy());
    });
  });
  return { port, ends };
}
