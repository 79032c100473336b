import type { ServerResponse } from 'node:http';
import { ProxyError } from '../core/errors.ts';
import { modesToTell } from '../core/http/modes.ts';
import { relayedEvidence, sourceHeaders } from '../core/plan/evidence.ts';
import type { UpstreamAnswer } from '../ports/upstream.ts';
import { headersForClient, sendForm } from './forward.ts';
import type { ClientRequest, ProxyDependencies } from './dependencies.ts';
import { AnswerWatch, relay } from './relay.ts';
import type { RequestRecord } from './request-record.ts';

// Codex asks for the model list before it starts and waits 10 seconds for one that hangs;
// without one both clients continue at once.
const LIST_HEADERS_MS = 3_000;

/**
 * Relays a request that memory has no business with: the client's bytes, the provider's bytes. `changed`: the
 * body with what the ledger repeats in it; undefined for the client's own.
 */
export async function relayUntouched(
  dependencies: ProxyDependencies,
  { request: asked, outgoing, record, gone, changed }: RelayedScene,
): Promise<void> {
  const chosen = await dependencies.choose({ request: asked, read: 'relayed' });
  const { configured } = chosen;
  const request = chosen.body === undefined ? asked : { ...asked, body: chosen.body };
  const modes = modesToTell(request.headers, {
    ...dependencies.settings(),
    supports: dependencies.memory.supports,
  });
  record.note({ upstream: configured.settings });
  record.hashes?.routed(request.body);
  if (dependencies.admit !== undefined) {
    await dependencies.admit(record.known());
    record.note({}, 'admit');
  }
  dependencies.planned?.(record.known());
  const answering = withinDeadline(request.method === 'POST', (late) =>
    sendForm(changed, {
      configured,
      request,
      signal: late === undefined ? gone : AbortSignal.any([gone, late]),
    }),
  );
  record.hashes?.forwarded(changed);
  const answer = await answering;
  record.answered(answer);
  // svc does not read these answers; it only counts bytes, for budgets.
  const watch = new AnswerWatch(request, answer, { onAnswer: () => undefined });
  const end = await relay({
    answer,
    outgoing,
    watcher: record.hashes?.watching(watch) ?? watch,
    head: {
      status: answer.status,
      headers: [
        ...headersForClient(answer, configured, dependencies.issuer),
        ...relayedEvidence({ issuer: dependencies.issuer, requestId: request.id, modes }),
        ...sourceHeaders(dependencies.issuer, answer.status),
      ],
    },
  });
  const [lostThoughts, uncountedTokens] = [watch.lostThoughts(), watch.uncountedTokens()];
  record.note({ end, lostThoughts, uncountedTokens }, 'relay');
}

interface RelayedScene {
  readonly request: ClientRequest;
  readonly outgoing: ServerResponse;
  readonly record: RequestRecord;
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
  readonly changed: readonly Uint8Array[] | undefined;
}

async function withinDeadline(
  isPost: boolean,
  send: (late: AbortSignal | undefined) => Promise<UpstreamAnswer>,
): Promise<UpstreamAnswer> {
  if (isPost) return send(undefined);
  const late = AbortSignal.timeout(LIST_HEADERS_MS);
  try {
    return await send(late);
  } catch (cause) {
    if (!late.aborted) throw cause;
    throw new ProxyError('UPSTREAM_TIMEOUT', 'The provider did not list its models in 3 seconds.', {
      cause,
    });
  }
}
