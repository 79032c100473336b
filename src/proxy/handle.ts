import type { ServerResponse } from 'node:http';
import { answerHeaders } from '../core/header-rules.ts';
import { decideModes } from '../core/modes.ts';
import { makePlan, untouchedPlan } from '../core/plan.ts';
import { estimateTokens } from '../core/tokens.ts';
import { AnswerWatch } from './answer-watch.ts';
import { CaptureKeeper } from './capture-keeper.ts';
import type { ClientRequest, Handler } from './client-request.ts';
import { CacheWatch } from './cache-watch.ts';
import { Conversations } from './conversations.ts';
import { forwardPlanned, upstreamFor } from './forward.ts';
import type { ProxyParts } from './parts.ts';
import { readRequest } from './read-request.ts';
import { RecallPlacer } from './recall-placer.ts';
import { goneSignal } from './gone-signal.ts';
import { relay } from './relay.ts';
import { relayUntouched } from './relay-untouched.ts';
import { RequestRecord } from './request-record.ts';
import { Shortener } from './shortener.ts';

/**
 * The story of one request. The gate has let it in, its body is read and decoded (steps 1 to 3);
 * the rest is told here in order. Memory may fail at every step and then only its state changes:
 * nothing but a mode that does not exist, a missing upstream or a dead provider stops a request.
 */
export function createHandler(parts: ProxyParts): Handler {
  const story = new Story(parts);
  return async (request, outgoing) => {
    if (request.route.kind !== 'model') return relayUntouched(parts, request, outgoing);
    return story.tell(request, outgoing);
  };
}

/** What outlives a request: caches and guards that every request of this process shares. */
class Story {
  readonly #parts: ProxyParts;
  readonly #conversations = new Conversations();
  readonly #placer: RecallPlacer;
  readonly #shortener: Shortener;
  readonly #keeper: CaptureKeeper;
  readonly #caches: CacheWatch;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    this.#placer = new RecallPlacer(parts);
    this.#shortener = new Shortener(parts);
    this.#keeper = new CaptureKeeper(parts);
    this.#caches = new CacheWatch(parts.clock);
  }

  async tell(request: ClientRequest, outgoing: ServerResponse): Promise<void> {
    const record = new RequestRecord(this.#parts, request);
    const gone = goneSignal(outgoing);
    try {
      await this.#answer({ request, outgoing, record, gone });
    } catch (error) {
      if (gone.aborted) record.ended('client-gone');
      else record.failed(error);
      // svc's own errors carry the evidence too, as far as it is known.
      if (!outgoing.headersSent) setHeaders(outgoing, record.evidence());
      throw error;
    } finally {
      record.close();
    }
  }

  async #answer({ request, outgoing, record, gone }: Scene): Promise<void> {
    const live = this.#parts.live();

    // 5: modes. A wrong one is refused before anything was sent anywhere.
    const modes = decideModes(request.headers, {
      memoryMode: live.proxy.memoryMode,
      compressionMode: live.proxy.compressionMode,
      supports: this.#parts.memory.supports,
    });
    record.decided(modes);
    const configured = upstreamFor(live, request.route);

    // 4 and 6: a typed view over the bytes, who asks, and the exchanges.
    const reading = readRequest(this.#conversations, request);
    record.read(reading);

    // 7: recall, and the proofs of what may be left out.
    const isCacheCold = reading !== undefined && this.#caches.isCold(reading);
    const asked = { modes, settings: live.proxy, isCacheCold };
    const [recalled, shortening] = await Promise.all([
      this.#placer.place({ ...asked, reading }),
      reading === undefined ? undefined : this.#shortener.shorten({ ...asked, reading }),
    ]);
    record.recalled(recalled.state);
    const { placements } = recalled;

    // 8: the plan, from facts alone.
    const plan =
      reading === undefined || shortening === undefined
        ? untouchedPlan(modes, estimateTokens(request.body ?? NO_BYTES))
        : makePlan({ view: reading.view, modes, placements, shortening });
    record.planned(plan);

    // 9 to 11: edits by span, headers with the credential last, one attempt at the provider.
    // A person who stops an answer, begun or not, has asked: that is theirs to keep.
    const keepAsked = (): void => {
      if (reading !== undefined && modes.writes) this.#keeper.keepHuman(reading);
    };
    const answer = await forwardPlanned({
      configured,
      request,
      plan,
      signal: gone,
      onRefused: (wasOurs) => {
        record.refused();
        if (reading === undefined || !wasOurs) return;
        // What of it was refused is not said: each kind of change that it carried is off from now on.
        if (plan.recalledTokens > 0) this.#placer.refused(reading);
        if (plan.elidedItems > 0) this.#shortener.refused(reading);
      },
    }).catch((error: unknown) => {
      if (gone.aborted) keepAsked();
      throw error;
    });
    record.answered(answer.status);
    if (reading !== undefined) void this.#shortener.keepAhead({ ...asked, reading });

    // 12 to 15: evidence, then the provider's bytes as they come, watched on the side; captures
    // are durable before the client has the last byte.
    const watch = new AnswerWatch(request, answer, (said) => {
      record.said(said);
      if (reading === undefined || !modes.writes) return;
      this.#keeper.keepAnswer(reading, said, placements);
    });
    const end = await relay({
      answer,
      outgoing,
      watcher: watch,
      head: {
        status: answer.status,
        headers: [...answerHeaders(answer.headers), ...record.evidence()],
      },
    });
    record.ended(end);
    if (end === 'client-gone') keepAsked();
    // What was said before svc came stands in every request: it can wait until nobody does.
    if (reading === undefined || !modes.writes) return;
    this.#keeper.keepHistory(reading, live.proxy, placements);
  }
}

interface Scene {
  readonly request: ClientRequest;
  readonly outgoing: ServerResponse;
  readonly record: RequestRecord;
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
}

const NO_BYTES = new Uint8Array();

function setHeaders(outgoing: ServerResponse, headers: readonly string[]): void {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    outgoing.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }
}
